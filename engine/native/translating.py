"""Which native policy stands for a policy: the one decision that loops, status and command line ask for (rows NG-06, NG-11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model.kinds import BY_NAME

from .classic import translated_classic
from .from_cel import translated_mutating, translated_validating
from .objects import MUTATING, Documents, NotNative, kind_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.evaluate.cel.exceptions import CompiledCelException
    from engine.exceptions import CompiledException
    from engine.model import Policy

    from .classic import Resolve


def translated(
    policy: Policy,
    exceptions: Sequence[CompiledException],
    cel_exceptions: Sequence[CompiledCelException],
    now: datetime,
    resolve: Resolve,
) -> Documents:
    """Return the native policy and binding that say what a policy says; raises NotNative with the reason where none can.

    Of the exceptions those that name the policy count. `resolve` returns the resources of a kind as a rule writes it.
    """
    kind = kind_for(policy)
    if not kind:
        raise NotNative(f"there are no native policies for policies of kind {policy.kind}")
    if not BY_NAME[policy.kind].is_cel:
        return translated_classic(policy, exceptions, now, resolve)
    make = translated_mutating if kind == MUTATING else translated_validating
    return make(policy, cel_exceptions, now)
