"""Checks of what CEL expressions come to: that a condition is a boolean, a mutation a configuration or a list of patches (row CP-33).

What is not known passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import cel
from engine.lang.cel import ast, types

from .findings import Finding, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.lang.cel.ast import Node
    from engine.lang.cel.types import Type

DYNAMIC: Final = types.DYN
"""The type of what is read from an object."""

CONFIGURATION: Final = "Object"
PATCHES: Final = "list(JSONPatch)"


def check_output(
    text: object, path: str, found: Type, *wanted: str, fault: str = ""
) -> Iterator[Finding]:
    """Yield an error, `fault`, where an expression that comes to a type `found` comes to none of the `wanted` ones."""
    if not any(_may_be(found, one) for one in wanted):
        yield invalid(path, text, fault or f"output is expected to be of type {wanted[0]}")


def check_configuration(text: object, path: str) -> Iterator[Finding]:
    """Yield an error for each message of a configuration that bears another name than its place.

    What stands in `spec` of an `Object` is an `Object.spec`, and so on. Nothing that it says could ever be applied.
    """
    if (program := cel.readable(text)) is not None:
        for name, expected in _misnamed(program.tree, CONFIGURATION):
            fault = (
                f'type mismatch: unexpected type name "{name}", expected "{expected}", which matches'
                " field name path from root Object type"
            )
            yield invalid(path, text, fault)


def _may_be(found: Type, wanted: str) -> bool:
    """Tell whether a type is the wanted one, as far as it is known; a map, or a list of whatever, by its name alone."""
    if found in (types.UNKNOWN, types.ERROR) or types.shown(found) == wanted:
        return True
    name, parts = types.head(found), types.parts(found)
    if wanted.startswith("list("):
        return name == "list" and any(types.mentions(part, types.UNKNOWN) for part in parts)
    return name == wanted != "list"


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
            for branch in node.outcomes:
                yield from _misnamed(branch, expected)
        case ast.Comprehension() if node.kind == "map":
            yield from _misnamed(node.body, expected)
        case ast.Bind() if node.kind == "bind":
            yield from _misnamed(node.body, expected)
