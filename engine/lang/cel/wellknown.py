"""Messages that have a meaning of their own: wrappers, timestamps, durations and JSON values of protocol buffers.

`google.protobuf.Int32Value{value: 1}` is the number 1 (language definition, "Dynamic Values"). For literals only; objects
never hold such messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .arithmetic import duration, timestamp
from .errors import CelError
from .values import SECOND, Uint, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _struct(fields: dict[str, Any], at: int) -> Any:
    _check(fields, {"fields": dict}, at)
    return fields.get("fields", {})


def _list_value(fields: dict[str, Any], at: int) -> Any:
    _check(fields, {"values": list}, at)
    return fields.get("values", [])


MAKERS: Final[dict[str, Callable[[dict[str, Any], int], Any]]] = {
    **{f"google.protobuf.{name}": _wrapper(name) for name in _WRAPPERS},
    "google.protobuf.Timestamp": _moment(timestamp),
    "google.protobuf.Duration": _moment(duration),
    "google.protobuf.Value": _value,
    "google.protobuf.Struct": _struct,
    "google.protobuf.ListValue": _list_value,
}
