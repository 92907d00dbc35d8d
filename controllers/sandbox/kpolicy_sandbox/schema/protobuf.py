r"""Reads the protobuf bodies that kubectl's typed commands send (`create configmap`, `auth can-i`, …); nothing is ever written.

The envelope is `k8s\0` and an `Unknown{1: TypeMeta, 2: raw}`; field numbers come from the table of types. Protobuf carries the zero
of every scalar that is not a pointer where JSON would leave it out, so such zeros are dropped.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import ApiError, bad_request, not_implemented

from .types import LEAVES, Field, Struct, item_type, struct

if TYPE_CHECKING:
    from collections.abc import Callable

MAGIC = b"k8s\0"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_DEEPEST = 60
_ZERO = {"string": "", "bool": False, "int32": 0, "int64": 0, "float64": 0.0, "bytes": ""}
Wire = dict[int, list[Any]]


def decode(body: bytes, type_of: Callable[[str, str], str]) -> dict[str, Any]:
    """Return the object in an envelope; `type_of(api_version, kind)` names its struct. ApiError for what cannot be read."""
    if not body.startswith(MAGIC):
        raise bad_request("the body has no protobuf envelope")
    try:
        return _decode(body, type_of)
    except ApiError:
        raise
    except (IndexError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise bad_request("the protobuf body cannot be read") from error


def _decode(body: bytes, type_of: Callable[[str, str], str]) -> dict[str, Any]:
    envelope = _wire(body[len(MAGIC) :])
    meta = _wire(envelope[1][-1])
    api_version, kind = (meta[number][-1].decode() for number in (1, 2))
    name = type_of(api_version, kind)
    found = struct(name)
    if found is None:
        raise not_implemented(f"read {kind} of {api_version} as protobuf")
    return {
        "apiVersion": api_version,
        "kind": kind,
        **_message(found, envelope.get(2, [b""])[-1], 0),
    }


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a varint that is too long")


def _wire(data: bytes) -> Wire:
    """Split a message into its fields: numbers for varints, bytes for the rest."""
    found: Wire = {}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        match tag & 7:
            case 0:
                value, at = _varint(data, at)
                found.setdefault(tag >> 3, []).append(value)
            case 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise ValueError("a field that is cut off")
                found.setdefault(tag >> 3, []).append(data[at : at + size])
                at += size
            case 1 | 5 as kind:
                size = 8 if kind == 1 else 4
                found.setdefault(tag >> 3, []).append(data[at : at + size])
                at += size
            case other:
                raise ValueError(f"wire type {other}")
    return found


def _message(kind: Struct, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    wire = _wire(data)
    made: dict[str, Any] = {}
    for name in kind.own:
        field = kind.fields[name]
        if field.number and field.number in wire:
            value = _field(field, wire[field.number], depth)
            if value is not None:
                made[name] = value
    for number, embedded in kind.inline:
        if number in wire and (inner := struct(embedded)):
            made.update(_message(inner, wire[number][-1], depth + 1))
    return made


def _field(field: Field, raw: list[Any], depth: int) -> Any:
    inner = item_type(field.type)
    if field.type.startswith("[]"):
        return [_value(inner, item, depth) for item in raw]
    if field.type.startswith("map:"):
        return _map(inner, raw, depth)
    value = _value(field.type, raw[-1], depth)
    if not field.pointer and (value == _ZERO.get(field.type, ...) or value is None):
        return None
    if value == {} and not field.pointer and field.type not in LEAVES:
        return None
    return value


def _map(inner: str, raw: list[Any], depth: int) -> dict[str, Any]:
    made = {}
    for item in raw:
        entry = _wire(item)
        key = entry.get(1, [b""])[-1].decode()
        empty: bytes | int = 0 if inner in {"bool", "int32", "int64"} else b""
        made[key] = _value(inner, entry.get(2, [empty])[-1], depth)
    return made


def _value(kind: str, raw: Any, depth: int) -> Any:
    if reader := _READERS.get(kind):
        return reader(raw)
    if kind.startswith("items:"):
        return [_value(kind[6:], item, depth) for item in _wire(raw).get(1, [])]
    if kind.startswith("[]"):
        return [_value(kind[2:], item, depth) for item in _wire(raw).get(1, [])]
    found = struct(kind)
    if found is None:
        raise ValueError(f"type {kind}")
    return _message(found, raw, depth + 1)


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _instant(raw: bytes, layout: str) -> str | None:
    wire = _wire(raw)
    if not wire:
        return None
    seconds = _signed(wire.get(1, [0])[-1])
    nanos = wire.get(2, [0])[-1]
    instant = datetime.fromtimestamp(seconds, UTC).replace(microsecond=nanos // 1000)
    return instant.strftime(layout)


def _int_or_string(raw: bytes) -> int | str:
    wire = _wire(raw)
    if wire.get(1, [0])[-1]:
        text: str = wire.get(3, [b""])[-1].decode()
        return text
    return _signed(wire.get(2, [0])[-1])


def _json(raw: bytes) -> Any:
    import orjson

    inner = _wire(raw).get(1, [b""])[-1]
    return orjson.loads(inner) if inner else None


def _double(raw: bytes) -> float:
    import struct as layout

    number: float = layout.unpack("<d", raw)[0]
    return number


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": lambda raw: raw.decode(),
    "bool": bool,
    "int32": _signed,
    "int64": _signed,
    "float64": _double,
    "bytes": lambda raw: base64.b64encode(raw).decode(),
    "time": lambda raw: _instant(raw, "%Y-%m-%dT%H:%M:%SZ"),
    "microtime": lambda raw: _instant(raw, "%Y-%m-%dT%H:%M:%S.%fZ"),
    "duration": lambda raw: f"{_signed(_wire(raw).get(1, [0])[-1]) / 1e9:g}s",
    "quantity": lambda raw: _wire(raw).get(1, [b""])[-1].decode() or "0",
    "intorstring": _int_or_string,
    "fields": _json,
    "raw": _json,
    "json": _json,
}
