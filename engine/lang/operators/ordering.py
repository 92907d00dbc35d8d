"""`GreaterThan` and its kin (row A-97), and the older duration operators (row A-98)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.lang import gotext, quantity, semver

from .spans import span, span_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]
    Order = Callable[[Json, Json], bool]


def number_test(order: Order) -> Callable[[Json], Test]:
    """Make the operator of an order: durations first, then quantities, numbers and versions; anything else is false."""

    def prepare(value: Json) -> Test:
        return lambda key: _holds(order, key, value)

    return prepare


def duration_test(order: Order) -> Callable[[Json], Test]:
    """Make the operator that compares both sides as durations; false when one is none."""

    def prepare(value: Json) -> Test:
        right = span(value)
        if right is None:
            return lambda _key: False

        def test(key: Json) -> bool:
            left = span(key)
            return left is not None and order(left, right)

        return test

    return prepare


def _holds(order: Order, key: Json, value: Json) -> bool:
    if isinstance(key, bool) or not isinstance(key, str | int | float):
        return False
    spans = span_pair(key, value)
    if spans is not None:
        return order(*spans)
    if not isinstance(key, str):
        return _holds_number(order, key, value)
    if isinstance(value, str):
        left = quantity.parse(key)
        right = None if left is None else quantity.parse(value)
        if right is not None:
            return order(left, right)
    number = gotext.parse_float(key)
    if number is None:
        return isinstance(value, str) and _holds_version(order, key, value)
    spans = span_pair(number, value)
    return order(*spans) if spans is not None else _holds_number(order, number, value)


def _holds_number(order: Order, key: float, value: Json) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, str):
        value = gotext.parse_float(value)
    return isinstance(value, int | float) and order(_as_float(key), _as_float(value))


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _holds_version(order: Order, key: str, value: str) -> bool:
    try:
        return order(semver.parse(key).order(), semver.parse(value).order())
    except EvaluationError:
        return False
