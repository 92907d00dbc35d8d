"""Finds what does not fit the type of a built-in kind: fields that there are not, and values of another type.

For the way into the store: unknown fields are dropped (and refused or warned of as `fieldValidation` says), wrong types are
refused as the decoder of a real API server refuses them.
"""

from __future__ import annotations

import re
from typing import Any

from kpolicy_sandbox.errors import bad_request

from .types import Field, item_type, struct

_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "float64": (int, float),
    "bytes": (str,),
    "time": (str,),
    "microtime": (str,),
    "duration": (str,),
    "quantity": (str, int, float),
    "intorstring": (str, int),
}
_QUANTITY = re.compile(
    r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([numkMGTPE]?|[KMGTPE]i|[eE][+-]?[0-9]+)", re.ASCII
)
_ZEROS = frozenset(("string", "bool", "int32", "int64", "float64", "bytes"))


def prune(type_name: str, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the object without fields that its type does not have, and their paths; ApiError 400 for a wrong type."""
    unknown: list[str] = []
    top = {key: obj[key] for key in ("apiVersion", "kind") if key in obj}
    body = {key: value for key, value in obj.items() if key not in top}
    pruned = _value(type_name, body, "", obj.get("kind", ""), unknown)
    return {**top, **pruned}, unknown


def _value(kind: str, value: Any, path: str, top: str, unknown: list[str]) -> Any:
    if value is None or kind in {"json", "raw", "fields"}:
        return value
    if kind in _PYTHON:
        return _leaf(kind, value, path, top)
    if kind.startswith("map:"):
        if not isinstance(value, dict):
            raise _mismatch(value, path, top, "map")
        inner = item_type(kind)
        return {
            key: _item(inner, item, f"{path}.{key}" if path else key, top, unknown)
            for key, item in value.items()
        }
    if kind.startswith(("[]", "items:")):
        if not isinstance(value, list):
            raise _mismatch(value, path, top, "list")
        inner = item_type(kind)
        return [_item(inner, v, f"{path}[{n}]", top, unknown) for n, v in enumerate(value)]
    return _fields(kind, value, path, top, unknown)


_NULLS: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0, "quantity": "0"}


def _item(kind: str, value: Any, path: str, top: str, unknown: list[str]) -> Any:
    """Return what a map or list holds; null is the type's zero, as Go reads it."""
    if value is None:
        return _NULLS.get(kind, {} if struct(kind) else None)
    return _value(kind, value, path, top, unknown)


def _fields(kind: str, value: Any, path: str, top: str, unknown: list[str]) -> Any:
    found = struct(kind)
    if found is None:
        return value
    if not isinstance(value, dict):
        raise _mismatch(value, path, top, kind)
    made = {}
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        field = found.fields.get(key)
        if field is None:
            unknown.append(where)
        elif item is not None:
            held = _value(field.type, item, where, top, unknown)
            if not _is_left_out(field, held):
                made[key] = held
    return made


def _is_left_out(field: Field, value: Any) -> bool:
    """Tell whether Go's `omitempty` leaves a value out: webhooks and policies never see such zeros, whoever wrote them."""
    if field.pointer or field.required:
        return False
    if field.type in _ZEROS:
        return value in ("", 0, False)
    return field.type.startswith(("[]", "map:")) and not value


def _leaf(kind: str, value: Any, path: str, top: str) -> Any:
    wanted = _PYTHON[kind]
    if isinstance(value, float) and kind in {"int32", "int64"} and value.is_integer():
        return int(value)
    if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
        raise _mismatch(value, path, top, kind)
    if kind == "quantity":
        return _quantity(value, top)
    return value


def _quantity(value: Any, top: str) -> str:
    text = str(value)
    if not _QUANTITY.fullmatch(text):
        raise bad_request(
            f'{top} in version "v1" cannot be handled as a {top}: quantities must match the regular expression '
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return text


def _mismatch(value: Any, path: str, top: str, wanted: str) -> Exception:
    words = {bool: "bool", str: "string", int: "number", float: "number", list: "array"}
    got = words.get(type(value), "object")
    return bad_request(
        f'{top} in version "v1" cannot be handled as a {top}: json: cannot unmarshal {got} '
        f"into Go struct field {top}.{path} of type {wanted}"
    )
