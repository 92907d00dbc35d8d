"""The standard functions: sizes, texts, conversions between types, and optionals.

Conversions and their ranges follow the language definition ("Standard Definitions"); texts of numbers are Go's.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final

from engine.errors import EvaluationError
from engine.lang import duration as spans
from engine.lang import golayout, gotext, gotime, regex
from engine.lang.cel.arithmetic import duration, timestamp, whole
from engine.lang.cel.errors import CelError, no_overload
from engine.lang.cel.values import (
    MAX_UINT,
    NONE,
    SECOND,
    TYPES,
    CelType,
    Duration,
    Optional,
    Timestamp,
    Uint,
    type_name,
)

from .registry import Library

LIBRARY: Final = Library()
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_UINT: Final = re.compile(r"[0-9]{1,40}", re.ASCII)
_DOUBLE: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
_LONGEST_NUMBER: Final = 400


def _same(value: Any) -> Any:
    return value


LIBRARY.declare(
    {
        (
            "size(string) -> int",
            "size(bytes) -> int",
            "size(list) -> int",
            "size(map) -> int",
            "string.size() -> int",
            "bytes.size() -> int",
            "list.size() -> int",
            "map.size() -> int",
        ): len,
        "string.startsWith(string) -> bool": str.startswith,
        "string.endsWith(string) -> bool": str.endswith,
        "string.contains(string) -> bool": str.__contains__,
        ("string.matches(string) -> bool", "matches(string, string) -> bool"): (
            lambda text, pattern: regex.compile(pattern).search(text)
        ),
        "dyn(dyn) -> dyn": _same,
        "int(duration) -> int": lambda span: span.ns,
        ("double(double) -> double", "double(int) -> double", "double(uint) -> double"): float,
        "bool(bool) -> bool": _same,
        "string(string) -> string": _same,
        ("string(int) -> string", "string(uint) -> string"): int.__repr__,
        "string(double) -> string": gotext.general,
        "string(bool) -> string": lambda value: "true" if value else "false",
        "bytes(bytes) -> bytes": _same,
        "bytes(string) -> bytes": lambda text: text.encode("utf-8", "replace"),
        "timestamp(timestamp) -> timestamp": _same,
        "timestamp(int) -> timestamp": lambda seconds: timestamp(seconds * SECOND),
        "duration(duration) -> duration": _same,
        "duration(int) -> duration": duration,
        "optional.of(A) -> optional_type(A)": Optional,
        "optional.none() -> optional_type(A)": lambda: NONE,
        "optional_type(A).hasValue() -> bool": lambda optional: optional.present,
        "optional_type(A).or(optional_type(A)) -> optional_type(A)": (
            lambda optional, otherwise: optional if optional.present else otherwise
        ),
    }
)


@LIBRARY.add("type(dyn) -> type")
def _type(value: Any) -> CelType:
    name = type_name(value)
    return TYPES.get(name) or CelType(name)


def _unconverted(kind: str) -> CelError:
    return CelError(f"type conversion error from 'string' to '{kind}'")


@LIBRARY.add("int(int) -> int", "int(uint) -> int", "int(double) -> int")
def _int(value: Any) -> int:
    if isinstance(value, float):
        if not -(2.0**63) < value < 2.0**63:
            raise CelError("integer overflow")
        return int(value)
    return whole(int(value))


@LIBRARY.add("int(string) -> int")
def _int_of_text(text: str) -> int:
    value = gotext.parse_integer(text)
    if value is None:
        raise _unconverted("int")
    return value


@LIBRARY.add("int(timestamp) -> int")
def _int_of_time(moment: Timestamp) -> int:
    return moment.ns // SECOND


@LIBRARY.add("uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint")
def _uint(value: Any) -> Uint:
    if isinstance(value, float):
        if not -1.0 < value < 2.0**64 or value < 0:
            raise CelError("unsigned integer overflow")
        return Uint(int(value))
    if value < 0:
        raise CelError("unsigned integer overflow")
    return Uint(value)


@LIBRARY.add("uint(string) -> uint")
def _uint_of_text(text: str) -> Uint:
    if not _UINT.fullmatch(text) or int(text) > MAX_UINT:
        raise _unconverted("uint")
    return Uint(int(text))


@LIBRARY.add("double(string) -> double")
def _double_of_text(text: str) -> float:
    if len(text) <= _LONGEST_NUMBER:
        if _DOUBLE.fullmatch(text):
            value = float(text)
            if math.isfinite(value):
                return value
        elif "_" not in text and (special := gotext.parse_float(text)) is not None:
            return special
    raise _unconverted("double")


@LIBRARY.add("bool(string) -> bool")
def _bool_of_text(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _unconverted("bool")


@LIBRARY.add("string(bytes) -> string")
def _string_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error


@LIBRARY.add("string(timestamp) -> string", cost=30)
def time_text(moment: Timestamp) -> str:
    """Return the text of a moment: RFC 3339 in UTC, with as many fractions as needed."""
    text = gotime.Instant(moment.ns).rfc3339()
    rest = moment.ns % SECOND
    return text if not rest else f"{text[:-1]}.{rest:09d}".rstrip("0") + "Z"


@LIBRARY.add("string(duration) -> string")
def span_text(span: Duration) -> str:
    """Return the text of a span in seconds: `90s`, `-1.5s`."""
    seconds, rest = divmod(abs(span.ns), SECOND)
    sign = "-" if span.ns < 0 else ""
    return f"{sign}{seconds}.{rest:09d}".rstrip("0") + "s" if rest else f"{sign}{seconds}s"


@LIBRARY.add("timestamp(string) -> timestamp", cost=60)
def read_time(text: str) -> Timestamp:
    """Read a moment of RFC 3339. Raises CelError."""
    if not _RFC3339.fullmatch(text):
        raise _unconverted("google.protobuf.Timestamp")
    try:
        instant = golayout.parse_rfc3339(text)
    except EvaluationError as error:
        raise CelError(error.message) from error
    return timestamp(instant.ns)


@LIBRARY.add("duration(string) -> duration")
def _duration_of_text(text: str) -> Duration:
    ns = spans.parse(text)
    if ns is None:
        raise _unconverted("google.protobuf.Duration")
    return Duration(ns)


@LIBRARY.add("optional.ofNonZeroValue(A) -> optional_type(A)")
def _of_non_zero(value: Any) -> Optional:
    is_zero = not value if type(value) in _ZEROABLE else _is_zero_moment(value)
    return NONE if is_zero else Optional(value)


_ZEROABLE: Final = (type(None), bool, int, Uint, float, str, bytes, list, dict)


def _is_zero_moment(value: Any) -> bool:
    if isinstance(value, Duration):
        return value.ns == 0
    return value is NONE


@LIBRARY.add("optional_type(A).value() -> A")
def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.value


@LIBRARY.add("dyn.orValue(dyn) -> dyn")
def _or_value(value: Any, otherwise: Any) -> Any:
    """Return what an optional holds; a value that is no optional is there, as in Go where its type is not declared."""
    if type(value) is not Optional:
        return value
    return value.value if value.present else otherwise


@LIBRARY.add(
    "optional.unwrap(list(optional_type(A))) -> list(A)",
    "list(optional_type(A)).unwrapOpt() -> list(A)",
)
def _unwrap(values: list[Any]) -> list[Any]:
    return [_present(value).value for value in values if _present(value).present]


def _present(value: Any) -> Optional:
    if type(value) is Optional:
        return value
    raise no_overload("unwrap")
