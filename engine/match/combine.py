"""Joining tests without paying for generality: one and two tests become direct calls, more a plain loop.

Most rules have one or two filters, and the webhook asks them for every object, so the shape of the closure is the speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Review

    Test = Callable[[Review], bool]


def always(_review: Review) -> bool:
    """Match everything."""
    return True


def never(_review: Review) -> bool:
    """Match nothing."""
    return False


def every(tests: Sequence[Test]) -> Test:
    """Return a test that holds when all hold; of none, it always holds."""
    if not tests:
        return always
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda review: first(review) and second(review)
    fixed = tuple(tests)

    def holds(review: Review) -> bool:
        for test in fixed:  # noqa: SIM110 - a generator costs more than the tests
            if not test(review):
                return False
        return True

    return holds


def some(tests: Sequence[Test]) -> Test:
    """Return a test that holds when any holds; of none, it never holds."""
    if not tests:
        return never
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda review: first(review) or second(review)
    fixed = tuple(tests)

    def holds(review: Review) -> bool:
        for test in fixed:  # noqa: SIM110 - a generator costs more than the tests
            if test(review):
                return True
        return False

    return holds
