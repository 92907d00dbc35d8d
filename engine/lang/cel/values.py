"""The values of expressions that plain Python has no type for, and the names of all types.

Null, bool, int, double, string, bytes, list and map are `None`, `bool`, `int`, `float`, `str`, `bytes`, `list` and
`dict`, so that objects are used as they are. The classes here add what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1
MAX_UINT: Final = 2**64 - 1
SECOND: Final = 1_000_000_000


class Uint(int):
    """An unsigned number of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment, in nanoseconds since 1970 UTC, from year 1 to 9999."""

    ns: int


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span in nanoseconds that fits 64 bits, as Go's."""

    ns: int


FIRST_MOMENT: Final = -62_135_596_800 * SECOND
LAST_MOMENT: Final = 253_402_300_800 * SECOND - 1


class Optional:
    """A value or its absence; NONE is the one that is absent. Never changed once made."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any, *, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __repr__(self) -> str:
        return f"Optional({self.value!r})" if self.present else "NONE"


NONE: Final = Optional(None, present=False)


@dataclass(frozen=True, slots=True)
class CelType:
    """A type as a value; equal by name."""

    name: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A bool as the key of a map: Python would take `True` for `1` there."""

    value: bool


TRUE_KEY: Final = Flag(value=True)
FALSE_KEY: Final = Flag(value=False)


class Message:
    """Base of values with a type name of their own, such as quantities and URLs."""

    __slots__ = ()
    TYPE = "message"


class Structure(dict[str, Any]):
    """A map that was written as a message of a type: `Object.spec{…}`."""

    __slots__ = ("type_name",)

    def __init__(self, fields: dict[str, Any], type_name: str) -> None:
        super().__init__(fields)
        self.type_name = type_name


TYPE_NAMES: Final[dict[type, str]] = {
    type(None): "null_type",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    tuple: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    CelType: "type",
    Optional: "optional_type",
}

TYPES: Final = {
    name: CelType(name)
    for name in (
        *TYPE_NAMES.values(),
        "kubernetes.Quantity",
        "kubernetes.URL",
        "net.IP",
        "net.CIDR",
    )
}


_GO_NAMES: Final = {"str": "String", "float": "Double"}


GO_TYPES: Final[dict[type, str]] = {
    type(None): "<nil>",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}
"""How Go's own types are called that nothing is looked up by."""


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    known = TYPE_NAMES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Message):
        return value.TYPE
    if isinstance(value, Structure):
        return value.type_name
    for base, name in ((dict, "map"), (list, "list"), (str, "string"), (int, "int")):
        if isinstance(value, base):
            return name
    return type(value).__name__


def go_type(value: Any) -> str:
    """Return the name of a value's type in the Go implementation, which a few errors show."""
    name = "null" if value is None else type(value).__name__
    return f"types.{_GO_NAMES.get(name, name.capitalize())}"


def as_key(value: Any) -> Any:
    """Return a value as it stands as a key in a map."""
    if value is True:
        return TRUE_KEY
    return FALSE_KEY if value is False else value


def from_key(key: Any) -> Any:
    """Return the value that a key of a map stands for."""
    return key.value if type(key) is Flag else key
