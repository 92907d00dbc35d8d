"""Kubernetes quantities in expressions: `quantity("1.5Gi").isLessThan(quantity("2Gi"))`."""

from __future__ import annotations

import operator
from typing import Final

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


LIBRARY.declare(
    {
        "isQuantity(string) -> bool": lambda text: quantity.parse(text) is not None,
        "Quantity.sign() -> int": lambda value: (value.number > 0) - (value.number < 0),
        "Quantity.asApproximateFloat() -> double": lambda value: float(value.number),
        "Quantity.add(Quantity) -> Quantity": Quantity.add,
        "Quantity.add(int) -> Quantity": lambda one, other: one.add(_quantity(str(other))),
        "Quantity.sub(Quantity) -> Quantity": Quantity.subtract,
        "Quantity.sub(int) -> Quantity": lambda one, other: one.subtract(_quantity(str(other))),
        "Quantity.isLessThan(Quantity) -> bool": operator.lt,
        "Quantity.isGreaterThan(Quantity) -> bool": operator.gt,
        "Quantity.compareTo(Quantity) -> int": lambda one, other: (one > other) - (one < other),
    }
)
