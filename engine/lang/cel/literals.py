"""Texts of literals and their values: strings with escapes, bytes, numbers.

Apart from the lexer because the rules of escapes and of number ranges are a subject of their own (language definition,
"String and Bytes Values" and "Numeric Values").
"""

from __future__ import annotations

import math
import re
from typing import Final

from .values import MAX_INT, MAX_UINT, Uint

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_HEX_LENGTHS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_ESCAPE: Final = re.compile(
    r"\\(?:([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|([0-3][0-7]{2})|(.?))", re.DOTALL
)
_PREFIX: Final = re.compile(r"[rRbB]{0,2}")
_LONGEST_NUMBER: Final = 1000


class LiteralError(ValueError):
    """A literal that has no value; `offset` is where in its text."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


def text_value(text: str) -> str | bytes:
    """Return the value of a quoted literal with its prefix. Raises LiteralError."""
    prefix = _PREFIX.match(text)
    flags = prefix.group().lower() if prefix else ""
    body = text[len(flags) :]
    width = 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1
    body = body[width:-width].replace("\r\n", "\n").replace("\r", "\n")
    if "b" in flags:
        return body.encode("utf-8", "surrogatepass") if "r" in flags else _bytes(body)
    return body if "r" in flags or "\\" not in body else _ESCAPE.sub(_char, body)


def _char(found: re.Match[str]) -> str:
    if found[3] is not None:
        if found[3] not in _SIMPLE:
            raise LiteralError("unable to unescape string", found.start())
        return _SIMPLE[found[3]]
    code = int(found[1][1:], 16) if found[1] else int(found[2], 8)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("escape is no Unicode character", found.start())
    return chr(code)


def _bytes(body: str) -> bytes:
    built = bytearray()
    last = 0
    for found in _ESCAPE.finditer(body):
        built += body[last : found.start()].encode("utf-8", "surrogatepass")
        built += _byte(found)
        last = found.end()
    built += body[last:].encode("utf-8", "surrogatepass")
    return bytes(built)


def _byte(found: re.Match[str]) -> bytes:
    if found[3] is not None:
        if found[3] not in _SIMPLE:
            raise LiteralError("unable to unescape bytes", found.start())
        return _SIMPLE[found[3]].encode()
    if found[1] and found[1][0] in "uU":
        raise LiteralError("bytes have no escapes of Unicode characters", found.start())
    return bytes([int(found[1][1:], 16) if found[1] else int(found[2], 8)])


def number_value(text: str, *, negative: bool = False) -> int | float | Uint:
    """Return the value of a number, negated if asked for. Raises LiteralError when it does not fit."""
    if len(text) > _LONGEST_NUMBER:
        raise LiteralError("number is too long")
    is_hex = text[:2] == "0x"
    if text[-1] in "uU":
        return _unsigned(text[:-1], is_hex=is_hex, negative=negative)
    if not is_hex and not text.isdigit():
        value = float(text)
        if math.isinf(value):
            raise LiteralError("invalid double literal")
        return -value if negative else value
    number = int(text, 16 if is_hex else 10)
    if number > MAX_INT + negative:
        raise LiteralError("invalid int literal")
    return -number if negative else number


def _unsigned(text: str, *, is_hex: bool, negative: bool) -> Uint:
    number = int(text, 16 if is_hex else 10)
    if number > MAX_UINT:
        raise LiteralError("invalid uint literal")
    if negative:
        raise LiteralError("uint cannot be negative")
    return Uint(number)
