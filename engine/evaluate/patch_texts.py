"""The text of a JSON patch with variables in it: what they come to fills the patch's fields and never makes others.

The text is YAML, and Kyverno puts values into it before it is read: a value with a quote or a line break could then add
operations of its own. Here values that YAML could read as more than a word fill the fields of the patch after it was read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from engine.cleanup.ttl import LABELLED, has_deleted
from engine.errors import DocumentError, EvaluationError
from engine.lang.variables import Expression, Scope, Template, as_text, parts_of
from engine.lang.variables.braces import MAX_DEPTH, VARIABLE
from engine.lang.yaml import load
from engine.mutate.pointer import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.model import Json

_WORD = re.compile(r"(?:[A-Za-z0-9_/.][A-Za-z0-9_/.@+=~-]*(?::[A-Za-z0-9_/.@+=~-]+)*)?\Z")
"""What means the same to YAML wherever it stands."""


class PatchText:
    """A compiled text of a JSON patch with at least one variable."""

    __slots__ = ("_marks", "_parts", "_template")

    def __init__(self, text: str) -> None:
        """Compile; raises LimitError for variables that nest too deeply."""
        self._template = Template(text)
        self._parts = parts_of(text)
        self._marks = _marks(text, self._parts)

    def render(self, scope: Scope, path: str) -> Json:
        """Return the patch as text or, where values must not be read as YAML, as operations; raises EvaluationError."""
        if scope.rereads or len(self._parts) == 1:
            return self._template.render(scope, path)
        values = {
            mark: part.value(scope, path, "")
            for part, mark in zip(self._parts, self._marks, strict=True)
            if isinstance(part, Expression)
        }
        if all(map(_is_word, values.values())):
            return "".join(
                part if isinstance(part, str) else as_text(values[mark])
                for part, mark in zip(self._parts, self._marks, strict=True)
            )
        return _filled(self._shape(), values)

    def _shape(self) -> Json:
        """Return the patch with marks where values go; raises EvaluationError where it cannot be read so."""
        text = "".join(
            mark if isinstance(part, Expression) else part
            for part, mark in zip(self._parts, self._marks, strict=True)
            if isinstance(part, str | Expression)
        )
        try:
            return load(text)
        except DocumentError as error:
            raise EvaluationError(
                "a value with special characters stands where the patch cannot be read without it",
                help="put quotes around the variable",
            ) from error


def _marks(text: str, parts: list[str | Expression]) -> list[str]:
    """Return a word for each part that occurs nowhere in the text; it tells whether quotes stand around the part."""
    lead = "variable"
    while lead in text:
        lead += "x"
    made = []
    for index, part in enumerate(parts):
        before, after = parts[index - 1 : index], parts[index + 1 : index + 2]
        quoted = any(
            isinstance(left, str)
            and isinstance(right, str)
            and left.endswith(quote)
            and right.startswith(quote)
            for left in before
            for right in after
            for quote in "'\""
        )
        kind = "quoted" if quoted else "plain"
        made.append(f"{lead}{index}{kind}" if isinstance(part, Expression) else "")
    return made


def _is_word(value: Json) -> bool:
    if isinstance(value, str):
        return _WORD.match(value) is not None
    return not isinstance(value, dict | list)


def _filled(shape: Json, values: Mapping[str, Json]) -> Json:
    if isinstance(shape, dict):
        return {str(_text(key, values)): _filled(item, values) for key, item in shape.items()}
    if isinstance(shape, list):
        return [_filled(item, values) for item in shape]
    if not isinstance(shape, str):
        return shape
    if shape in values and shape.endswith("plain"):
        return _plain(values[shape])
    return _text(shape, values)


def _plain(value: Json) -> Json:
    """Return what a value without quotes is to YAML where it is one word, else the value."""
    return load(value) if isinstance(value, str) and _is_word(value) else value


def _text(text: str, values: Mapping[str, Json]) -> str:
    # all at once: a value that looks like the mark of another one is no mark
    return re.sub("|".join(values), lambda found: as_text(values[found[0]]), text)


# Whether a patch may write a label by which objects are deleted: read as it will be, with every variable open.

_OPEN: Final = "variable-of-a-patch"
"""Stands for what a variable comes to."""


def may_label(text: str) -> bool:
    """Tell whether a JSON patch may write such a label; one that only a value makes readable may."""
    opened = text
    for _ in range(MAX_DEPTH):
        opened = VARIABLE.sub(lambda found: found[0].removesuffix(found[1]) + _OPEN, opened)
    if "{{" in opened:
        return True
    try:
        operations = load(opened)
    except DocumentError:
        return True
    return not isinstance(operations, list) or any(map(_may_label, operations))


def _may_label(operation: Json) -> bool:
    if not isinstance(operation, dict) or any(_OPEN in key for key in operation):
        return True
    kind, words = operation.get("op"), list(_words(operation))
    if kind in ("remove", "test"):
        return False
    is_open = kind not in ("add", "replace") or any(_OPEN in one for one in words)
    return any(map(has_deleted, words)) or (
        is_open and _holds_labels(split(str(operation.get("path"))))
    )


def _holds_labels(path: list[str]) -> bool:
    """Tell whether labels lie at a path or below it; one label with a name is no other."""
    is_above = any(list(place[: len(path)]) == path for place in LABELLED)
    return is_above or path[-1:] in (["labels"], ["metadata"]) or _OPEN in "".join(path)


def _words(value: Json) -> Iterator[str]:
    """Yield every text in a value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)
