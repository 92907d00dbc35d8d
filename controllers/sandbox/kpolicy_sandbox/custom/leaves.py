"""Single values against a schema: types, formats, lengths, bounds, patterns, in the words of Kubernetes' validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

from kpolicy_sandbox.clock import parse_duration, parse_instant
from kpolicy_sandbox.errors import Cause, field_cause, invalid_field, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

Schema = dict[str, Any]
_QUIET = re2.Options()
_QUIET.log_errors = False
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
}


def type_cause(schema: Schema, value: Any, path: str) -> Cause | None:
    """Return what is wrong with a value's type; None when it fits."""
    if schema.get("x-kubernetes-int-or-string"):
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        wanted = "integer,string"
    else:
        wanted = schema.get("type", "")
        fits = not wanted or _is(value, wanted)
    if fits:
        return None
    got = "null" if value is None else _WORDS.get(type(value), "object")
    where = path or "<nil>"
    text = f'Invalid value: "{got}": {where} in body must be of type {wanted}: "{got}"'
    return field_cause("TypeInvalid", where, text)


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, float) and wanted == "integer":
        return value.is_integer()
    return isinstance(value, _TYPES.get(wanted, (object,)))


def leaf_causes(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    """Yield what is wrong with a value that has the right type."""
    if isinstance(value, str):
        yield from _text_causes(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_causes(schema, value, path)
    elif isinstance(value, list):
        yield from _size_causes(schema, len(value), path, "Items", "items")
    elif isinstance(value, dict):
        yield from _size_causes(schema, len(value), path, "Properties", "properties")


def _text_causes(schema: Schema, value: str, path: str) -> Iterator[Cause]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least:
        yield invalid_field(path, value, f"{path} in body should be at least {least} chars long")
    if most is not None and len(value) > most:
        text = f"Too long: may not be more than {most} bytes"
        yield field_cause("TooLong", path, text)
    if (pattern := schema.get("pattern")) and not _matches(pattern, value):
        yield invalid_field(path, value, f"{path} in body should match '{pattern}'")
    if (kind := schema.get("format")) and not _has_format(kind, value):
        yield invalid_field(path, value, f"{path} in body must be of type {kind}: {shown(value)}")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re2.compile(pattern, _QUIET).search(value) is not None
    except re2.error:
        # a pattern that RE2 cannot read is refused with the CRD by a real server; here it just says nothing
        return True


def _has_format(kind: str, value: str) -> bool:
    if kind == "date-time":
        return "T" in value and parse_instant(value) is not None
    if kind == "duration":
        return parse_duration(value) is not None
    return True


def _number_causes(schema: Schema, value: float, path: str) -> Iterator[Cause]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield invalid_field(
            path, value, f"{path} in body should be greater than or equal to {least}"
        )
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        yield invalid_field(path, value, f"{path} in body should be less than or equal to {most}")
    if (step := schema.get("multipleOf")) and value % step:
        yield invalid_field(path, value, f"{path} in body should be a multiple of {step}")


def _size_causes(schema: Schema, size: int, path: str, word: str, plural: str) -> Iterator[Cause]:
    least, most = schema.get(f"min{word}", 0), schema.get(f"max{word}")
    if size < least:
        yield invalid_field(path, size, f"{path} in body should have at least {least} {plural}")
    if most is not None and size > most:
        text = f"Too many: {size}: must have at most {most} items"
        yield field_cause("TooMany", path, text)
