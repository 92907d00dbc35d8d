"""The math extension: greatest and least, rounding, signs, bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from engine.lang.cel.arithmetic import whole
from engine.lang.cel.comparisons import NUMBERS
from engine.lang.cel.errors import CelError, no_overload
from engine.lang.cel.values import MAX_UINT, Uint, type_name

from .registry import Library

LIBRARY: Final = Library()
_BITS: Final = 64


def _numbers(values: tuple[Any, ...], name: str) -> list[Any]:
    is_list = len(values) == 1 and isinstance(values[0], list)
    items = list(values[0] if is_list else values)
    if not items:
        raise CelError(f"math.@{name}(list) argument must not be empty")
    if not all(type(item) in NUMBERS for item in items):
        shown = "" if is_list else f"({', '.join(map(type_name, values))})"
        raise no_overload(f"math.@{name}{shown}")
    return items


def _rounding(name: str, run: Callable[[float], float]) -> None:
    def rounded(value: float) -> float:
        return run(value) if math.isfinite(value) else value

    LIBRARY.add(f"math.{name}(double) -> double")(rounded)


def _half_away(value: float) -> float:
    below = math.floor(abs(value))
    size = below + 1 if abs(value) - below >= 0.5 else below
    return math.copysign(size, value)


_rounding("ceil", lambda value: math.copysign(math.ceil(value), value))
_rounding("floor", lambda value: math.copysign(math.floor(value), value) if value else value)
_rounding("trunc", lambda value: math.copysign(math.trunc(value), value))
_rounding("round", _half_away)


@LIBRARY.add("math.round(double, int) -> double", "math.round(int, int) -> double")
def _round_to(value: float, places: int) -> float:
    if not 0 <= places <= 100:
        raise CelError("precision must be between 0 and 100")
    number = float(value)
    factor = 10.0**places
    shifted = number * factor
    return _half_away(shifted) / factor if math.isfinite(shifted) else number


@LIBRARY.add("math.abs(int) -> int", "math.abs(double) -> double", "math.abs(uint) -> uint")
def _abs(value: Any) -> Any:
    if type(value) is Uint:
        return value
    return abs(value) if type(value) is float else whole(abs(value))


@LIBRARY.add("math.sign(int) -> int", "math.sign(double) -> double", "math.sign(uint) -> uint")
def _sign(value: Any) -> Any:
    if type(value) is float:
        return value if math.isnan(value) or value == 0 else math.copysign(1.0, value)
    return type(value)((value > 0) - (value < 0))


def _wrapped(value: int) -> int:
    value &= MAX_UINT
    return value - (1 << _BITS) if value >> (_BITS - 1) else value


def _shift_by(offset: int, name: str) -> int:
    if offset < 0:
        raise CelError(f"math.{name}() negative offset: {offset}")
    return min(offset, _BITS)


LIBRARY.declare(
    {
        "math.greatest(dyn...) -> dyn": lambda *values: max(_numbers(values, "max")),
        "math.least(dyn...) -> dyn": lambda *values: min(_numbers(values, "min")),
        ("math.sqrt(double) -> double", "math.sqrt(int) -> double", "math.sqrt(uint) -> double"): (
            lambda value: math.sqrt(value) if value >= 0 else math.nan
        ),
        "math.isNaN(double) -> bool": math.isnan,
        "math.isInf(double) -> bool": math.isinf,
        "math.isFinite(double) -> bool": math.isfinite,
        "math.bitAnd(int, int) -> int": operator.and_,
        "math.bitAnd(uint, uint) -> uint": lambda one, other: Uint(int(one) & int(other)),
        "math.bitOr(int, int) -> int": operator.or_,
        "math.bitOr(uint, uint) -> uint": lambda one, other: Uint(int(one) | int(other)),
        "math.bitXor(int, int) -> int": operator.xor,
        "math.bitXor(uint, uint) -> uint": lambda one, other: Uint(int(one) ^ int(other)),
        "math.bitNot(int) -> int": operator.invert,
        "math.bitNot(uint) -> uint": lambda value: Uint(~int(value) & MAX_UINT),
        "math.bitShiftLeft(int, int) -> int": (
            lambda value, offset: _wrapped(value << _shift_by(offset, "bitShiftLeft"))
        ),
        "math.bitShiftLeft(uint, int) -> uint": (
            lambda value, offset: Uint((int(value) << _shift_by(offset, "bitShiftLeft")) & MAX_UINT)
        ),
        "math.bitShiftRight(int, int) -> int": (
            lambda value, offset: _wrapped((value & MAX_UINT) >> _shift_by(offset, "bitShiftRight"))
        ),
        "math.bitShiftRight(uint, int) -> uint": (
            lambda value, offset: Uint(int(value) >> _shift_by(offset, "bitShiftRight"))
        ),
    }
)
