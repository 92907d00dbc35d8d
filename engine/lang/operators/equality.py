"""`Equals` and `NotEquals` (row A-95): durations, quantities, wildcards, numbers, and deep equality of maps and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import LimitError
from engine.lang import duration, gotext, quantity, wildcard

from .spans import span_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]

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
