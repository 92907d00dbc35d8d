"""Go's text forms of decoded JSON: `%v` as in Kyverno's messages, numbers of `strconv`, and `encoding/json`.

Messages, comparisons and hashes of policies contain these texts, so they are reproduced to the character.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.lazy_regex import regex

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from engine.model import Json

_DEEPEST: Final = 200
_LONGEST_INTEGER_BITS: Final = 14_000
_ESCAPED = regex(r'["\\<>&\x00-\x1f\u2028\u2029\ud800-\udfff]')
_DIGITS: Final = "[0-9]+(?:_[0-9]+)*"
_FLOAT = regex(rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?")
_BEGIN_NUMBERS: Final = frozenset("+-.0123456789")
_HEX_FLOAT = regex(
    r"[+-]?0[xX]_?(?:[0-9a-fA-F]+(?:_[0-9a-fA-F]+)*)?(?:\.[0-9a-fA-F]*)?[pP][+-]?[0-9]+"
)
_SPECIAL: Final = {"inf": math.inf, "infinity": math.inf}
_INTEGER = regex(r"[+-]?[0-9]+")
_INTEGER_DIGITS: Final = 19
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}


def as_float(value: float) -> float:
    """Return a number as the 64-bit float that Go reads from plain JSON; infinity for what is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def plain(value: Json) -> str:
    """Write a value as Go's `%v`: `map[a:1 b:[x y]]`, `<nil>`, `1.5`, `1e+21`."""
    return _plain(value, 0)


def _plain(value: Json, depth: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        check_depth(depth)
        entries = (f"{key}:{_plain(value[key], depth + 1)}" for key in sorted(value))
        return f"map[{' '.join(entries)}]"
    if isinstance(value, list | tuple):
        check_depth(depth)
        return f"[{' '.join([_plain(item, depth + 1) for item in value])}]"
    return "<nil>" if value is None else _scalar(value, general)


def compact_json(value: Json) -> str:
    """Write a value as Go's `json.Marshal`: sorted keys, no spaces, `<`, `>` and `&` escaped.

    Raises EvaluationError for numbers that JSON cannot carry.
    """
    return _json(value, 0)


def _json(value: Json, depth: int) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        check_depth(depth)
        entries = (f"{quoted(key)}:{_json(value[key], depth + 1)}" for key in sorted(value))
        return f"{{{','.join(entries)}}}"
    if isinstance(value, list | tuple):
        check_depth(depth)
        return f"[{','.join([_json(item, depth + 1) for item in value])}]"
    return "null" if value is None else _scalar(value, json_number)


def quoted(text: str) -> str:
    """Write a string as Go's JSON encoder does, quotes included."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    if "\ud800" <= character <= "\udfff":
        return "\\ufffd"
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _scalar(value: Json, number: Callable[[float], str]) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        return integer(value)
    return str(value)


def integer(value: int) -> str:
    """Write a whole number; LimitError when it has thousands of digits."""
    if value.bit_length() > _LONGEST_INTEGER_BITS:
        raise LimitError("number with thousands of digits")
    return int.__repr__(value)


def general(value: float) -> str:
    """Write a float as `%v` does: plain digits from 1e-4 up to, not including, 1e6, else with an exponent."""
    if not math.isfinite(value):
        return _special(value)
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e6):
        return exponent(value, letter="e")
    return shortest(value)


def json_number(value: float) -> str:
    """Write a float as Go's JSON encoder does: `1`, `1e+21`, `1e-7`."""
    if not math.isfinite(value):
        raise EvaluationError(f"json: unsupported value: {_special(value)}")
    size = abs(value)
    if size and not 1e-6 <= size < 1e21:
        text = exponent(value, letter="e")
        return text[:-2] + text[-1] if text[-4:-1] == "e-0" else text
    return shortest(value)


def shortest(value: float) -> str:
    """Write a float with the fewest digits that read back the same, never with an exponent (`'f', -1`)."""
    if not math.isfinite(value):
        return _special(value)
    sign, digits, power = _decimals(value)
    if power <= 0:
        return f"{sign}0.{'0' * -power}{digits}" if digits != "0" else f"{sign}0"
    if power >= len(digits):
        return f"{sign}{digits}{'0' * (power - len(digits))}"
    return f"{sign}{digits[:power]}.{digits[power:]}"


def fixed(value: float, places: int = 6) -> str:
    """Write a float with so many digits after the point (`'f', places`; `%f` has six)."""
    return f"{value:.{places}f}" if math.isfinite(value) else _special(value)


def exponent(value: float, *, letter: str = "E") -> str:
    """Write a float as shortest digits and an exponent of at least two digits (`'E', -1`): `1.5E+00`."""
    if not math.isfinite(value):
        return _special(value)
    sign, digits, power = _decimals(value)
    power = power - 1 if digits != "0" else 0
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{sign}{mantissa}{letter}{'-' if power < 0 else '+'}{abs(power):02d}"


def _decimals(value: float) -> tuple[str, str, int]:
    """Split a finite float into sign, shortest digits, and the place of the point before or within them."""
    text = repr(float(value))
    sign = "-" if text[0] == "-" else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    place = len(whole) + int(power or "0") - (len(whole + fraction) - len(digits))
    return sign, digits.rstrip("0") or "0", place


def parse_integer(text: str) -> int | None:
    """Read a decimal number of 64 bits as `strconv.ParseInt` does; None when the text is none."""
    if _INTEGER.fullmatch(text) is None:
        return None
    digits = text.lstrip("+-").lstrip("0") or "0"
    if len(digits) > _INTEGER_DIGITS:
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if -(1 << 63) <= value < 1 << 63 else None


def parse_float(text: str) -> float | None:
    """Read a number as `strconv.ParseFloat` does (`1_000`, `0x1p4`, `inf`); None when it is none or does not fit."""
    is_number = text[:1] in _BEGIN_NUMBERS
    if is_number and _FLOAT.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    if is_number and _HEX_FLOAT.fullmatch(text):
        return _parse_hex(text.replace("_", ""))
    word = text.lower()
    if word == "nan":
        return math.nan
    sign = -1 if word[:1] == "-" else 1
    special = _SPECIAL.get(word[1:] if word[:1] in ("+", "-") else word)
    return None if special is None else sign * special


def _parse_hex(text: str) -> float | None:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        return None


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def check_depth(depth: int) -> None:
    """Raise LimitError for a value that is nested deeper than any that is written."""
    if depth >= _DEEPEST:
        raise LimitError(f"value nested more than {_DEEPEST} levels deep")
