"""A second opinion on the table: Google's implementation, for the rows that both can be asked.

It checks types before it evaluates and its values show less than ours (no nanoseconds, no optionals at the top, no
difference between a missing key and a wrong type), so verdicts are compared as coarsely as it can tell.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import cache
from typing import Any

from engine.lang import cel
from engine.lang.cel.values import Flag, from_key
from tests.engine.cel.rows import EPOCH, Failure, Row

UNKNOWN = object()
"""What a row is that the other side cannot be asked."""

FAILED = "fails"
UNDECLARED = re.compile(r"undeclared reference to '(?!x|y')")


@cache
def environment() -> Any:
    """Return the other implementation with all of its extensions."""
    from cel_expr_python import cel as other
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    names = {"x": other.Type.DYN, "y": other.Type.DYN}
    extensions = [
        ext_bindings.ExtBindings(),
        ext_encoders.ExtEncoders(),
        ext_math.ExtMath(),
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
    ]
    return other.NewEnv(variables=names, extensions=extensions)


def opinion(row: Row) -> Any:
    """Return what the other side makes of a row: a value, FAILED, or UNKNOWN where it lacks what the row is about."""
    bindings = {name: given(value) for name, value in row.bindings.items()}
    if not bindings.keys() <= {"x", "y"} or any(value is UNKNOWN for value in bindings.values()):
        return UNKNOWN
    try:
        program = environment().compile(_asked(row))
    except RuntimeError as error:
        return UNKNOWN if UNDECLARED.search(str(error)) and _is_ours(row) else FAILED
    try:
        found = program.eval(data=bindings)
        return FAILED if found.type().name() == "ERROR" else comparable(found)
    except RuntimeError:
        return FAILED
    except TypeError:
        return UNKNOWN


def _asked(row: Row) -> str:
    """Return the expression; of an optional, which the other side cannot hand over, what is in it."""
    if isinstance(row.expected, cel.Optional):
        return f"dyn([{row.expression}].map(o, o.hasValue() ? [dyn(o.value())] : [])[0])"
    return row.expression


def _is_ours(row: Row) -> bool:
    """Return whether a row expects a value or an error of evaluation, so that a missing function decides nothing."""
    return not (isinstance(row.expected, Failure) and row.expected.kind in ("syntax", "undeclared"))


def given(value: Any) -> Any:
    """Return a binding as the other side takes it, UNKNOWN where it cannot be told apart there."""
    if isinstance(value, cel.Uint | cel.CelType | cel.Optional | cel.Timestamp | Flag):
        return UNKNOWN
    if isinstance(value, list):
        parts = [given(part) for part in value]
        return UNKNOWN if UNKNOWN in parts else parts
    if isinstance(value, dict):
        pairs = [(given(key), given(part)) for key, part in value.items()]
        return UNKNOWN if any(UNKNOWN in pair for pair in pairs) else dict(pairs)
    return value


def comparable(found: Any) -> Any:
    """Return a value of the other side as one that can be compared with `expectation`."""
    kind, value = found.type().name().partition("<")[0], found.value()
    if kind == "LIST":
        return [comparable(part) for part in value]
    if kind == "MAP":
        plain = found.plain_value()
        return {
            "map": sorted(((repr(_key(key)), comparable(value[key])) for key in plain), key=repr)
        }
    if kind in ("TIMESTAMP", "DURATION"):
        return (kind, str(value))
    if kind == "BYTES":
        return (kind, bytes(value).hex())
    return (
        kind.removesuffix("_TYPE"),
        _TYPES.get(value.name(), value.name()) if kind == "TYPE" else repr(value),
    )


def _key(key: Any) -> Any:
    return int(key) if type(key) is cel.Uint else key


_TYPES = {
    "INT": "int", "UINT": "uint", "DOUBLE": "double", "BOOL": "bool", "STRING": "string", "BYTES": "bytes",
    "NULL": "null_type", "LIST": "list", "MAP": "map", "TYPE": "type", "LIST<DYN>": "list", "MAP<DYN, DYN>": "map",
    "TIMESTAMP": "google.protobuf.Timestamp", "DURATION": "google.protobuf.Duration",
}  # fmt: skip
_KINDS = {
    int: "INT", cel.Uint: "UINT", float: "DOUBLE", bool: "BOOL", str: "STRING", type(None): "NULL",
}  # fmt: skip


def expectation(value: Any) -> Any:
    """Return what a row expects in the form of `comparable`."""
    if isinstance(value, Failure):
        return FAILED
    if isinstance(value, list):
        return [expectation(part) for part in value]
    if isinstance(value, dict):
        entries = [(repr(_key(from_key(key))), expectation(part)) for key, part in value.items()]
        return {"map": sorted(entries, key=repr)}
    if isinstance(value, cel.Timestamp):
        return ("TIMESTAMP", str(EPOCH + dt.timedelta(microseconds=value.ns // 1000)))
    if isinstance(value, cel.Duration):
        return ("DURATION", str(dt.timedelta(microseconds=value.ns // 1000)))
    if isinstance(value, bytes):
        return ("BYTES", value.hex())
    if isinstance(value, cel.CelType):
        return ("TYPE", value.name)
    if isinstance(value, cel.Optional):
        return [expectation(value.value)] if value.present else []
    return (_KINDS[type(value)], repr(int(value)) if type(value) is cel.Uint else repr(value))
