"""Whether what happened to one code could have happened one after the other, to something that is used once.

The checker of Wing, Gong and Lowe: an order of all operations is looked for that keeps what came before what, and in which each
says what such a register would say. One operation without an answer may have happened at any time after it began, or never.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Operation:
    """Somebody takes a code for an object (`by`); `took` says what they were told, None where they were told nothing."""

    began: float
    ended: float
    by: str
    took: bool | None


def is_linearizable(operations: list[Operation]) -> bool:
    """Tell whether some order explains everything: whoever took it was first, or the same again; others were not let."""
    ordered = sorted(operations, key=lambda one: one.began)

    @cache
    def follows(left: frozenset[int], holder: str) -> bool:
        if all(ordered[number].took is None for number in left):
            return True
        soonest = min(_end(ordered[number]) for number in left)
        for number in sorted(left):
            one = ordered[number]
            if one.began > soonest:
                break
            took = holder in ("", one.by)
            if one.took is not None and one.took != took:
                continue
            if follows(left - {number}, holder or one.by):
                return True
        return False

    return follows(frozenset(range(len(ordered))), "")


def _end(one: Operation) -> float:
    return NEVER if one.took is None else one.ended
