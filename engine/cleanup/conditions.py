"""Conditions of cleanup policies, with their context, about one target (row C-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluate.conditions import compile_conditions
from engine.evaluate.context import compile_context, load_context
from engine.lang.jmes.env import Env
from engine.lang.variables import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.evaluate import Inputs
    from engine.model import CleanupPolicy, Review

    Conditions = Callable[[Review, Inputs], str]
    """Says why an object stays, nothing when it goes; raises EvaluationError, and LookupNeeded for what it lacks."""

NOT_MET = "the conditions do not hold"


def compile_target_conditions(policy: CleanupPolicy) -> Conditions | None:
    """Compile the conditions of a classic policy; None where it has none. Raises PolicyError."""
    if not policy.conditions:
        return None
    conditions = compile_conditions(policy.conditions)
    entries = compile_context(policy.context)

    def why_kept(review: Review, inputs: Inputs) -> str:
        scope = Scope({"target": review.target}, Env(now=inputs.now), rereads=inputs.resolve_values)
        load_context(entries, scope, inputs)
        return "" if conditions(scope, None).holds else NOT_MET

    return why_kept
