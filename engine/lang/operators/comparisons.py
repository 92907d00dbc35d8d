"""`Equals` and `NotEquals`, `GreaterThan` and its kin, and the older duration operators (rows A-95, A-97, A-98)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang import duration, gotext, quantity, wildcard

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]
    Order = Callable[[Json, Json], bool]

_SECOND: Final = 1_000_000_000
_WRAP: Final = 1 << 64
_HALF: Final = 1 << 63


def written_span(value: Json) -> int | None:
    """Return the nanoseconds of a text that is a duration; `0` alone is rather a number and is none."""
    return duration.parse(value) if isinstance(value, str) and value != "0" else None


def seconds_span(value: Json) -> int | None:
    """Return the nanoseconds of a number of seconds, its fraction dropped; None for anything but a number.

    Numbers beyond 64 bits of nanoseconds wrap around, as in Kyverno.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return (_whole(value) * _SECOND + _HALF) % _WRAP - _HALF


def _whole(number: float) -> int:
    if isinstance(number, int):
        return number
    return int(number) if math.isfinite(number) and abs(number) < _HALF else -_HALF


def span(value: Json) -> int | None:
    """Return the nanoseconds of a duration text or of a number of seconds."""
    return duration.parse(value) if isinstance(value, str) else seconds_span(value)


def span_pair(key: Json, value: Json) -> tuple[int, int] | None:
    """Return both as nanoseconds when at least one is a duration text and the other a duration or a number."""
    left, right = written_span(key), written_span(value)
    if left is None and right is None:
        return None
    if left is None:
        left = seconds_span(key)
    if right is None:
        right = seconds_span(value)
    return None if left is None or right is None else (left, right)


# `Equals` and `NotEquals` (row A-95): durations, quantities, wildcards, numbers, and deep equality of maps and lists.

_DEEPEST: Final = 200


def equals(value: Json) -> Test:
    """Prepare `Equals`: true when the key is the value in one of the readings above; a null key equals nothing."""
    if not _is_plain(value):
        return lambda key: _same(key, value) is True
    return lambda key: key == value if key.__class__ is str else False


def not_equals(value: Json) -> Test:
    """Prepare `NotEquals`: the opposite of `Equals`, but false for a null key."""
    if not _is_plain(value):
        return lambda key: _same(key, value) is False
    return lambda key: key != value if key.__class__ is str else _same(key, value) is False


def _is_plain(value: Json) -> bool:
    """Tell whether the value is a text that only the same text equals."""
    return (
        isinstance(value, str)
        and not wildcard.has_wildcard(value)
        and duration.parse(value) is None
        and quantity.parse(value) is None
        and gotext.parse_float(value) is None
    )


def _same(key: Json, value: Json) -> bool | None:
    """Tell whether key and value are equal; None for a null key, which is neither equal nor unequal."""
    if key is None:
        return None
    if isinstance(key, bool) or isinstance(value, bool):
        return key is value
    if isinstance(key, dict | list):
        return type(key) is type(value) and deep_equal(key, value)
    return _same_text(key, value) if isinstance(key, str) else _same_number(key, value)


def _same_text(key: str, value: Json) -> bool:
    spans = span_pair(key, value)
    if spans is not None:
        return spans[0] == spans[1]
    if not isinstance(value, str):
        return False
    amount = quantity.parse(key)
    return amount == quantity.parse(value) if amount is not None else wildcard.match(value, key)


def _same_number(key: float, value: Json) -> bool:
    # A number is a number of seconds only as the value: `3600` is not equal to `1h`, while `1h` is equal to `3600`.
    if isinstance(value, str):
        read = gotext.parse_float if isinstance(key, float) else gotext.parse_integer
        value = read(value)
    return isinstance(value, int | float) and key == value


def deep_equal(left: Json, right: Json, depth: int = 0) -> bool:
    """Tell whether two values are the same in shape, types and values; `1` and `1.0` differ.

    Raises LimitError for values nested too deep.
    """
    if depth > _DEEPEST:
        raise LimitError(f"value nested more than {_DEEPEST} levels deep")
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(deep_equal(item, right[key], depth + 1) for key, item in left.items())
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(map(deep_equal, left, right, [depth + 1] * len(left)))
        )
    return type(left) is type(right) and bool(left == right)


# `GreaterThan` and its kin (row A-97), and the older duration operators (row A-98).


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
    return isinstance(value, int | float) and order(gotext.as_float(key), gotext.as_float(value))


def _holds_version(order: Order, key: str, value: str) -> bool:
    from engine.lang import semver  # here: few conditions compare versions

    try:
        return order(semver.parse(key).order(), semver.parse(value).order())
    except EvaluationError:
        return False
