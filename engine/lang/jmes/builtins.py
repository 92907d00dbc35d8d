"""The functions of the JMESPath standard that look at one value: texts, types, objects (row F-09)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import gotext

from .signature import Table
from .values import Env, ItemList, check_length, equal, held, is_number, number, spend, spend_size

if TYPE_CHECKING:
    from engine.model import Json


table = Table()

_TYPES: Final = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}


@table.function("abs(number) number", "the number without its sign")
def absolute(_env: Env, given: float) -> float:
    """Return the absolute value."""
    return number(abs(gotext.as_float(given)))


@table.function("ceil(number) number", "the next whole number upwards")
def ceil(_env: Env, given: float) -> float:
    """Round up to a whole number; -0.5 gives negative zero, as in Go."""
    return _whole(gotext.as_float(given), math.ceil)


@table.function("floor(number) number", "the next whole number downwards")
def floor(_env: Env, given: float) -> float:
    """Round down to a whole number."""
    return _whole(gotext.as_float(given), math.floor)


@table.function("contains(array|string, any) boolean", "whether the text or list holds the value")
def contains(env: Env, subject: Json, search: Json) -> bool:
    """Search a text for a text, or a list for an equal scalar."""
    if subject.__class__ is str:
        return search.__class__ is str and search in subject
    if subject.__class__ is ItemList:
        raise EvaluationError("contains cannot search the result of items")
    spend(env, len(subject))
    if search.__class__ is str:
        return search in subject
    for element in subject:
        if element.__class__ in (list, dict, ItemList) and element.__class__ is search.__class__:
            raise EvaluationError("contains cannot compare lists or objects")
        if equal(element, search, env):
            return True
    return False


@table.function("ends_with(string, string) boolean", "whether the text ends with the other")
def ends_with(_env: Env, text: str, suffix: str) -> bool:
    """Compare the end of a text."""
    return text.endswith(suffix)


@table.function("starts_with(string, string) boolean", "whether the text starts with the other")
def starts_with(_env: Env, text: str, prefix: str) -> bool:
    """Compare the start of a text."""
    return text.startswith(prefix)


@table.function("join(string, array[string]) string", "the texts with the first one between them")
def join(env: Env, separator: str, parts: list[str]) -> str:
    """Join texts. Raises LimitError when the result grows too long."""
    spend(env, len(parts))
    check_length(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


@table.function("keys(object) array", "the keys of the object")
def keys(env: Env, given: dict[str, Json]) -> list[str]:
    """Return keys in the order of the document; upstream's order is random."""
    spend(env, len(given))
    return list(given)


@table.function("values(object) array", "the values of the object")
def values(env: Env, given: dict[str, Json]) -> list[Json]:
    """Return values in the order of the document; upstream's order is random."""
    spend(env, len(given))
    return list(given.values())


@table.function("length(string|array|object) number", "number of characters, elements or keys")
def length(_env: Env, given: Json) -> int:
    """Count; texts in characters, not bytes."""
    return len(given)


@table.function("merge(object...) object", "the objects put together, later keys win")
def merge(env: Env, *given: Json) -> dict[str, Json]:
    """Merge objects, only at the top level."""
    merged: dict[str, Json] = {}
    for each in given:
        if each.__class__ is not dict:
            raise EvaluationError("merge takes objects only")
        spend(env, len(each))
        merged.update(each)
    return merged


@table.function("not_null(any...) any", "the first argument that is not null")
def not_null(_env: Env, *given: Json) -> Json:
    """Return the first value that is not null, or null."""
    return next((value for value in given if value is not None), None)


@table.function("reverse(array|string) any", "the text or list backwards")
def reverse(env: Env, given: Json) -> Json:
    """Reverse characters or elements."""
    if given.__class__ is ItemList:
        raise EvaluationError("reverse does not take the result of items")
    spend(env, len(given) >> 6 if given.__class__ is str else len(given))
    return given[::-1]


@table.function("to_array(any) array", "the value in a list, unless it is one")
def to_array(_env: Env, given: Json) -> list[Json]:
    """Wrap a value; the result of `items` is wrapped too (row V-21)."""
    if given.__class__ is list:
        array: list[Json] = given
        return array
    return [given]


@table.function("to_number(any) number", "the number that the text shows, else null")
def to_number(_env: Env, given: Json) -> float | None:
    """Read a text by the rules of Go's ParseFloat; anything else but a number is null."""
    if is_number(given):
        result: float = given
        return result
    read = gotext.parse_float(given) if isinstance(given, str) else None
    return None if read is None else number(read)


@table.function("to_string(any) string", "the value as JSON; a text stays as it is")
def to_string(env: Env, given: Json) -> str:
    """Write a value as Go's JSON encoder does. Raises EvaluationError for infinity."""
    if given.__class__ is str:
        return str(given)
    spend_size(given, env)
    text = gotext.compact_json(held(given))
    check_length(len(text))
    return text


@table.function("type(any) string", "the name of the value's type")
def type_name(_env: Env, given: Json) -> str:
    """Return the type's name; Go's ints and the result of `items` have none (row V-21)."""
    name = _TYPES.get(given.__class__)
    if name is None:
        raise EvaluationError("unknown type")
    return name


def _whole(value: float, rounded: object) -> float:
    if not math.isfinite(value):
        return value
    result = math.ceil(value) if rounded is math.ceil else math.floor(value)
    return number(math.copysign(float(result), value))
