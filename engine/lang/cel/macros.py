"""Macros: calls that are syntax, because an argument is a name or is evaluated many times or not at all.

Expanded while parsing (language definition, "Macros", with the extensions of two names, optionals and bindings).
"""

from __future__ import annotations

from typing import Final

from .ast import Bind, Comprehension, Ident, Node, Select
from .lexer import LiteralError

_ONE_NAME: Final = {
    ("all", 2), ("exists", 2), ("exists_one", 2), ("existsOne", 2), ("filter", 2), ("map", 2),
    ("map", 3), ("sortBy", 2),
}  # fmt: skip
_TWO_NAMES: Final = {
    ("all", 3), ("exists", 3), ("exists_one", 3), ("existsOne", 3), ("transformList", 3),
    ("transformList", 4), ("transformMap", 3), ("transformMap", 4), ("transformMapEntry", 3),
    ("transformMapEntry", 4),
}  # fmt: skip
_SAME: Final = {"existsOne": "exists_one"}
MACROS: Final = (
    "has(e.f)", "e.all(x, p)", "e.all(k, v, p)", "e.exists(x, p)", "e.exists(k, v, p)", "e.exists_one(x, p)",
    "e.existsOne(k, v, p)", "e.filter(x, p)", "e.map(x, t)", "e.map(x, p, t)", "e.sortBy(x, key)",
    "e.transformList(k, v, t)", "e.transformList(k, v, p, t)", "e.transformMap(k, v, t)",
    "e.transformMap(k, v, p, t)", "e.transformMapEntry(k, v, t)", "e.transformMapEntry(k, v, p, t)",
    "e.optMap(x, t)", "e.optFlatMap(x, t)", "cel.bind(x, value, e)",
)  # fmt: skip


def expand(target: Node | None, name: str, arguments: list[Node], at: int) -> Node | None:
    """Return what a call stands for when it is a macro, else None. Raises LiteralError with a position."""
    if target is None:
        return _has(arguments, at) if name == "has" and len(arguments) == 1 else None
    shape = (name, len(arguments))
    if shape in _ONE_NAME:
        return _over(target, name, arguments, at, names=1)
    if shape in _TWO_NAMES:
        return _over(target, name, arguments, at, names=2)
    if shape == ("bind", 3) and isinstance(target, Ident) and target.name == "cel":
        return Bind("bind", _name(arguments[0]), arguments[1], arguments[2], at=at)
    if shape in (("optMap", 2), ("optFlatMap", 2)):
        return Bind(name, _name(arguments[0]), target, arguments[1], at=at)
    return None


def _has(arguments: list[Node], at: int) -> Node:
    tested = arguments[0]
    if not isinstance(tested, Select) or tested.test or tested.optional:
        raise LiteralError("invalid argument to has() macro", at)
    return Select(tested.operand, tested.field, test=True, at=tested.at)


def _over(target: Node, name: str, arguments: list[Node], at: int, *, names: int) -> Node:
    first = _name(arguments[0])
    second = _name(arguments[1]) if names == 2 else ""
    if first == second:
        raise LiteralError(f"duplicate variable name: `{first}`", arguments[1].at)
    rest = arguments[names:]
    kept = rest[0] if len(rest) == 2 else None
    return Comprehension(_SAME.get(name, name), target, first, second, rest[-1], kept, at=at)


def _name(node: Node) -> str:
    if isinstance(node, Ident) and not node.absolute:
        return node.name
    raise LiteralError("argument must be a simple name", node.at)
