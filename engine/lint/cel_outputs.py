"""Checks of what CEL expressions come to: that a condition is a boolean, a mutation a configuration or a list of patches (row CP-33).

A type is known for certain or not at all: what only a checker of types could tell passes. Types are CEL's names, `list(T)` for
lists whose elements all have the type T, `list` for others, and the names of messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import cel
from engine.lang.cel import ast
from engine.lang.cel.ast import Ident, Index, Node, Select

from .findings import Finding, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DYNAMIC: Final = "dyn"
"""The type of what is read from an object."""

CONFIGURATION: Final = "Object"
PATCHES: Final = "list(JSONPatch)"

_COMPARING: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})
_OF_LITERALS: Final = {bool: "bool", int: "int", float: "double", str: "string", bytes: "bytes", type(None): "null_type"}  # fmt: skip
_OF_TESTS: Final = frozenset({"all", "exists", "exists_one", "existsOne"})


def check_output(text: object, path: str, *wanted: str, fault: str = "") -> Iterator[Finding]:
    """Yield an error, `fault`, where an expression comes to none of the `wanted` types, whatever it reads."""
    found = _type_of(tree) if (tree := _tree(text)) is not None else ""
    if found and not any(_may_be(found, one) for one in wanted):
        yield invalid(path, text, fault or f"output is expected to be of type {wanted[0]}")


def check_configuration(text: object, path: str) -> Iterator[Finding]:
    """Yield an error for each message of a configuration that bears another name than its place.

    What stands in `spec` of an `Object` is an `Object.spec`, and so on. Nothing that it says could ever be applied.
    """
    if (tree := _tree(text)) is not None:
        for name, expected in _misnamed(tree, CONFIGURATION):
            fault = (
                f'type mismatch: unexpected type name "{name}", expected "{expected}", which matches'
                " field name path from root Object type"
            )
            yield invalid(path, text, fault)


def _tree(text: object) -> Node | None:
    try:
        return cel.compile(str(text or "").strip()).tree
    except cel.CelSyntaxError:
        return None


def _may_be(found: str, wanted: str) -> bool:
    """Tell whether a type is the wanted one, or a list whose elements nobody knows where a list is wanted."""
    return found == wanted or (found == "list" and wanted.startswith("list("))


def _type_of(node: Node) -> str:
    """Return the name of the type that an expression has for certain, empty where that is not known."""
    match node:
        case ast.Literal():
            return _OF_LITERALS.get(type(node.value), "")
        case ast.Logic():
            return "bool"
        case ast.Unary():
            return "bool" if node.operator == "!" else ""
        case ast.Chain():
            return _of_chain(node)
        case ast.ListLiteral():
            return _list_of(_common(item for item, is_optional in node.items if not is_optional))
        case ast.MapLiteral():
            return "map"
        case ast.MessageLiteral():
            return node.name
        case ast.Comprehension():
            return _of_macro(node)
        case ast.Choice():
            return _of_choice(node)
        case _:
            return _of_read(node)


def _of_chain(node: ast.Chain) -> str:
    operators = {operator for operator, _, _ in node.rest}
    if operators & _COMPARING:
        return "bool"
    parts = [_type_of(one) for one in (node.first, *(part for _, part, _ in node.rest))]
    if operators == {"+"} and all(one.startswith("list") for one in parts):
        elements = {one for one in parts if one != "list"}
        return elements.pop() if len(elements) == 1 else "list"
    return ""


def _of_macro(node: ast.Comprehension) -> str:
    if node.kind in _OF_TESTS:
        return "bool"
    if node.kind == "map":
        return _list_of(_type_of(node.body))
    source = _type_of(node.source)
    return source if node.kind == "filter" and source.startswith("list") else ""


def _of_choice(node: ast.Choice) -> str:
    """Return the type of all branches; one that is an empty list, or a list of nobody knows what, takes that of the others."""
    found = {_type_of(one) for one in _branches(node)}
    if len(found) > 1 and all(one.startswith("list") for one in found):
        found.discard("list")
    return found.pop() if len(found) == 1 else ""


def _branches(node: ast.Choice) -> tuple[Node, ...]:
    return (*(body for _, body in node.cases), node.otherwise)


def _common(nodes: Iterable[Node]) -> str:
    found = {_type_of(one) for one in nodes}
    return found.pop() if len(found) == 1 else ""


def _list_of(element: str) -> str:
    return f"list({element})" if element and element != DYNAMIC else "list"


def _of_read(node: Node) -> str:
    if isinstance(node, Select) and node.test:
        return "bool"
    while isinstance(node, Select | Index) and not node.optional:
        node = node.operand
    return DYNAMIC if isinstance(node, Ident) and node.name in ("object", "oldObject") else ""


def _misnamed(node: Node, expected: str) -> Iterator[tuple[str, str]]:
    """Yield the names of messages in what an expression comes to, with those that their places ask for."""
    match node:
        case ast.MessageLiteral():
            if node.name != expected:
                yield node.name, expected
                return
            for field, value, _, _ in node.entries:
                yield from _misnamed(value, f"{expected}.{field}")
        case ast.ListLiteral():
            for item, _ in node.items:
                yield from _misnamed(item, expected)
        case ast.MapLiteral():
            for _, value, _ in node.entries:
                yield from _misnamed(value, expected)
        case ast.Choice():
            for branch in _branches(node):
                yield from _misnamed(branch, expected)
        case ast.Comprehension() if node.kind == "map":
            yield from _misnamed(node.body, expected)
        case ast.Bind() if node.kind == "bind":
            yield from _misnamed(node.body, expected)
