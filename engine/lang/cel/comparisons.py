"""Equality, order and membership over all types, numbers compared by value across their types.

Equality looks at types first, since Python takes `True` for `1` (language definition, "Equality" and "Ordering").
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from .errors import CelError, no_overload
from .values import CelType, Duration, Optional, Timestamp, Uint, as_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .env import CelEnv


NUMBERS: Final = frozenset((int, float, Uint))
_SCALARS: Final = frozenset(
    (str, int, bool, type(None), float, bytes, Uint, Timestamp, Duration, CelType)
)
_ORDERED: Final = frozenset((str, int, float, Uint, bytes, bool, Timestamp, Duration))


def equal(one: Any, other: Any, env: CelEnv) -> bool:
    """Return whether two values are equal; values of different types are not, numbers excepted."""
    kind, other_kind = type(one), type(other)
    if kind is other_kind and kind in _SCALARS:
        return bool(one == other)
    if kind in NUMBERS and other_kind in NUMBERS:
        one, other = alike(one, other)
        return bool(one == other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and _same_items(one, other, env)
    if isinstance(one, dict) and isinstance(other, dict):
        return len(one) == len(other) and _same_entries(one, other, env)
    if kind is Optional and other_kind is Optional:
        return one.present == other.present and equal(one.value, other.value, env)
    return kind is other_kind and kind not in _SCALARS and bool(one == other)


def _same_items(one: list[Any], other: list[Any], env: CelEnv) -> bool:
    env.charge(len(one))
    return all(equal(item, other[index], env) for index, item in enumerate(one))


def _same_entries(one: dict[Any, Any], other: dict[Any, Any], env: CelEnv) -> bool:
    env.charge(len(one))
    return all(key in other and equal(value, other[key], env) for key, value in one.items())


def contains(collection: Any, value: Any, env: CelEnv) -> bool:
    """Return `value in collection` for a list or the keys of a map. Raises CelError for other types."""
    if isinstance(collection, dict):
        if type(value) in (list, dict, type(None)) or isinstance(value, list | dict):
            return False
        return as_key(value) in collection
    if isinstance(collection, list):
        env.charge(len(collection))
        return any(equal(value, item, env) for item in collection)
    raise no_overload("")


def alike(one: Any, other: Any) -> tuple[Any, Any]:
    """Return two numbers as they are compared: as doubles where one is a double, which is lossy beyond 53 bits."""
    if type(one) is float:
        return one, float(other)
    return (float(one), other) if type(other) is float else (one, other)


def comparable(one: Any, other: Any) -> bool:
    """Return whether two values have an order: numbers, or the same ordered type."""
    kind, other_kind = type(one), type(other)
    return (kind is other_kind and kind in _ORDERED) or (kind in NUMBERS and other_kind in NUMBERS)


def check_sortable(items: Sequence[Any], at: int = -1) -> None:
    """Raise CelError, as Go's lists library words it, for what cannot be put into an order: there, one type has one."""
    if items and type(items[0]) not in _ORDERED and type(items[0]) not in NUMBERS:
        raise CelError("list elements must be comparable", at)
    if any(type(item) is not type(items[0]) for item in items):
        raise CelError("list elements must have the same type", at)


ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""The comparisons of operators on values known to be comparable."""
