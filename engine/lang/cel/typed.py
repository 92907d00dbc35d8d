"""Values as typed JSON, for exchange with other programs: `{"type": "uint", "value": "1"}`.

Plain JSON cannot tell int from double, nor hold bytes and timestamps. Whole numbers are decimal texts, bytes are base64,
nested values are typed the same way, maps are lists of `[key, value]`. `decode` also takes plain JSON.
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, Final

from . import values
from .arithmetic import unsigned, whole
from .errors import CelError
from .functions.standard import read_time, span_text, time_text
from .program import compile as compile_text

_SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NAMES: Final = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}
_SHORT: Final = {"null_type": "null", "optional_type": "optional", **_NAMES}
_DEEPEST: Final = 200


def encode(value: Any, depth: int = 0) -> dict[str, Any]:
    """Return a value as typed JSON. Raises CelError where it nests too deep."""
    if depth > _DEEPEST:
        raise CelError(f"value nests deeper than {_DEEPEST} levels")
    name = "map" if isinstance(value, values.Structure) else values.type_name(value)
    name = _SHORT.get(name, name)
    if name == "list":
        return {"type": name, "value": [encode(item, depth + 1) for item in value]}
    if name == "map":
        entries = [
            [encode(values.from_key(key), depth + 1), encode(part, depth + 1)]
            for key, part in value.items()
        ]
        return {"type": name, "value": entries}
    if name == "optional":
        held = encode(value.value, depth + 1) if value.present else None
        return {"type": name, "value": held}
    write = _WRITERS.get(type(value))
    return {"type": name, "value": write(value) if write else _text(value)}


def _text(value: Any) -> str:
    """Return the text of a value of a library's type, as far as the library gives it one."""
    try:
        return str(compile_text("string(value)")({"value": value}))
    except CelError:
        return str(value.text()) if hasattr(value, "text") else str(value)


def _double(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    type(None): lambda _: None,
    bool: bool,
    int: str,
    values.Uint: int.__repr__,
    float: _double,
    str: str,
    bytes: lambda value: b64encode(value).decode(),
    values.Timestamp: time_text,
    values.Duration: span_text,
    values.CelType: lambda value: _SHORT.get(value.name, value.name),
}


def decode(given: Any) -> Any:
    """Return the value of typed or plain JSON. Raises CelError for typed JSON that holds no such value."""
    if isinstance(given, list):
        return [decode(item) for item in given]
    if type(given) is int and not values.MIN_INT <= given <= values.MAX_INT:
        return float(given)
    if not isinstance(given, dict):
        return given
    if given.keys() == {"type", "value"} and given["type"] in _READERS:
        return _typed(given["type"], given["value"])
    return {key: decode(part) for key, part in given.items()}


def _typed(name: str, content: Any) -> Any:
    try:
        return _READERS[name](content)
    except (ValueError, TypeError, AttributeError, KeyError, binascii.Error) as error:
        raise CelError(f"no value of type `{name}`") from error


def _same(kind: type) -> Callable[[Any], Any]:
    def read(content: Any) -> Any:
        if type(content) is not kind:
            raise ValueError(content)
        return content

    return read


def _null(content: Any) -> None:
    if content is not None:
        raise ValueError(content)


def _map(content: Any) -> dict[Any, Any]:
    """Read entries: an object, or a list of `[key, value]` or `{"key": …, "value": …}`."""
    if isinstance(content, dict):
        return {key: decode(part) for key, part in content.items()}
    pairs = [(pair["key"], pair["value"]) if isinstance(pair, dict) else pair for pair in content]
    return {values.as_key(decode(key)): decode(part) for key, part in pairs}


def _type(content: str) -> values.CelType:
    long = {short: name for name, short in _SHORT.items()}
    name = long.get(content, content)
    return values.TYPES.get(name) or values.CelType(name)


_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "null": _null,
    "bool": _same(bool),
    "int": lambda content: whole(int(content)),
    "uint": lambda content: unsigned(int(content)),
    "double": lambda content: _SPECIAL[content] if content in _SPECIAL else float(content),
    "string": _same(str),
    "bytes": lambda content: b64decode(content, validate=True),
    "list": lambda content: [decode(item) for item in content],
    "map": _map,
    "timestamp": read_time,
    "duration": lambda content: compile_text("duration(text)")({"text": content}),
    "type": _type,
    "optional": lambda content: (
        values.NONE if content is None else values.Optional(decode(content))
    ),
}
