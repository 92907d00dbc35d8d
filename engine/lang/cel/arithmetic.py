"""Operators: `+ - * / %`, `-` and `!` before an operand, and the relations.

64-bit numbers that overflow are errors, never wrapped; dividing whole numbers goes toward zero (language definition,
"Arithmetic Operators").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from .ast import Chain, ListLiteral, Literal, Unary
from .comparisons import ORDERS, alike, comparable, contains, equal
from .errors import CelError, no_operator
from .values import FIRST_MOMENT, LAST_MOMENT, MAX_INT, MAX_UINT, MIN_INT, Duration, Timestamp, Uint

if TYPE_CHECKING:
    from collections.abc import Callable

    from .compiler import Closure, Compiler, Frame
    from .env import CelEnv


def whole(value: int) -> int:
    """Return a whole number. Raises CelError when it does not fit 64 bits."""
    if MIN_INT <= value <= MAX_INT:
        return value
    raise CelError("integer overflow")


def unsigned(value: int) -> Uint:
    """Return an unsigned number. Raises CelError when it does not fit."""
    if 0 <= value <= MAX_UINT:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def timestamp(ns: int) -> Timestamp:
    """Return a moment. Raises CelError outside the years 1 to 9999."""
    if FIRST_MOMENT <= ns <= LAST_MOMENT:
        return Timestamp(ns)
    raise CelError("timestamp overflow")


def duration(ns: int) -> Duration:
    """Return a span. Raises CelError when it does not fit 64 bits."""
    if MIN_INT <= ns <= MAX_INT:
        return Duration(ns)
    raise CelError("integer overflow")


def compile_unary(compiler: Compiler, node: Unary) -> Closure:
    """Compile `!e` and `-e`."""
    operand = compiler.compile(node.operand)
    return _not(operand, node) if node.operator == "!" else _negative(operand, node)


def _not(operand: Closure, node: Unary) -> Closure:
    def run(frame: Frame) -> bool:
        value = operand(frame)
        if value is True:
            return False
        if value is False:
            return True
        raise no_operator("!_", value, node.at)

    return run


def _negative(operand: Closure, node: Unary) -> Closure:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is float:
            return -value
        if type(value) is int and value != MIN_INT:
            return -value
        if type(value) is int:
            raise CelError("integer overflow", node.at)
        raise no_operator("-_", value, node.at)

    return run


def compile_chain(compiler: Compiler, node: Chain) -> Closure:
    """Compile operators of one precedence, from left to right."""
    operator, part, at = node.rest[0]
    if len(node.rest) > 1:
        return _fold(compiler, node)
    if operator in ("==", "!="):
        return _equality(compiler, node, part, negated=operator == "!=")
    if operator == "in" and (texts := _texts(part)) is not None:
        return _among(compiler.compile(node.first), texts)
    left, right = compiler.compile(node.first), compiler.compile(part)
    if operator in ORDERS:
        return _relation(left, right, operator, at)
    if operator == "in" and isinstance(node.first, Literal) and type(node.first.value) is str:
        return _is_key(node.first.value, right, at)
    operation = OPERATIONS[operator]

    def run(frame: Frame) -> Any:
        one, other = left(frame), right(frame)
        try:
            return operation(one, other, frame[1])
        except CelError as error:
            raise located(error, at) from None

    return run


def _is_key(text: str, right: Closure, at: int) -> Closure:
    """Look a constant text up among the keys of a map; what is no map is asked as by any other value."""
    operation = OPERATIONS["in"]

    def run(frame: Frame) -> Any:
        collection = right(frame)
        if type(collection) is dict:
            return text in collection
        try:
            return operation(text, collection, frame[1])
        except CelError as error:
            raise located(error, at) from None

    return run


def _texts(part: Any) -> frozenset[str] | None:
    """Return the texts of a list that holds nothing but literal texts, None for anything else."""
    if not isinstance(part, ListLiteral):
        return None
    texts: list[str] = []
    for item, is_optional in part.items:
        if is_optional or not isinstance(item, Literal) or type(item.value) is not str:
            return None
        texts.append(item.value)
    return frozenset(texts)


def _among(left: Closure, texts: frozenset[str]) -> Closure:
    """Look a value up in constant texts, which nothing but a text equals."""

    def run(frame: Frame) -> bool:
        value = left(frame)
        return type(value) is str and value in texts

    return run


def located(error: CelError, at: int) -> CelError:
    """Return an error with its position, if it has none yet."""
    if error.position < 0:
        error.position = at
    return error


def _fold(compiler: Compiler, node: Chain) -> Closure:
    first = compiler.compile(node.first)
    rest = tuple((OPERATIONS[name], compiler.compile(part), at) for name, part, at in node.rest)

    def run(frame: Frame) -> Any:
        value = first(frame)
        for operation, part, at in rest:
            other = part(frame)
            try:
                value = operation(value, other, frame[1])
            except CelError as error:
                raise located(error, at) from None
        return value

    return run


def _equality(compiler: Compiler, node: Chain, part: Any, *, negated: bool) -> Closure:
    left = compiler.compile(node.first)
    if isinstance(part, Literal) and type(part.value) in (str, bool, type(None)):
        return _equal_to(left, part.value, negated=negated)
    right = compiler.compile(part)
    if isinstance(part, Literal) and type(part.value) is int:
        return _equal_to_int(left, part.value, negated=negated)

    def run(frame: Frame) -> bool:
        return equal(left(frame), right(frame), frame[1]) is not negated

    return run


def _equal_to_int(left: Closure, constant: int, *, negated: bool) -> Closure:
    def run(frame: Frame) -> bool:
        value = left(frame)
        same = value == constant if type(value) is int else equal(value, constant, frame[1])
        return same is not negated

    return run


def _equal_to(left: Closure, constant: Any, *, negated: bool) -> Closure:
    """Compare with a constant whose type equals nothing but itself."""
    if type(constant) is not str:
        return lambda frame: (left(frame) is constant) is not negated
    if negated:
        return lambda frame: left(frame) != constant
    return lambda frame: bool(left(frame) == constant)


def _relation(left: Closure, right: Closure, operator: str, at: int) -> Closure:
    compare = ORDERS[operator]

    def run(frame: Frame) -> bool:
        one, other = left(frame), right(frame)
        if comparable(one, other):
            if type(one) is not type(other):
                one, other = alike(one, other)
            return compare(one, other)
        raise no_operator(f"_{operator}_", one, at)

    return run


def _add(one: Any, other: Any, env: CelEnv) -> Any:
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return whole(one + other)
        if kind is list and not other:
            return one
        if kind in (str, bytes, list):
            env.charge((len(one) + len(other)) // 8)
            return one + other
        if kind is float:
            return one + other
        if kind is Uint:
            return unsigned(int(one) + int(other))
        if kind is Duration:
            return duration(one.ns + other.ns)
    return _add_mixed(one, other, env)


def _add_mixed(one: Any, other: Any, env: CelEnv) -> Any:
    kinds = (type(one), type(other))
    if kinds in ((Timestamp, Duration), (Duration, Timestamp)):
        return timestamp(one.ns + other.ns)
    if isinstance(one, list) and isinstance(other, list):
        env.charge((len(one) + len(other)) // 8)
        return [*one, *other]
    raise no_operator("_+_", one)


def _subtract(one: Any, other: Any, _env: CelEnv) -> Any:
    kinds = (type(one), type(other))
    if kinds == (int, int):
        return whole(one - other)
    if kinds == (float, float):
        return one - other
    if kinds == (Uint, Uint):
        return unsigned(int(one) - int(other))
    if kinds == (Timestamp, Duration):
        return timestamp(one.ns - other.ns)
    if kinds in ((Timestamp, Timestamp), (Duration, Duration)):
        return duration(one.ns - other.ns)
    raise no_operator("_-_", one)


def _multiply(one: Any, other: Any, _env: CelEnv) -> Any:
    kinds = (type(one), type(other))
    if kinds == (int, int):
        return whole(one * other)
    if kinds == (float, float):
        return one * other
    if kinds == (Uint, Uint):
        return unsigned(int(one) * int(other))
    raise no_operator("_*_", one)


def _divide(one: Any, other: Any, _env: CelEnv) -> Any:
    kinds = (type(one), type(other))
    if kinds == (float, float):
        return _quotient(one, other)
    if kinds not in ((int, int), (Uint, Uint)):
        raise no_operator("_/_", one)
    if other == 0:
        raise CelError("division by zero")
    if kinds == (Uint, Uint):
        return Uint(int(one) // int(other))
    size = abs(one) // abs(other)
    return whole(size if (one < 0) == (other < 0) else -size)


def _quotient(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if one == 0 or math.isnan(one):
        return math.nan
    return math.copysign(math.inf, one) * math.copysign(1, other)


def _remainder(one: Any, other: Any, _env: CelEnv) -> Any:
    kinds = (type(one), type(other))
    if kinds not in ((int, int), (Uint, Uint)):
        raise no_operator("_%_", one)
    if other == 0:
        raise CelError("modulus by zero")
    if kinds == (Uint, Uint):
        return Uint(int(one) % int(other))
    if one == MIN_INT and other == -1:
        raise CelError("integer overflow")
    rest = abs(one) % abs(other)
    return -rest if one < 0 else rest


OPERATIONS: Final[dict[str, Callable[[Any, Any, CelEnv], Any]]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "in": lambda value, collection, env: contains(collection, value, env),
}
