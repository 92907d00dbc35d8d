r"""Where the variables of a policy's text stand: the innermost first, then those around them (rows V-01, V-03, V-04).

Only the text is looked at, once, before there is any value: what a variable comes to can open no braces of its own.
"""

from __future__ import annotations

from engine.errors import LimitError
from engine.lang.lazy_regex import regex

VARIABLE = regex(r"(?:^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})")
ESCAPED = regex(r"\\\{\{(?:\{[^{}]*\}|[^{}])*\}\}")

MAX_DEPTH = 16
"""How deep variables may stand in variables."""

_HOLE = " "
"""Stands for a variable that was found already, while what is around it is looked for."""


class Braces:
    """One `{{ … }}`: what stands between the braces."""

    __slots__ = ("items",)

    def __init__(self, items: Items) -> None:
        self.items = items


Item = str | Braces
Items = tuple[Item, ...]
"""A text in order: single characters, and the variables among them; what holds no variable may be one text."""


def cut(text: str) -> Items:
    """Return the items of `text`, without the backslash of what is escaped; raises LimitError for too deep a nesting."""
    items: list[Item] = list(text)
    flat = text
    for _ in range(MAX_DEPTH):
        found = [match.span(1) for match in VARIABLE.finditer(flat)]
        if not found:
            return _unescaped(items, flat)
        is_shallow = any(flat[start + 2] == "-" for start, _ in found)
        items, flat = _closed(items, flat, found)
        if is_shallow:
            return _unescaped(items, flat)
    raise LimitError(f"variables stand in variables more than {MAX_DEPTH} deep")


def _closed(items: list[Item], flat: str, found: list[tuple[int, int]]) -> tuple[list[Item], str]:
    """Put each variable that was found into the place of its text; returns the items, and the same with holes as text."""
    made: list[Item] = []
    shown: list[str] = []
    at = 0
    for start, end in found:
        made += items[at:start]
        made.append(Braces(_inside(items[start + 2 : end - 2], flat[start + 2 : end - 2])))
        shown += (flat[at:start], _HOLE)
        at = end
    return [*made, *items[at:]], "".join((*shown, flat[at:]))


def _inside(items: list[Item], flat: str) -> Items:
    """Return an expression without the `-` that makes it shallow and without space around it."""
    start = 1 if flat.startswith("-") else 0
    end = len(items)
    while start < end and _is_space(items[start]):
        start += 1
    while start < end and _is_space(items[end - 1]):
        end -= 1
    return tuple(items[start:end])


def _is_space(item: Item) -> bool:
    return isinstance(item, str) and item.isspace()


def _unescaped(items: list[Item], flat: str) -> Items:
    escapes = {match.start() for match in ESCAPED.finditer(flat)}
    return tuple(item for at, item in enumerate(items) if at not in escapes)
