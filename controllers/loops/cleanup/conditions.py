"""Conditions of cleanup policies, with their context, about one target (row C-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LimitError
from engine.evaluate import Inputs
from engine.evaluate.conditions import compile_conditions
from engine.evaluate.context import compile_context, load_context
from engine.evaluate.lookups import LookupNeeded
from engine.lang.jmes.env import Env
from engine.lang.variables import Scope

if TYPE_CHECKING:
    from controllers.runtime.evaluating import Resolver
    from engine.evaluate import Answer, Lookup
    from engine.model import CleanupPolicy, Object

MOST_LOOKUPS = 100


class TargetConditions:
    """The conditions of one policy, compiled; answers from outside are remembered for one run."""

    def __init__(self, policy: CleanupPolicy, resolver: Resolver, inputs: Inputs) -> None:
        """Compile; raises PolicyError."""
        self._conditions = compile_conditions(policy.conditions)
        self._entries = compile_context(policy.context)
        self._resolver = resolver
        self._inputs = inputs
        self._within = policy.namespace
        self._answers: dict[Lookup, Answer] = {}

    async def hold(self, target: Object) -> bool:
        """Tell whether they hold for an object; raises EvaluationError, LimitError."""
        for _ in range(MOST_LOOKUPS):
            given = Inputs(
                now=self._inputs.now,
                answers=self._answers,
                within=self._within,
                resolve_values=self._inputs.resolve_values,
            )
            scope = Scope({"target": target}, Env(now=given.now), rereads=given.resolve_values)
            load_context(self._entries, scope, given)
            try:
                return self._conditions(scope, None).holds
            except LookupNeeded as needed:
                self._answers |= await self._resolver.resolve({needed.lookup})
        raise LimitError(
            "the conditions ask for more answers from outside than one target may have"
        )
