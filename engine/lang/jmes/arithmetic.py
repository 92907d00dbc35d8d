"""Sums and products of numbers, quantities and durations (row F-04).

A text is a quantity if it can be read as one, else a duration; which pairs of kinds an operation takes, and how results
are rounded, follows upstream.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import duration, gotext, quantity
from engine.lang.quantity import Format, Quantity
from engine.record import record

from .signature import Table, fail
from .values import Env, is_number, number, spend

if TYPE_CHECKING:
    from engine.model import Json


table = Table()

_WRAP: Final = 2**64
_LOWEST: Final = -(2**63)
_MAX_DIGITS: Final = 2**63


@record
class _Duration:
    ns: int


_Operand = float | Quantity | _Duration


@table.function("add(any, any) any", "the sum of two numbers, quantities or durations")
def add(_env: Env, one: Json, other: Json) -> Json:
    """Add operands of the same kind."""
    return _sum("add", _operand("add", one), _operand("add", other))


@table.function("subtract(any, any) any", "the difference of two numbers, quantities or durations")
def subtract(_env: Env, one: Json, other: Json) -> Json:
    """Subtract operands of the same kind."""
    left, right = _operand("subtract", one), _operand("subtract", other)
    if isinstance(left, float) and isinstance(right, float):
        return number(left - right)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return _quantity_text(left.subtract(right))
    if isinstance(left, _Duration) and isinstance(right, _Duration):
        return duration.text(_wrapped(left.ns - right.ns))
    raise fail("subtract", "Types mismatch")


@table.function(
    "multiply(any, any) any", "the product of a number and a number, quantity or duration"
)
def multiply(_env: Env, one: Json, other: Json) -> Json:
    """Multiply; one of the operands has to be a number."""
    left, right = _operand("multiply", one), _operand("multiply", other)
    if isinstance(left, float):
        left, right = right, left
    if not isinstance(right, float):
        raise fail("multiply", "Types mismatch")
    if isinstance(left, Quantity):
        return _quantity_text(left.multiply(_as_quantity(right)))
    if isinstance(left, _Duration):
        return duration.text(_as_int64(float(left.ns) * right))
    return number(left * right)


@table.function("divide(any, any) any", "the quotient of two operands of one kind, or by a number")
def divide(_env: Env, one: Json, other: Json) -> Json:
    """Divide operands of the same kind, or a quantity or duration by a number."""
    left, right = _operand("divide", one), _operand("divide", other)
    if isinstance(left, float) and not isinstance(right, float):
        raise fail("divide", "Types mismatch")
    if isinstance(right, float):
        return _divided_by_number(left, right)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return _ratio(left.approximate(), right.approximate())
    if isinstance(left, _Duration) and isinstance(right, _Duration):
        return _ratio(left.ns / 1e9, right.ns / 1e9)
    raise fail("divide", "Types mismatch")


@table.function("modulo(any, any) any", "the remainder of a division of whole operands of one kind")
def modulo(_env: Env, one: Json, other: Json) -> Json:
    """Return the remainder, with the sign of the first operand."""
    left, right = _operand("modulo", one), _operand("modulo", other)
    if isinstance(left, float) and isinstance(right, float):
        return _remainder(_whole(left), _whole(right))
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        rest = _remainder(_whole(left.approximate()), _whole(right.approximate()))
        return _quantity_text(Quantity(Decimal(rest), left.format))
    if isinstance(left, _Duration) and isinstance(right, _Duration):
        return duration.text(_remainder(left.ns, right.ns))
    raise fail("modulo", "Types mismatch")


@table.function("sum(array) any", "the sum of the elements, all of one kind")
def total(env: Env, elements: list[Json]) -> Json:
    """Add up the elements; a single element is returned as it is."""
    spend(env, len(elements))
    if not elements:
        raise fail("sum", "at least one element in the array is required")
    result = elements[0]
    for element in elements[1:]:
        result = _sum("sum", _operand("sum", result), _operand("sum", element))
    return result


@table.function("round(number, number) number", "the number rounded to so many decimals")
def round_off(_env: Env, given: float, digits: float) -> float:
    """Round half away from zero."""
    places = gotext.as_float(digits)
    if not places.is_integer():
        raise fail("round", "Non-integer argument(s) passed for round off")
    if places < 0:
        # Upstream's own text, which lacks its values.
        raise fail("round", "%!d(MISSING) argument is out of bounds (%!d(MISSING))")
    shift = _power_of_ten(places)
    return _number(_divided(_half_away(gotext.as_float(given) * shift), shift))


def _operand(name: str, value: Json) -> _Operand:
    if is_number(value):
        return gotext.as_float(value)
    if value.__class__ is str:
        read = quantity.parse(value)
        if read is not None:
            return read
        ns = duration.parse(value)
        if ns is not None:
            return _Duration(ns)
    raise fail(name, "invalid operand")


def _sum(name: str, left: _Operand, right: _Operand) -> Json:
    if isinstance(left, float) and isinstance(right, float):
        return _number(left + right)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return _quantity_text(left.add(right))
    if isinstance(left, _Duration) and isinstance(right, _Duration):
        return duration.text(_wrapped(left.ns + right.ns))
    raise fail(name, "Types mismatch")


def _divided_by_number(left: _Operand, divisor: float) -> Json:
    if divisor == 0:
        raise fail("divide", "Zero divisor passed")
    if isinstance(left, Quantity):
        by = _as_quantity(divisor)
        if not by.number:
            raise fail("divide", "Zero divisor passed")
        return _quantity_text(left.divide(by))
    if isinstance(left, _Duration):
        return duration.text(_as_int64(left.ns / divisor))
    return _number(left / divisor)


def _ratio(left: float, right: float) -> float:
    if right == 0:
        raise fail("divide", "Zero divisor passed")
    return _number(left / right)


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise fail("modulo", "Zero divisor passed")
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _whole(value: float) -> int:
    if not value.is_integer() or not _LOWEST <= value < _MAX_DIGITS:
        raise fail("modulo", "Non-integer argument(s) passed for modulo")
    return int(value)


def _as_quantity(value: float) -> Quantity:
    read = quantity.parse(gotext.general(value))
    if read is None:
        raise EvaluationError(
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return read


def _quantity_text(given: Quantity) -> str:
    """Return the canonical text. Beyond the largest suffix upstream writes the digits alone, without an exponent."""
    text = given.text()
    return text if given.format is Format.EXPONENT else text.partition("e")[0]


def _as_int64(value: float) -> int:
    """Convert as Go does on amd64: what does not fit becomes the lowest integer."""
    if math.isnan(value) or not _LOWEST <= value < _MAX_DIGITS:
        return _LOWEST
    return int(value)


def _wrapped(ns: int) -> int:
    return (ns - _LOWEST) % _WRAP + _LOWEST


def _number(value: float) -> float:
    return number(value) if math.isfinite(value) else value


def _power_of_ten(places: float) -> float:
    return 10.0**places if places <= 308 else math.inf


def _half_away(value: float) -> float:
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0 else -1
    return math.copysign(float(whole), value)


def _divided(value: float, by: float) -> float:
    if math.isinf(by):
        return math.nan if math.isinf(value) else math.copysign(0.0, value)
    return value / by
