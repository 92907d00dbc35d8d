"""Walking a document along its schema: unknown fields, wrong types, values outside their list.

Every finding has the path at which a person finds it again. What to do about a finding is the caller's choice: parsing
raises the first, the `lint` command prints all.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from engine.record import record

from .schema import Flag, Free, Later, ListOf, MapOf, MapOrList, Node, Shape, Text, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

    Path = tuple[str | int, ...]

DEEPEST = 60
"""How deep fields may nest; only foreach and attestors nest at all, and nobody reads ten levels of them."""


class Fault(Enum):
    """What is wrong with a field."""

    UNKNOWN = "unknown field"
    TYPE = "wrong type"
    VALUE = "wrong value"
    MISSING = "missing field"


@record
class Problem:
    """One finding: where, what, and for an unknown field the known name nearest to it."""

    path: tuple[str | int, ...]
    fault: Fault
    message: str
    nearest: str = ""


def path_text(path: Path) -> str:
    """Write a path as people do: `spec.rules[0].match`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def check(value: Json, node: Node, path: Path = ()) -> Iterator[Problem]:
    """Yield every problem of `value`; null counts as absent."""
    if value is None:
        return
    if len(path) > DEEPEST:
        yield Problem(path, Fault.VALUE, f"`{path_text(path)}` is nested too deeply")
        return
    match node:
        case Free():
            return
        case Later():
            yield from check(value, node.make(), path)
        case MapOrList():
            yield from check(value, node.as_list if isinstance(value, list) else node.as_map, path)
        case Shape():
            yield from _check_shape(value, node, path)
        case ListOf() if isinstance(value, list):
            for index, item in enumerate(value):
                at = (*path, index)
                if item is None:
                    yield Problem(at, Fault.TYPE, f"`{path_text(at)}` must not be null")
                yield from check(item, node.items, at)
        case MapOf() if isinstance(value, dict):
            for key, item in value.items():
                yield from check(item, node.values, (*path, key))
        case _:
            yield from _check_scalar(value, node, path)


def _check_shape(value: Json, node: Shape, path: Path) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield _wrong_type(value, "a map", path)
        return
    for name in node.required:
        if value.get(name) is None:
            at = (*path, name)
            yield Problem(at, Fault.MISSING, f"`{path_text(at)}` is required")
    for name, item in value.items():
        at = (*path, name)
        if known := node.fields.get(name):
            yield from check(item, known, at)
        elif not node.open:
            yield Problem(
                at, Fault.UNKNOWN, f"unknown field `{path_text(at)}`", _nearest(name, node)
            )


def _check_scalar(value: Json, node: Node, path: Path) -> Iterator[Problem]:
    match node:
        case Text() if isinstance(value, str):
            if node.enum and value not in node.enum:
                choices = ", ".join(f"`{item}`" for item in node.enum)
                yield Problem(
                    path,
                    Fault.VALUE,
                    f"`{path_text(path)}` is `{value}`, but must be one of {choices}",
                )
            elif node.longest is not None and len(value) > node.longest:
                text = f"`{path_text(path)}` is longer than {node.longest} characters"
                yield Problem(path, Fault.VALUE, text)
        case Flag() if isinstance(value, bool):
            return
        case Whole() if _is_whole(value):
            if not _is_within(int(value), node):
                yield Problem(path, Fault.VALUE, f"`{path_text(path)}` must be {_bounds(node)}")
        case _:
            yield _wrong_type(value, _WANTED[type(node)], path)


_WANTED: dict[type, str] = {
    Text: "a string",
    Flag: "true or false",
    Whole: "a whole number",
    ListOf: "a list",
    MapOf: "a map",
}


def _is_whole(value: Json) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _is_within(value: int, node: Whole) -> bool:
    return (node.least is None or value >= node.least) and (node.most is None or value <= node.most)


def _bounds(node: Whole) -> str:
    if node.most is None:
        return f"at least {node.least}"
    return f"at most {node.most}" if node.least is None else f"from {node.least} to {node.most}"


def _wrong_type(value: Json, wanted: str, path: Path) -> Problem:
    return Problem(
        path, Fault.TYPE, f"`{path_text(path)}` must be {wanted}, but is {_type_name(value)}"
    )


def _type_name(value: Json) -> str:
    match value:
        case bool():
            return "true or false"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a map"
    return type(value).__name__


def _nearest(name: str, node: Shape) -> str:
    """Return the known field that a person most likely meant; letter case is the first thing forgiven."""
    by_lower = {known.lower(): known for known in node.fields}
    from difflib import get_close_matches  # here: nothing is misspelt in most runs

    found = get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else ""
