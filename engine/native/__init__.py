"""Native admission policies that say the same as a policy of ours, for the API server to judge without asking us.

Pure: a policy and what excepts from it in, the documents of a policy and its binding out, or the reason why there are none.
What is made reaches no further than the policy, and where the two languages differ the policy stays with us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model.kinds import BY_NAME

from .objects import (
    MUTATING,
    NATIVE_KINDS,
    VALIDATING,
    Documents,
    NotNative,
    asks_for_native,
    is_made_from,
    kind_for,
    name_for,
    names_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.evaluate.cel.exceptions import CompiledCelException
    from engine.exceptions import CompiledException
    from engine.model import Policy

    from .classic import Resolve

__all__ = [
    "MUTATING",
    "NATIVE_KINDS",
    "VALIDATING",
    "Documents",
    "NotNative",
    "asks_for_native",
    "is_made_from",
    "kind_for",
    "name_for",
    "names_of",
    "translated",
]


# Which native policy stands for a policy: the one decision that loops, status and command line ask for (rows NG-06, NG-11).


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
    # which kinds there are is asked far more often than what becomes of one
    if not BY_NAME[policy.kind].is_cel:
        from .classic import translated_classic

        return translated_classic(policy, exceptions, now, resolve)
    from .from_cel import translated_mutating, translated_validating

    make = translated_mutating if kind == MUTATING else translated_validating
    return make(policy, cel_exceptions, now)
