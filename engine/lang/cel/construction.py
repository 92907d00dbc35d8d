"""Literals of lists, maps and messages.

Messages are maps: `Object{…}` and `JSONPatch{…}` of mutating policies become what they describe. The well-known types
of protocol buffers become the values they stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .arithmetic import duration, timestamp
from .errors import CelError, shown
from .values import SECOND, Optional, Structure, Uint, as_key, go_type, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ast import ListLiteral, MapLiteral, MessageLiteral
    from .compiler import Closure, Compiler, Frame

_KEYS: Final = (str, int, Uint, bool)


def compile_list(compiler: Compiler, node: ListLiteral) -> Closure:
    """Compile `[a, ?b]`."""
    items = tuple((compiler.compile(item), optional) for item, optional in node.items)
    if not any(optional for _, optional in items):
        plain = tuple(item for item, _ in items)
        if not plain:
            return lambda _: []
        return lambda frame: [item(frame) for item in plain]

    def build(frame: Frame) -> list[Any]:
        built: list[Any] = []
        for item, optional in items:
            value = item(frame)
            if not optional:
                built.append(value)
            elif _unwrapped(value, "list element", node.at).present:
                built.append(value.value)
        return built

    return build


def _unwrapped(value: Any, what: str, at: int) -> Optional:
    if type(value) is Optional:
        return value
    text = f"cannot initialize optional {what} from non-optional value {shown(value)}"
    raise CelError(text, at)


def compile_map(compiler: Compiler, node: MapLiteral) -> Closure:
    """Compile `{key: value, ?key: optional}`."""
    entries = tuple(
        (compiler.compile(key), compiler.compile(value), optional, key.at)
        for key, value, optional in node.entries
    )

    def build(frame: Frame) -> dict[Any, Any]:
        built: dict[Any, Any] = {}
        for key, value, optional, at in entries:
            name, content = key(frame), value(frame)
            if type(name) not in _KEYS:
                raise CelError(f"unsupported key type: {type_name(name)}", at)
            name = as_key(name)
            if optional and not _unwrapped(content, f"entry '{shown(name)}'", at).present:
                continue
            if name in built:
                raise CelError("map has a repeated key", at)
            built[name] = content.value if optional else content
        return built

    return build


def compile_message(compiler: Compiler, node: MessageLiteral) -> Closure:
    """Compile `Type{field: value}`; of types that nobody knows, CelSyntaxError."""
    fields = tuple(
        (name, compiler.compile(value), optional, at) for name, value, optional, at in node.entries
    )
    make = _maker(compiler, node)

    def build(frame: Frame) -> Any:
        built: dict[str, Any] = {}
        for name, value, optional, at in fields:
            content = value(frame)
            if not optional:
                built[name] = content
            elif _unwrapped(content, f"entry '{name}'", at).present:
                built[name] = content.value
        return make(built, node.at)

    return build


def _maker(compiler: Compiler, node: MessageLiteral) -> Any:
    name = node.name
    if name == "Object" or name.startswith("Object."):
        return lambda built, _at: Structure(built, name)
    if name == "JSONPatch":
        return _patch
    if name in MAKERS:
        return MAKERS[name]
    raise compiler.error(f"undeclared reference to '{name}' (in container '')", node)


_TEXTS: Final = frozenset(("op", "path", "from"))
_NATIVE: Final = {int: "int64", Uint: "uint64", float: "float64", bool: "bool"}
"""What Go calls the values of scalars."""


def _patch(fields: dict[str, Any], at: int) -> Structure:
    """Return one operation of a JSON patch; raises CelError for fields that it does not have, or of other types."""
    for name, value in fields.items():
        if name in _TEXTS and not isinstance(value, str):
            kind = _NATIVE.get(type(value)) or go_type(value)
            text = f"unexpected type {kind} for JSONPatchType '{name}' field"
            raise CelError(text, at)
        if name not in _TEXTS and name != "value":
            raise CelError(f"unexpected JSONPatchType field: {name}", at)
    return Structure(fields, "JSONPatch")


# Messages that have a meaning of their own: wrappers, timestamps, durations and JSON values of protocol buffers.
#
# `google.protobuf.Int32Value{value: 1}` is the number 1 (language definition, "Dynamic Values"). For literals only; objects
# never hold such messages.

_WRAPPERS: Final[dict[str, tuple[type, Any]]] = {
    "BoolValue": (bool, False),
    "BytesValue": (bytes, b""),
    "DoubleValue": (float, 0.0),
    "FloatValue": (float, 0.0),
    "Int32Value": (int, 0),
    "Int64Value": (int, 0),
    "StringValue": (str, ""),
    "UInt32Value": (Uint, Uint(0)),
    "UInt64Value": (Uint, Uint(0)),
}
_WIDTHS: Final = {"Int32Value": (-(2**31), 2**31 - 1), "UInt32Value": (0, 2**32 - 1)}
_VALUE_FIELDS: Final[dict[str, type]] = {
    "null_value": int, "number_value": float, "string_value": str, "bool_value": bool,
    "struct_value": dict, "list_value": list,
}  # fmt: skip


def _wrapper(name: str) -> Callable[[dict[str, Any], int], Any]:
    kind, default = _WRAPPERS[name]
    low, high = _WIDTHS.get(name, (None, None))

    def make(fields: dict[str, Any], at: int) -> Any:
        _check(fields, {"value": kind}, at)
        value = fields.get("value", default)
        if low is not None and high is not None and not low <= value <= high:
            raise CelError("range error", at)
        return value

    return make


def _check(fields: dict[str, Any], known: dict[str, type], at: int) -> None:
    for name, value in fields.items():
        if name not in known:
            raise CelError(f"no such field '{name}'", at)
        if type(value) is not known[name]:
            raise CelError(f"unsupported field type: {type_name(value)}", at)


def _moment(make: Callable[[int], Any]) -> Callable[[dict[str, Any], int], Any]:
    def build(fields: dict[str, Any], at: int) -> Any:
        _check(fields, {"seconds": int, "nanos": int}, at)
        return make(fields.get("seconds", 0) * SECOND + fields.get("nanos", 0))

    return build


def _value(fields: dict[str, Any], at: int) -> Any:
    _check(fields, _VALUE_FIELDS, at)
    if len(fields) > 1:
        raise CelError("a value has one kind", at)
    return next((None if name == "null_value" else part for name, part in fields.items()), None)


def _holder(
    field: str, kind: type[dict[Any, Any] | list[Any]]
) -> Callable[[dict[str, Any], int], Any]:
    def build(fields: dict[str, Any], at: int) -> Any:
        _check(fields, {field: kind}, at)
        return fields.get(field, kind())

    return build


MAKERS: Final[dict[str, Callable[[dict[str, Any], int], Any]]] = {
    **{f"google.protobuf.{name}": _wrapper(name) for name in _WRAPPERS},
    "google.protobuf.Timestamp": _moment(timestamp),
    "google.protobuf.Duration": _moment(duration),
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _holder("fields", dict),
    "google.protobuf.ListValue": _holder("values", list),
}
