"""Objects held against what their kinds are made of, as server-side apply does before it merges.

A configuration may name only fields that its kind has, with values of their types, list elements that can be told apart, and
nothing that changes only as a whole. Kinds that `fields` does not describe, custom resources among them, are not looked at.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import gotext
from engine.lang.goquote import go_syntax, quote
from engine.record import record

from .fields import KINDS, TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.model import Json, Object

_DEFINED: Final = re.compile(r"(~?[A-Z]\w*): ")
_WHAT: Final = re.compile(r"^(~?\{\}|\[~\]|\[[\w,]*\])?(~?)(.+)$")
KEY_DEFAULTS: Final[Mapping[str, str]] = {"protocol": "TCP"}
"""What a merge key that is left out counts as."""


@record
class Type:
    """What a field holds: `form` tells text, number, truth value, scalar, map, list, type with fields, or anything.

    `below` says the same of the elements of a list or of the values of a map, `keys` what tells elements apart: None where nothing
    does, nothing at all for a set. `is_whole` is what changes only as a whole. `name` is of a type with fields.
    """

    form: str
    name: str = ""
    below: Type | None = None
    keys: tuple[str, ...] | None = None
    is_whole: bool = False


_ANY: Final = Type("*")


def type_of(api_version: Json, kind: Json) -> Type | None:
    """Return the type of a kind, None for one that is not described."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    return _described().get((api_version, kind))


@cache
def _described() -> Mapping[tuple[str, str], Type]:
    return {
        (api_version, kind): Type("type", kind)
        for api_version, kinds in KINDS.items()
        for kind in kinds.split()
    }


@cache
def _written() -> Mapping[str, tuple[bool, str]]:
    """Return what is written of each type: whether it changes only as a whole, and its fields."""
    parts = _DEFINED.split(" ".join(TYPES.split()))
    return {
        name.removeprefix("~"): (name.startswith("~"), text)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


@cache
def _fields(name: str) -> Mapping[str, Type]:
    found: dict[str, Type] = {}
    for group in _written()[name][1].split(";"):
        what, *names = group.split()
        found.update(dict.fromkeys(names, _read(what)))
    return found


def _read(what: str) -> Type:
    [(container, is_whole, name)] = _WHAT.findall(what)
    below = Type(name) if name in "snb.*" else Type("type", name, is_whole=bool(is_whole))
    if not container:
        return below
    if container.endswith("{}"):
        return Type("map", below=below, is_whole=container.startswith("~"))
    if container == "[~]":
        return Type("list", below=below, is_whole=True)
    return Type("list", below=below, keys=tuple(filter(None, container[1:-1].split(","))))


def check_configuration(configuration: Object, kind: Type, *, may_replace: bool) -> None:
    """Raise EvaluationError for a configuration that does not fit its kind.

    It says nothing of its kind itself. `may_replace` lets it set what changes only as a whole.
    """
    said = {key: value for key, value in configuration.items() if key not in ("apiVersion", "kind")}
    _raise(_mistakes(said, kind, "", is_strict=True), "patch")
    if not may_replace and (wholes := ", ".join(_wholes(said, kind, ""))):
        text = f"may not mutate atomic arrays, maps or structs: {wholes}"
        raise EvaluationError(f"error applying patch: invalid ApplyConfiguration: {text}")


def check_original(obj: Object, kind: Type) -> None:
    """Raise EvaluationError for an object that does not fit its kind; elements of lists are not looked at, as upstream's are not."""
    _raise(_mistakes(obj, kind, "", is_strict=False), "original")


def _raise(found: Iterator[tuple[str, str]], what: str) -> None:
    mistakes = [f"{path}: {text}" if path else text for path, text in found]
    if mistakes:
        said = mistakes[0] if len(mistakes) == 1 else "\n  ".join(["errors:", *mistakes])
        text = f"failed to convert {what} object to typed object: {said}"
        raise EvaluationError(f"error applying patch: {text}")


def _mistakes(value: Json, kind: Type, path: str, *, is_strict: bool) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a value, and where; null fits everywhere."""
    if value is None or kind.form == "*":
        return
    if kind.form in _SCALARS:
        is_right, text = _SCALARS[kind.form]
        if not is_right(value):
            yield path, text(value)
    elif kind.form == "list":
        yield from _in_list(value, kind, path, is_strict=is_strict)
    elif not isinstance(value, dict):
        yield path, f"expected map, got {_shown(value)}"
    else:
        fields = _fields(kind.name) if kind.name else {}
        for key, inner in value.items():
            field = fields.get(key) or kind.below
            if field is None:
                yield f"{path}.{key}", "field not declared in schema"
            else:
                yield from _mistakes(inner, field, f"{path}.{key}", is_strict=is_strict)


def _in_list(value: Json, kind: Type, path: str, *, is_strict: bool) -> Iterator[tuple[str, str]]:
    if not isinstance(value, list):
        yield path, f"expected list, got {_shown(value)}"
        return
    if not is_strict:
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        place = f"[{index}]"
        if kind.keys is not None:
            try:
                place = _told_apart(item, kind.keys)
            except EvaluationError as error:
                yield path, f"element {index}: {error.message}"
                return
            if place in seen:
                yield path, f"duplicate entries for key {place}"
            seen.add(place)
        yield from _mistakes(item, kind.below or _ANY, f"{path}{place}", is_strict=True)


def _told_apart(item: Json, keys: tuple[str, ...]) -> str:
    """Return what tells an element of a list from others; raises EvaluationError where nothing does."""
    if not keys:
        if item is None or isinstance(item, dict | list):
            what = (
                "n explicit null"
                if item is None
                else " map type"
                if isinstance(item, dict)
                else " list"
            )
            raise EvaluationError(f"associative list without keys has an element that's a{what}")
        return f"[={go_syntax(item)}]"
    if item is None:
        raise EvaluationError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise EvaluationError("associative list with keys may not have non-map elements")
    parts = []
    for key in keys:
        if key not in item and key not in KEY_DEFAULTS:
            lacks = f"an element that omits key field {quote(key)} (and doesn't have default value)"
            raise EvaluationError(f"associative list with keys has {lacks}")
        parts.append(f"{key}={go_syntax(item.get(key, KEY_DEFAULTS.get(key)))}")
    return f"[{','.join(parts)}]"


def _wholes(value: Json, kind: Type, path: str) -> Iterator[str]:
    """Yield where a value sets what changes only as a whole."""
    if isinstance(value, dict) and kind.form in ("map", "type"):
        if kind.is_whole or (kind.name and _written()[kind.name][0]):
            yield path
        # INVARIANT: values of maps are not looked into, as the API server does not
        fields = _fields(kind.name) if kind.name else {}
        for key, inner in value.items():
            if key in fields:
                yield from _wholes(inner, fields[key], f"{path}.{key}")
    elif isinstance(value, list) and kind.form == "list":
        if kind.is_whole:
            yield path
        for index, item in enumerate(value):
            yield from _wholes(item, kind.below or _ANY, f"{path}[{index}]")


def _shown(value: Json) -> str:
    return f"&{{{gotext.plain(value)}}}"


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _go_type(value: Json) -> str:
    if isinstance(value, dict | list):
        return "map[string]interface {}" if isinstance(value, dict) else "[]interface {}"
    return "bool" if isinstance(value, bool) else "string"


_SCALARS: Final[Mapping[str, tuple[Callable[[Json], bool], Callable[[Json], str]]]] = {
    "s": (lambda value: isinstance(value, str),
          lambda value: f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"),
    "n": (_is_number, lambda value: f"expected numeric (int or float), got {_go_type(value)}"),
    "b": (lambda value: isinstance(value, bool), lambda value: f"expected boolean, got {_shown(value)}"),
    ".": (lambda value: not isinstance(value, dict | list), lambda value: f"expected any scalar, got {_shown(value)}"),
}  # fmt: skip
"""For each form of scalar what fits it, and what is said of what does not."""
