"""Functions that read documents and take objects apart (row F-07)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import DocumentError, EvaluationError
from engine.lang import gotext, yaml
from engine.lang.work import charge

from .gojson import GoJsonError, decode
from .signature import Table, fail
from .texts import single
from .values import Env, ItemList, held, is_number, spend

if TYPE_CHECKING:
    from engine.model import Json


table = Table()

_YAML_SIGNS = ("\n", ",", "[", "{")
"""What each value of a YAML text needs at least one of."""


@table.function("parse_json(string) any", "the value of the JSON text")
def parse_json(env: Env, text: str) -> Json:
    """Decode JSON. Raises EvaluationError with Go's text."""
    spend(env, len(text) >> 3)
    try:
        return decode(text)
    except GoJsonError as error:
        raise EvaluationError(str(error)) from None


@table.function("parse_yaml(string) any", "the value of the first YAML document of the text")
def parse_yaml(env: Env, text: str) -> Json:
    """Decode YAML by the rules of Kubernetes. Raises EvaluationError."""
    spend(env, len(text) >> 2)
    try:
        charge(len(text) * 10 + sum(map(text.count, _YAML_SIGNS)) * 4_000)
        return held(yaml.load(first_document(text)))
    except DocumentError as error:
        raise EvaluationError(go_text(error, text)) from None


@table.function(
    "lookup(object|array, string|number) any",
    "the member with the key or index, null where there is none",
)
def lookup(_env: Env, given: Json, key: str | float) -> Json:
    """Get a member of an object by key or of a list by index."""
    if given.__class__ is dict:
        if not isinstance(key, str):
            raise fail("lookup", "argument #2 is not of type String")
        return given.get(key)
    if given.__class__ is not list:
        raise fail("lookup", "argument #1 is not of type Object or Array")
    if isinstance(key, str):
        raise fail("lookup", "argument #2 is not of type Number")
    index = _index(key)
    return given[index] if 0 <= index < len(given) else None


@table.function(
    "items(object|array, string, string) array",
    "a list of objects, each with a key or index and its value under the given names",
)
def items(env: Env, given: Json, key_name: str, value_name: str) -> ItemList:
    """List an object's members by sorted key, or a list's elements by index. The result is no ordinary array (V-21)."""
    if given.__class__ is ItemList:
        raise fail("items", "argument #1 is not of type Object or Array")
    spend(env, 2 * len(given))
    pairs = sorted(given.items()) if given.__class__ is dict else enumerate(given)
    return ItemList({key_name: key, value_name: value} for key, value in pairs)


@table.function(
    "object_from_lists(array, array) object",
    "the object of the keys of the first list and the values of the second",
)
def object_from_lists(env: Env, keys: list[Json], values: list[Json]) -> dict[str, Json]:
    """Pair keys with values; keys without a value get null."""
    for place, given in ((1, keys), (2, values)):
        if given.__class__ is ItemList:
            raise fail("object_from_lists", f"argument #{place} is not of type Array")
    spend(env, len(keys))
    names = [_key(key) for key in keys]
    return {
        name: values[place] if place < len(values) else None for place, name in enumerate(names)
    }


def _index(key: float) -> int:
    position = gotext.as_float(key)
    if not position.is_integer():
        shown = gotext.general(position)
        raise fail("lookup", f"argument #2: expected an integer number but got: {shown}")
    if not -(2.0**63) <= position < 2.0**63:
        shown = gotext.general(position)
        raise fail(
            "lookup", f"argument #2: number is outside the range of integer numbers: {shown}"
        )
    return int(position)


def _key(key: Json) -> str:
    if key.__class__ is str:
        return str(key)
    if key.__class__ is bool:
        return "true" if key else "false"
    if is_number(key):
        return single(key)
    raise fail("object_from_lists", "argument #1 is not of type StringArray")


# What `parse_yaml` adds to the YAML reader: the first document alone, and errors in the words of Go's library.
#
# Upstream stops reading after the first document, so what follows it need not even be YAML; and it hands the library's
# error texts on, which name lines by rules of their own.

_MARK: Final = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NO_CONTENT: Final = re.compile(r"(?:[ \t]*(?:#.*|%.*)?(?:\r?\n|\Z))*")
_ALIAS: Final = re.compile(r"\*([\w-]+)", re.ASCII)
_NUMBERS: Final = {"-": "-Inf", "+": "+Inf", ".": "+Inf"}


def first_document(text: str) -> str:
    """Return `text` up to the end of its first document."""
    begun = False
    for mark in _MARK.finditer(text):
        if begun or _NO_CONTENT.fullmatch(text, 0, mark.start()) is None:
            return text[: mark.start()]
        if mark.group() == "...":
            return text
        begun = True
    return text


def go_text(error: DocumentError, text: str) -> str:
    """Return the error as upstream words it, as far as the reader's own error tells."""
    cause: Any = error.__cause__
    problem = getattr(cause, "problem", None)
    if problem:
        return f"yaml: {_line(cause)}{_problem(problem, cause, text)}"
    message = error.message
    if message.startswith("unsupported value: `"):
        written = message.split("`")[1]
        return f"json: unsupported value: {_not_finite(written)}"
    message = re.sub(r"^cannot decode `", "cannot decode !!str `", message)
    return message if message.startswith("unsupported map key") else f"yaml: {message}"


def _problem(problem: str, cause: Any, text: str) -> str:
    if not problem.startswith("found undefined alias"):
        return problem
    mark = cause.problem_mark or cause.context_mark
    alias = _ALIAS.match(text, mark.index) if mark else None
    return f"unknown anchor '{alias[1]}' referenced" if alias else problem


def _line(cause: Any) -> str:
    """Return Go's line prefix: the problem's line, else the context's; a first line is not named at all."""
    if type(cause).__name__ == "ComposerError":
        return ""
    if cause.problem_mark is not None and cause.problem_mark.line:
        return f"line {cause.problem_mark.line + (type(cause).__name__ == 'ScannerError')}: "
    line = cause.context_mark.line if cause.context_mark is not None else 0
    return f"line {line}: " if line else ""


def _not_finite(written: str) -> str:
    return "NaN" if "nan" in written.lower() else _NUMBERS.get(written[:1], "+Inf")
