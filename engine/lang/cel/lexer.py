"""Expressions as words: one regular expression, a list of tokens with positions.

For the parser only. What a literal is worth stands in `literals`.
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from .errors import CelSyntaxError
from .values import MAX_INT, MAX_UINT, Uint

MAX_SOURCE: Final = 100_000
"""Characters of one expression; the API server refuses far smaller ones by their cost."""

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "namespace",
        "package",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SPACE: Final = re.compile(r"(?:[ \t\r\n\f]++|//[^\n]*+)*+")
_TOKEN: Final = re.compile(
    r"""
    (?:[ \t\r\n\f]++|//[^\n]*+)*+  # what stands between words goes with the next one: half the matches
  (?:
    (?P<text>[bB]?[rR]?(?:\"{3}|'{3}|"|'))
  | (?P<number>0x[0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<mark>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
  | (?P<end>\Z)
  )
    """,
    re.VERBOSE,
)
_ENDS: Final = {
    (quote, raw): re.compile(
        (r"(?:[^\\]|\\.)*?" if not raw else r".*?") + quote
        if len(quote) == 3
        else (rf"(?:[^\\\r\n{quote}]|\\[^\r\n])*" if not raw else rf"[^\r\n{quote}]*") + quote,
        re.DOTALL,
    )
    for quote in ('"""', "'''", '"', "'")
    for raw in (False, True)
}


class Token(NamedTuple):
    """One word: its kind (`text`, `number`, `name`, `escaped`, `end`, or the mark itself), text and position."""

    kind: str
    text: str
    at: int


def tokenize(source: str) -> list[Token]:
    """Split an expression into tokens, the last of kind `end`. Raises CelSyntaxError."""
    if len(source) > MAX_SOURCE:
        raise CelSyntaxError(f"expression is longer than {MAX_SOURCE} characters")
    tokens: list[Token] = []
    kind, end = "", 0
    while kind != "end":
        found = _TOKEN.match(source, end)
        if found is None:
            raise _unknown(source, end)
        kind = str(found.lastgroup)
        at, end = found.span(kind)
        if kind == "text":
            end = _text_end(source, found)
        text = source[at:end]
        tokens.append(Token(text if kind == "mark" else kind, text, at))
    return tokens


def _unknown(source: str, after: int) -> CelSyntaxError:
    space = _SPACE.match(source, after)
    at = space.end() if space else after
    return CelSyntaxError(f"token recognition error at: `{source[at]}`", source, at)


def _text_end(source: str, opening: re.Match[str]) -> int:
    start = opening["text"]
    quote = start.lstrip("rRbB")
    raw = "r" in start[: len(start) - len(quote)].lower()
    found = _ENDS[quote, raw].match(source, opening.end())
    if found is None:
        raise CelSyntaxError("text literal has no end", source, opening.start("text"))
    return found.end()


# Texts of literals and their values: strings with escapes, bytes, numbers.
#
# Apart from the lexer because the rules of escapes and of number ranges are a subject of their own (language definition,
# "String and Bytes Values" and "Numeric Values").

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
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
