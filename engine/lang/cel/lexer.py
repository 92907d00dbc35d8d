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
