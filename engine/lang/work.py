"""The work of one evaluation, counted before it is done: by the bytes that it will touch.

Steps of expressions are counted where expressions are evaluated. This counts what one step can hide: a single call whose time
grows with its inputs, or with the product of two of them. The unit is about a nanosecond of an ordinary machine at the worst of what the
call may do, so that the whole budget is a second or two whatever it is spent on.

INVARIANT: whoever does such a call charges first; a call that has begun cannot be stopped where it is written in C.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from engine.errors import LimitError
from engine.record import record

if TYPE_CHECKING:
    from types import CodeType

_T = TypeVar("_T")
_P = ParamSpec("_P")

BUDGET: Final = 2_000_000_000
"""Of one evaluation of all policies on one object."""
FREE: Final = 20_000
"""What need not be counted: asking for it would cost as much."""


class Meter:
    """What is left of a budget; `over` makes what is raised where it is used up."""

    __slots__ = ("left", "over")

    def __init__(self, left: int = BUDGET, over: Callable[[], BaseException] | None = None) -> None:
        self.left = left
        self.over = over or (lambda: LimitError("the evaluation takes too much work"))


meter: Final[ContextVar[Meter | None]] = ContextVar("meter", default=None)
"""Of the evaluation under way; without one nothing is counted."""


def charge(cost: int) -> None:
    """Take the cost of a call from the budget. Raises LimitError when that is used up, or what the meter was made with."""
    if cost < FREE:
        return
    current = meter.get()
    if current is not None:
        current.left -= cost
        if current.left < 0:
            raise current.over()


def metered(work: Callable[[], _T]) -> _T:
    """Return what `work` gives within a budget of its own."""
    token = meter.set(Meter())
    try:
        return work()
    finally:
        meter.reset(token)


UNCUT: Final[set[CodeType]] = set()
"""The code of functions within which an evaluation is not cut off where it stands."""


def uncut(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Mark a function that calls a library which takes whatever is raised within it for an answer; it does nothing else, and soon ends."""
    UNCUT.add(function.__code__)
    return function


# Bounds on what is read at all; shared by the YAML and the JSON reader.


@record
class Limits:
    """How large, how deep and how far expanded a text may be before it is refused."""

    size: int = 16 * 1024 * 1024
    """Characters (or bytes) of one text: more than the API server accepts, less than would hurt."""

    depth: int = 200
    """Levels of lists and mappings. Real objects stay below 60; everything behind the reader may recurse that far safely."""

    expansion: int = 200_000
    """Values that aliases may add to a text: generous for people, and read in a fraction of a second."""


LIMITS = Limits()
