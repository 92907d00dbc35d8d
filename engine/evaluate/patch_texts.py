"""The text of a JSON patch with variables in it: what they come to fills the patch's fields and never makes others.

The text is YAML, and Kyverno puts values into it before it is read: a value with a quote or a line break could then add
operations of its own. Here values that YAML could read as more than a word fill the fields of the patch after it was read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.errors import DocumentError, EvaluationError
from engine.lang.variables import Expression, Scope, Template, as_text, parts_of
from engine.lang.yaml import load

if TYPE_CHECKING:
    from collections.abc import Mapping

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
