"""Structural schemas of CRDs: dropping unknown fields, filling defaults, validating, as apiextensions-apiserver does.

Values are path-copied. Depth is bounded by the body's own (JSON is refused beyond 1,000 levels by its parser, schemas by their size). What is said of single values is in the words of Kubernetes' validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import re2

from kpolicy_sandbox import errors
from kpolicy_sandbox.clock import parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Rules = Callable[[list[dict[str, Any]], Any, str], Iterator[errors.Cause]]

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
_WORDS = {types[-1]: word for word, types in _TYPES.items()}


def type_cause(schema: Schema, value: Any, path: str) -> errors.Cause | None:
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
    return errors.field_cause("TypeInvalid", where, text)


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, float) and wanted == "integer":
        return value.is_integer()
    return isinstance(value, _TYPES.get(wanted, (object,)))


def leaf_causes(schema: Schema, value: Any, path: str) -> Iterator[errors.Cause]:
    """Yield what is wrong with a value that has the right type."""
    if isinstance(value, str):
        yield from _text_causes(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_causes(schema, value, path)
    elif isinstance(value, list):
        yield from _size_causes(schema, len(value), path, "Items", "items")
    elif isinstance(value, dict):
        yield from _size_causes(schema, len(value), path, "Properties", "properties")


def _text_causes(schema: Schema, value: str, path: str) -> Iterator[errors.Cause]:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least:
        yield errors.invalid_field(
            path, value, f"{path} in body should be at least {least} chars long"
        )
    if most is not None and len(value) > most:
        text = f"Too long: may not be more than {most} bytes"
        yield errors.field_cause("TooLong", path, text)
    if (pattern := schema.get("pattern")) and not _matches(pattern, value):
        yield errors.invalid_field(path, value, f"{path} in body should match '{pattern}'")
    if (kind := schema.get("format")) and not _has_format(kind, value):
        yield errors.invalid_field(
            path, value, f"{path} in body must be of type {kind}: {errors.shown(value)}"
        )


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


def _number_causes(schema: Schema, value: float, path: str) -> Iterator[errors.Cause]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value < least or (value == least and schema.get("exclusiveMinimum"))):
        yield errors.invalid_field(
            path, value, f"{path} in body should be greater than or equal to {least}"
        )
    if most is not None and (value > most or (value == most and schema.get("exclusiveMaximum"))):
        yield errors.invalid_field(
            path, value, f"{path} in body should be less than or equal to {most}"
        )
    if (step := schema.get("multipleOf")) and value % step:
        yield errors.invalid_field(path, value, f"{path} in body should be a multiple of {step}")


def _size_causes(
    schema: Schema, size: int, path: str, word: str, plural: str
) -> Iterator[errors.Cause]:
    least, most = schema.get(f"min{word}", 0), schema.get(f"max{word}")
    if size < least:
        yield errors.invalid_field(
            path, size, f"{path} in body should have at least {least} {plural}"
        )
    if most is not None and size > most:
        text = f"Too many: {size}: must have at most {most} items"
        yield errors.field_cause("TooMany", path, text)


Object = dict[str, Any]
_TOP = frozenset(("apiVersion", "kind", "metadata"))
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def prune(schema: Schema, obj: Object) -> tuple[Object, list[str]]:
    """Return an object without fields that the schema does not know, and the paths of these."""
    unknown: list[str] = []
    kept = {key: obj[key] for key in _TOP if key in obj}
    pruned = _pruned(schema, {k: v for k, v in obj.items() if k not in _TOP}, "", unknown)
    return {**kept, **pruned}, unknown


def _pruned(schema: Schema, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items")
        if not isinstance(items, dict):
            return value
        return [_pruned(items, one, f"{path}[{n}]", unknown) for n, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    embedded = _TOP if schema.get("x-kubernetes-embedded-resource") else frozenset[str]()
    made: Object = {}
    for key, one in value.items():
        where = f"{path}.{key}" if path else key
        if key in properties:
            made[key] = _pruned(properties[key], one, where, unknown)
        elif isinstance(more, dict):
            made[key] = _pruned(more, one, where, unknown)
        elif more is True or schema.get(_PRESERVE) or key in embedded:
            made[key] = one
        else:
            unknown.append(where)
    return made


def default(schema: Schema, value: Any) -> Any:
    """Return a value with the schema's defaults; a null that may not be one and has a default is replaced by it."""
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [default(schema["items"], one) for one in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties") or {}
    made = dict(value)
    for key, inner in properties.items():
        held = made.get(key, ...)
        if (held is ... or (held is None and not inner.get("nullable"))) and "default" in inner:
            made[key] = held = inner["default"]
        elif held is None and not inner.get("nullable"):
            del made[key]
            continue
        if isinstance(held, dict | list):
            made[key] = default(inner, held)
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        made = {k: v if k in properties else default(more, v) for k, v in made.items()}
    return made


def validate(schema: Schema, obj: Object, rules: Rules) -> list[errors.Cause]:
    """Return what is wrong with an object, one cause per field; `rules` evaluates the schema's rules for a value at a path."""
    body = {key: value for key, value in obj.items() if key not in _TOP}
    top = {
        **schema,
        "properties": {k: v for k, v in (schema.get("properties") or {}).items() if k not in _TOP},
    }
    top["required"] = [key for key in schema.get("required") or () if key not in _TOP]
    return list(_causes(top, body, "", rules))


def _causes(schema: Schema, value: Any, path: str, rules: Rules) -> Iterator[errors.Cause]:
    if value is None and schema.get("nullable"):
        return
    if wrong := type_cause(schema, value, path):
        yield wrong
        return
    yield from _choices(schema, value, path, rules)
    if isinstance(value, dict):
        yield from _map_causes(schema, value, path, rules)
    elif isinstance(value, list):
        yield from _list_causes(schema, value, path, rules)
    yield from leaf_causes(schema, value, path)
    if given := schema.get("x-kubernetes-validations"):
        yield from rules(given, value, path)


def _choices(schema: Schema, value: Any, path: str, rules: Rules) -> Iterator[errors.Cause]:
    if "enum" in schema and value not in schema["enum"]:
        yield errors.unsupported_field(path, value, [str(one) for one in schema["enum"]])
    for one in schema.get("allOf") or ():
        yield from _causes(one, value, path, rules)
    for word, least, most in (("anyOf", 1, 1 << 30), ("oneOf", 1, 1)):
        branches = schema.get(word)
        if branches:
            fits = sum(1 for one in branches if not any(_causes(one, value, path, rules)))
            if not least <= fits <= most:
                yield _wrong(
                    path,
                    f'"{path}" must validate {"at least" if word == "anyOf" else ""} one {"schema" if word == "anyOf" else "and only one schema"} ({word})',
                )
    if "not" in schema and not any(_causes(schema["not"], value, path, rules)):
        yield _wrong(path, f'"{path}" must not validate the schema (not)')


def _wrong(path: str, why: str) -> errors.Cause:
    return errors.field_cause("Invalid", path or "<nil>", f"Invalid value: {' '.join(why.split())}")


def _map_causes(schema: Schema, value: Object, path: str, rules: Rules) -> Iterator[errors.Cause]:
    properties = schema.get("properties") or {}
    for key in schema.get("required") or ():
        if key not in value:
            yield errors.required_field(f"{path}.{key}" if path else key)
    more = schema.get("additionalProperties")
    for key, one in value.items():
        inner = properties.get(key, more if isinstance(more, dict) else None)
        if inner is not None:
            yield from _causes(inner, one, f"{path}.{key}" if path else key, rules)


def _list_causes(
    schema: Schema, value: list[Any], path: str, rules: Rules
) -> Iterator[errors.Cause]:
    items = schema.get("items")
    if isinstance(items, dict):
        for number, one in enumerate(value):
            yield from _causes(items, one, f"{path}[{number}]", rules)
    kind = schema.get("x-kubernetes-list-type")
    seen: list[Any] = []
    for number, one in enumerate(value if kind in {"set", "map"} else ()):
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        name = (
            {key: one.get(key) for key in keys} if kind == "map" and isinstance(one, dict) else one
        )
        if name in seen:
            yield errors.field_cause("Duplicate", f"{path}[{number}]", f"Duplicate value: {name}")
        seen.append(name)
