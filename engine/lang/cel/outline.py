"""The tree of an expression as indented text, for `cel parse`: what the compiler sees after macros are expanded."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

from .ast import Literal, Node
from .parser import parse
from .values import Uint

_HIDDEN: Final = ("at", "depth", "size")
_INDENT: Final = "  "


def outline(expression: str) -> str:
    """Return the tree, one node a line. Raises CelSyntaxError."""
    return "\n".join(_lines(parse(expression), 0))


def _lines(node: Node, depth: int) -> list[str]:
    indent = _INDENT * depth
    if isinstance(node, Literal):
        return [f"{indent}{_constant(node.value)}"]
    parts = [
        (field.name, getattr(node, field.name))
        for field in fields(node)
        if field.name not in _HIDDEN
    ]
    words = [f"{name}={value}" for name, value in parts if isinstance(value, str | bool) and value]
    lines = [" ".join((f"{indent}{type(node).__name__}", *words))]
    for name, value in parts:
        nested = _nested(value, depth + 2)
        if nested:
            lines += [f"{indent}{_INDENT}{name}:", *nested]
    return lines


def _constant(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    return f"{int(value)}u" if isinstance(value, Uint) else repr(value)


def _nested(value: Any, depth: int) -> list[str]:
    """Return the lines of the nodes in a field, and of the words that stand between them."""
    if isinstance(value, Node):
        return _lines(value, depth)
    if isinstance(value, list | tuple):
        lines = []
        for part in value:
            if isinstance(part, str):
                lines.append(f"{_INDENT * depth}{part}")
            lines += _nested(part, depth)
        return lines
    return []
