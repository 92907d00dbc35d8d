"""Text of an expression to tokens, by upstream's rules.

The `jmespath` package reads literals, quotes and unknown characters differently (row V-22: between backticks stands JSON
and nothing else), so the parser is fed with these tokens. They have the form of that package's own tokens.
"""

from __future__ import annotations

import re
from typing import Any, Final

from .errors import ExpressionError
from .gojson import GoJsonError, decode

Token = dict[str, Any]

_PIECE: Final = re.compile(
    r"(?P<space>[ \t\n\r]+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>-[0-9]*|[0-9]+)"
    r"|(?P<symbol>\[\]|\[\?|\|\||&&|[<>!=]=|[.*,:{}\]()@\[|&<>!=])"
    r"|'(?P<raw>(?:[^'\\]|\\'|\\(?!'))*)'"
    r"|`(?P<json>(?:[^`\\]|\\.)*)`"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    r"|(?P<open>['`\"])",
    re.DOTALL,
)
_SYMBOLS: Final = {
    "[]": "flatten", "[?": "filter", "||": "or", "&&": "and", "<=": "lte", ">=": "gte", "!=": "ne",
    "==": "eq", ".": "dot", "*": "star", ",": "comma", ":": "colon", "{": "lbrace", "}": "rbrace",
    "]": "rbracket", "(": "lparen", ")": "rparen", "@": "current", "[": "lbracket", "|": "pipe",
    "&": "expref", "<": "lt", ">": "gt", "!": "not", "=": "unknown",
}  # fmt: skip


def tokenize(text: str) -> list[Token]:
    """Return the tokens of `text`, the last of type `eof`. Raises ExpressionError with upstream's text."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise ExpressionError(f"SyntaxError: Unknown char: {_quoted_char(text[at])}")
        at = found.end()
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(_token(kind, found.group(kind), found.start(), at))
    tokens.append(_new("eof", "", at, at))
    return tokens


def _new(kind: str, value: Any, start: int, end: int) -> Token:
    return {"type": kind, "value": value, "start": start, "end": end}


def _token(kind: str, text: str, start: int, end: int) -> Token:
    if kind == "name":
        return _new("unquoted_identifier", text, start, end)
    if kind == "symbol":
        return _new(_SYMBOLS[text], text, start, end)
    if kind == "number":
        return _new("number", text, start, end)
    if kind == "raw":
        return _new("string_literal", text.replace("\\'", "'"), start, end)
    if kind == "json":
        return _new("json_literal", text.replace("\\`", "`"), start, end)
    if kind == "quoted":
        return _new("quoted_identifier", _decoded(f'"{text}"'), start, end)
    raise ExpressionError(f"SyntaxError: Unclosed delimiter: {text}")


def _decoded(text: str) -> Any:
    try:
        return decode(text)
    except GoJsonError as error:
        raise ExpressionError(str(error)) from None


def _quoted_char(char: str) -> str:
    code = ord(char)
    named = {7: "\\a", 8: "\\b", 11: "\\v", 12: "\\f", 39: "\\'", 92: "\\\\"}
    if code in named:
        return f"'{named[code]}'"
    if code < 0x20 or code == 0x7F:
        return f"'\\x{code:02x}'"
    if char.isascii():
        return f"'{char}'"
    if 0xD800 <= code <= 0xDFFF:
        return "'\\ufffd'"
    return f"'\\u{code:04x}'" if code <= 0xFFFF else f"'\\U{code:08x}'"
