r"""Placeholders `(( EXPR ))` in the values of templates of generating policies (row GP-15).

For whoever compiles a template, and for whoever asks beforehand what its expressions would do. `\((` stands for two
parentheses. Keys are left alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.lang import yaml
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Block, Json

MARK: Final = "(("
_OPEN: Final = re.compile(r"\\\(\(|\(\(")
_QUOTES: Final = "\"'"


@record
class Placeholder:
    """The expression between the parentheses, or (with `is_open`) what follows parentheses that nothing closes."""

    source: str
    is_open: bool = False


def documents_of(template: Block) -> list[Json]:
    """Return the documents of a template; raises EngineError for text that is no YAML."""
    return [one.value for one in yaml.load_all(str(template.get("value") or ""))]


def is_interpolated(template: Block) -> bool:
    """Tell whether the values of a template have placeholders."""
    return template.get("interpolate") == "cel"


def sources_of(template: Block) -> Iterator[str]:
    """Yield the expressions of a template; none of text that whoever compiles it refuses."""
    if not is_interpolated(template):
        return
    try:
        documents = documents_of(template)
    except EngineError:
        return
    waiting = [*documents]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield from (one.source for one in pieces(value) if isinstance(one, Placeholder))


def pieces(text: str) -> list[str | Placeholder]:
    """Return the pieces of a value: plain text and placeholders, in their order."""
    found: list[str | Placeholder] = []
    kept, at = "", 0
    while (opening := _OPEN.search(text, at)) is not None:
        kept += text[at : opening.start()]
        if opening[0].startswith("\\"):
            kept, at = f"{kept}{MARK}", opening.end()
            continue
        end = _end(text, opening.end())
        found += [kept] if kept else []
        if end < 0:
            return [*found, Placeholder(text[opening.end() :], is_open=True)]
        found.append(Placeholder(text[opening.end() : end]))
        kept, at = "", end + 2
    kept += text[at:]
    return [*found, kept] if kept or not found else found


def _end(text: str, start: int) -> int:
    """Return where `))` ends a placeholder: outside of texts and of the expression's own parentheses; -1 where nothing does."""
    depth, quote, at = 0, "", start
    while at < len(text):
        char = text[at]
        if quote:
            at += 1 if char == "\\" else 0
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif char == ")" and text.startswith("))", at):
            return at
        at += 1
    return -1
