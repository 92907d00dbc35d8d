r"""Where the variables of a policy's text stand: the innermost first, then those around them (rows V-01, V-03, V-04).

Only the text is looked at, once, before there is any value: what a variable comes to can open no braces of its own.
"""

from __future__ import annotations

import re

from engine.errors import LimitError

VARIABLE = re.compile(r"(?:^|[^\\])(\{\{(?:\{[^{}]*\}|[^{}])*\}\})")
ESCAPED = re.compile(r"\\\{\{(?:\{[^{}]*\}|[^{}])*\}\}")

MAX_ROUNDS = 64
"""How deep variables may stand in variables; also how often values are read again where that is asked for."""

_HOLE = " "
"""Stands for a variable that was found already, while what is around it is looked for."""


class Braces:
    """One `{{ … }}`: what stands between the braces."""

    __slots__ = ("items",)

    def __init__(self, items: Items) -> None:
        self.items = items


Item = str | Braces
Items = tuple[Item, ...]
"""A text in order: single characters, and the variables among them."""


def cut(text: str) -> Items:
    """Return the items of `text`, without the backslash of what is escaped; raises LimitError for too deep a nesting."""
    items: list[Item] = list(text)
    for _ in range(MAX_ROUNDS):
        found = [match.span(1) for match in VARIABLE.finditer(_flat(items))]
        if not found:
            return _unescaped(items)
        shallow = False
        for start, end in reversed(found):
            shallow = shallow or items[start + 2] == "-"
            items[start:end] = [Braces(_inside(items[start + 2 : end - 2]))]
        if shallow:
            return _unescaped(items)
    raise LimitError(f"variables stand in variables more than {MAX_ROUNDS} deep")


def _flat(items: list[Item]) -> str:
    return "".join(item if isinstance(item, str) else _HOLE for item in items)


def _inside(items: list[Item]) -> Items:
    """Return an expression without the `-` that makes it shallow and without space around it."""
    flat = _flat(items)
    start = 1 if flat.startswith("-") else 0
    end = len(items)
    while start < end and _is_space(items[start]):
        start += 1
    while start < end and _is_space(items[end - 1]):
        end -= 1
    return tuple(items[start:end])


def _is_space(item: Item) -> bool:
    return isinstance(item, str) and item.isspace()


def _unescaped(items: list[Item]) -> Items:
    escapes = [match.start() for match in ESCAPED.finditer(_flat(items))]
    for start in reversed(escapes):
        del items[start]
    return tuple(items)
