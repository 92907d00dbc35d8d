"""Joining tests without paying for generality: one and two tests become direct calls, more a plain loop.

Most rules have one or two filters, and the webhook asks them for every object, so the shape of the closure is the speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Review

    Test = Callable[[Review], bool]

T = TypeVar("T")


def always(_: object) -> bool:
    """Match everything."""
    return True


def never(_: object) -> bool:
    """Match nothing."""
    return False


def every(tests: Sequence[Callable[[T], bool]]) -> Callable[[T], bool]:
    """Return a test that holds when all hold; of none, it always holds."""
    if not tests:
        return always
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) and second(value)
    fixed = tuple(tests)

    def holds(value: T) -> bool:
        for test in fixed:  # noqa: SIM110 - a generator costs more than the tests
            if not test(value):
                return False
        return True

    return holds


def some(tests: Sequence[Callable[[T], bool]]) -> Callable[[T], bool]:
    """Return a test that holds when any holds; of none, it never holds."""
    if not tests:
        return never
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) or second(value)
    fixed = tuple(tests)

    def holds(value: T) -> bool:
        for test in fixed:  # noqa: SIM110 - a generator costs more than the tests
            if test(value):
                return True
        return False

    return holds
