"""What a single YAML scalar means: the rules of go-yaml 2 followed by the trip through JSON.

Used by the builder, once per distinct text. Apart from it because these rules are a table to be
checked line by line. Only ASCII digits are digits, and numbers end as `int` within 64 bits with sign, else as `float`, as
Go's reading of JSON leaves them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    import re

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
UINT64_MAX: Final = (1 << 64) - 1

Scalar = str | int | float | bool | None
Number = int | float

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_NUMERIC_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = regex(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))"
)
_BASES: Final = (16, 2, 8, 10)
_DECIMAL: Final = 5
_SIGNED_BITS: Final = regex(r"(-?)0b([+-]?)([01]+)")
_FLOAT: Final = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_POINT_FLOAT: Final = regex(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_KEY_POWER: Final = 6
"""Power of ten from which Go's shortest `g` form takes an exponent."""
_LONGEST_INTEGER: Final = 80
"""Digits beyond which no notation fits 64 bits, unless they are leading zeros; those are stripped first."""


def resolve_plain(text: str) -> Scalar:
    """Return what an unquoted scalar without tag means; floats may still be infinite or not a number."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    if text[0] == ".":
        return _finite(text) if _POINT_FLOAT.fullmatch(text) else text
    number = _number(text.replace("_", ""))
    return text if number is None else number


def _number(plain: str) -> Scalar:
    """Return the number written as `plain`, or None."""
    whole = _integer(plain)
    if whole is not None:
        return whole
    if _FLOAT.fullmatch(plain):
        value = _finite(plain)
        return value if isinstance(value, float) else None
    bits = _SIGNED_BITS.fullmatch(plain)
    return _signed_bits(bits) if bits else None


def _integer(plain: str) -> int | None:
    """Return an integer of any of Go's notations if it fits 64 bits (unsigned ones only without a sign)."""
    found = _INTEGER.fullmatch(plain)
    if found is None:
        return None
    sign = found[1]
    # one of the groups 2 to 5, each a notation with its base, holds the digits
    group = found.lastindex or _DECIMAL
    digits = found[group].lstrip("0") or "0"
    if len(digits) > _LONGEST_INTEGER:
        return None
    value = int(sign + digits, _BASES[group - 2])
    return value if INT64_MIN <= value <= (INT64_MAX if sign else UINT64_MAX) else None


def _signed_bits(found: re.Match[str]) -> int | None:
    """Return go-yaml's lenient reading of `0b-101`; a second sign after a first is no number."""
    if found[1] and found[2]:
        return None
    digits = found[3].lstrip("0") or "0"
    if len(digits) > _LONGEST_INTEGER:
        return None
    value = int((found[1] or found[2]) + digits, 2)
    return value if INT64_MIN <= value <= INT64_MAX else None


def _finite(text: str) -> float | str:
    """Return the float, or the text itself where it is out of range (Go reports a range error and keeps the text)."""
    value = float(text)
    return text if value in (float("inf"), float("-inf")) else value


def through_json(value: Number) -> Number:
    """Return the number that is left after Go writes it as JSON and reads it back.

    Whole floats below 1e21 are written without a point and so return as integers; integers beyond 64 bits with sign return as
    floats. The value must be finite.
    """
    if isinstance(value, float):
        if not value.is_integer() or abs(value) >= 1e21:
            return value
        value = _shortest_whole(value)
    return value if INT64_MIN <= value <= INT64_MAX else float(value)


def _shortest_whole(value: float) -> int:
    """Return the integer spelt by the shortest digits that give this float, padded with zeros (not its exact value)."""
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return int(value)
    sign, mantissa = ("-", mantissa[1:]) if mantissa[0] == "-" else ("", mantissa)
    before, _, after = mantissa.partition(".")
    return int(sign + before + after.ljust(int(exponent), "0"))


def key_text(value: Number | bool) -> str:
    """Return the text that a number or truth value becomes as a key; floats are written with 32-bit precision."""
    if value is True or value is False:
        return "true" if value else "false"
    return _float_key(value) if isinstance(value, float) else str(value)


def _float_key(value: float) -> str:
    """Return Go's shortest `g` form of the value as a 32-bit float."""
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    if single != single:
        return ".nan"
    if single in (float("inf"), float("-inf")):
        return ".inf" if single > 0 else "-.inf"
    return _shortest_single(single)


def _shortest_single(single: float) -> str:
    """Return the fewest digits that give this 32-bit float again."""
    for digits in range(9):
        text = f"{single:.{digits}e}"
        if struct.pack("<f", float(text)) == struct.pack("<f", single):
            break
    mantissa, _, exponent = text.partition("e")
    power = int(exponent)
    if power < -4 or power >= _KEY_POWER:
        return f"{mantissa}e{exponent}"
    return f"{single:.{max(digits - power, 0)}f}"
