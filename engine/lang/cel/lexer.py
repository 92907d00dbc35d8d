"""Expressions as words: one regular expression, a list of tokens with positions.

For the parser only. What a literal is worth stands in `literals`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .errors import CelSyntaxError

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
_TOKEN: Final = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f]+|//[^\n]*)+)
  | (?P<text>[bB]?[rR]?(?:\"{3}|'{3}|"|'))
  | (?P<number>0x[0-9a-fA-F]+[uU]?|(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+[uU]?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<mark>&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])
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
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise CelSyntaxError(f"token recognition error at: `{source[at]}`", source, at)
        kind, end = str(found.lastgroup), found.end()
        if kind == "text":
            end = _text_end(source, found)
        if kind != "space":
            text = source[at:end]
            tokens.append(Token(text if kind == "mark" else kind, text, at))
        at = end
    tokens.append(Token("end", "", len(source)))
    return tokens


def _text_end(source: str, opening: re.Match[str]) -> int:
    start = opening.group()
    quote = start.lstrip("rRbB")
    raw = "r" in start[: len(start) - len(quote)].lower()
    found = _ENDS[quote, raw].match(source, opening.end())
    if found is None:
        raise CelSyntaxError("text literal has no end", source, opening.start())
    return found.end()
