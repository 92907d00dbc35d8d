"""Kubernetes quantities in expressions: `quantity("1.5Gi").isLessThan(quantity("2Gi"))`."""

from __future__ import annotations

from typing import Any, Final

from engine.lang import quantity
from engine.lang.cel.errors import CelError
from engine.lang.cel.values import MAX_INT, MIN_INT, TYPE_NAMES
from engine.lang.quantity import Quantity

from .registry import KINDS, Library

LIBRARY: Final = Library(cost=20)
KINDS["Quantity"] = (Quantity,)
TYPE_NAMES[Quantity] = "kubernetes.Quantity"
_INT_DIGITS: Final = 19


@LIBRARY.add("quantity(string) -> Quantity")
def _quantity(text: str) -> Quantity:
    value = quantity.parse(text)
    if value is None:
        raise CelError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return value


@LIBRARY.add("isQuantity(string) -> bool")
def _is_quantity(text: str) -> bool:
    return quantity.parse(text) is not None


@LIBRARY.add("Quantity.sign() -> int")
def _sign(value: Quantity) -> int:
    return (value.number > 0) - (value.number < 0)


@LIBRARY.add("Quantity.isInteger() -> bool")
def _is_integer(value: Quantity) -> bool:
    number = value.number
    if number.adjusted() >= _INT_DIGITS or number != number.to_integral_value():
        return False
    return MIN_INT <= int(number) <= MAX_INT


@LIBRARY.add("Quantity.asInteger() -> int")
def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.number)


@LIBRARY.add("Quantity.asApproximateFloat() -> double")
def _as_float(value: Quantity) -> float:
    return float(value.number)


def _operand(value: Quantity | int) -> Quantity:
    return value if isinstance(value, Quantity) else _quantity(str(value))


@LIBRARY.add("Quantity.add(Quantity) -> Quantity", "Quantity.add(int) -> Quantity")
def _add(one: Quantity, other: Any) -> Quantity:
    return one.add(_operand(other))


@LIBRARY.add("Quantity.sub(Quantity) -> Quantity", "Quantity.sub(int) -> Quantity")
def _sub(one: Quantity, other: Any) -> Quantity:
    return one.subtract(_operand(other))


@LIBRARY.add("Quantity.isLessThan(Quantity) -> bool")
def _is_less(one: Quantity, other: Quantity) -> bool:
    return one < other


@LIBRARY.add("Quantity.isGreaterThan(Quantity) -> bool")
def _is_greater(one: Quantity, other: Quantity) -> bool:
    return one > other


@LIBRARY.add("Quantity.compareTo(Quantity) -> int")
def _compare(one: Quantity, other: Quantity) -> int:
    return (one > other) - (one < other)
