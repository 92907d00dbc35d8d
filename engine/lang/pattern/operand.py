"""One part of a string pattern: an optional operator and an operand (rows P-24 to P-26).

An operand may be a duration, a quantity and a wildcard text at once; which of them counts depends on the value it meets.
All three readings are made when the pattern is compiled.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from engine.lang import duration, gotext, quantity, wildcard
from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Test = Callable[[Json], bool]

_PREFIXES: Final = (">=", "<=", ">", "<", "!")
_EXACT: Final = 1 << 53
"""Whole numbers below this are the same as 64-bit floats, so they need not be written out to be compared."""
_NUMBER = r"([-|+]?[0-9]+(?:\.[0-9]+)?[A-Za-z]*)"
_RANGE = regex(rf"{_NUMBER}-{_NUMBER}")
_NOT_RANGE = regex(rf"{_NUMBER}!-{_NUMBER}")


def split_operator(text: str) -> tuple[str, str]:
    """Return the prefix operator (or an empty text) and the operand; shorter than two characters has none."""
    if len(text.encode("utf-8", "surrogatepass")) < 2:
        return "", text
    for prefix in _PREFIXES:
        if text.startswith(prefix):
            return prefix, text[len(prefix) :].strip()
    return "", text


def range_ends(text: str) -> tuple[str, str] | None:
    """Return the two ends when the text is an inclusive range `a-b` without a prefix operator."""
    sign, _ = split_operator(text)
    if "-" not in text:
        return None
    found = None if sign or _NOT_RANGE.fullmatch(text) else _RANGE.fullmatch(text)
    return (found[1], found[2]) if found else None


def compile_part(part: str) -> Test:
    """Compile one part of a string pattern, ranges included, into a test of scalar values."""
    sign, operand = split_operator(part)
    if sign:
        return _compare(sign, operand)
    found = _NOT_RANGE.fullmatch(part) if "-" in part else None
    if found:
        below, above = _compare("<", found[1]), _compare(">", found[2])
        return lambda value: below(value) or above(value)
    found = _RANGE.fullmatch(part) if "-" in part else None
    if found:
        least, most = _compare(">=", found[1]), _compare("<=", found[2])
        return lambda value: least(value) and most(value)
    return _compare("", part.strip())


def is_plain_literal(part: str) -> bool:
    """Tell whether a part equals only its own text: no operator, range, wildcard, number or duration."""
    return (
        part == part.strip()
        and split_operator(part)[0] == ""
        and not wildcard.has_wildcard(part)
        and not ("-" in part and (_RANGE.fullmatch(part) or _NOT_RANGE.fullmatch(part)))
        and duration.parse(part) is None
        and quantity.parse(part) is None
    )


def number_text(value: Json) -> str | None:
    """Return the text in which a scalar is compared as a number; null counts as `0`, booleans and the rest not at all."""
    if isinstance(value, str):
        return value
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return gotext.fixed(gotext.as_float(value))


def plain_text(value: Json) -> str | None:
    """Return the text in which a scalar is compared as a string; null, maps and lists have none."""
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    return gotext.exponent(gotext.as_float(value)) if isinstance(value, int | float) else None


_ORDER: Final[dict[str, Callable[[Json, Json], bool]]] = {
    "": operator.eq,
    "!": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _compare(sign: str, operand: str) -> Test:
    order, last = _ORDER[sign], _textual(operand, sign)
    span, amount = duration.parse(operand), quantity.parse(operand)
    if span is None and amount is None:
        return last
    number = None if amount is None else amount.number

    def test(value: Json) -> bool:
        if value.__class__ is int and number is not None and -_EXACT < value < _EXACT:
            return order(value, number)
        text = number_text(value)
        if text is None:
            return last(value)
        if span is not None:
            found = duration.parse(text)
            if found is not None:
                return order(found, span)
        if amount is not None:
            measured = quantity.parse(text)
            if measured is not None:
                return order(measured, amount)
        return last(value)

    return test


def _textual(operand: str, sign: str) -> Test:
    if sign not in ("", "!"):
        return lambda _value: False
    fits = wildcard.compiled(operand)
    wanted = sign == ""

    def test(value: Json) -> bool:
        text = plain_text(value)
        return text is not None and fits(text) is wanted

    return test
