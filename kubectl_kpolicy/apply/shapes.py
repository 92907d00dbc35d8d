"""Strict reading of the CLI's own file formats: which fields there are, of which type, and where a wrong one stands.

A shape is data: a mapping of field names to shapes, a one-element list for lists, or one of the names below. Unknown
fields are errors, as in Kyverno's CLI, but with file, line and the nearest known name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import DocumentError, Location
from engine.lang.gotext import plain
from kubectl_kpolicy.output.misuse import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.lang.yaml import Document

Shape = Any
"""`dict` of fields, `[shape]`, or TEXT, FLAG, NUMBER, MAP, LABELS, ANY."""

TEXT, FLAG, NUMBER = "text", "true or false", "number"
MAP, LABELS, ANY = "map", "labels", "anything"
HEAD = {"apiVersion": TEXT, "kind": TEXT, "metadata": MAP}
"""What every file begins with."""

_Path = tuple[Any, ...]


def check_shape(document: Document, shape: Shape, *, what: str) -> dict[str, Any]:
    """Return the document's value when it fits `shape`; raises DocumentError naming file, line and field otherwise.

    Field names are taken without regard to letter case, as Go's decoder takes them, and returned as the shape has them.
    """
    value: dict[str, Any] = _Reading(document, what).take(document.value, shape, ())
    return value


class _Reading:
    """One document under way; `what` names its format in messages."""

    def __init__(self, document: Document, what: str) -> None:
        self._document = document
        self._what = what

    def take(self, value: Any, shape: Shape, path: _Path) -> Any:
        if value is None or shape == ANY:
            return value
        if isinstance(shape, dict):
            return self._map(value, shape, path)
        if isinstance(shape, list):
            if not isinstance(value, list):
                raise self._wrong(path, f"must be a list, not {_named(value)}")
            return [self.take(item, shape[0], (*path, index)) for index, item in enumerate(value)]
        fits, what = _SCALARS[shape]
        if not fits(value):
            raise self._wrong(path, f"must be {what}, not {_named(value)}")
        return value

    def _map(self, value: Any, shape: dict[str, Shape], path: _Path) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(path, f"must be a map, not {_named(value)}")
        taken = {}
        for field, below in value.items():
            name = field if field in shape else _spelt(field, shape)
            if not name:
                raise self._unknown((*path, field), list(shape))
            taken[name] = self.take(below, shape[name], (*path, field))
        return taken

    def _unknown(self, path: _Path, known: Sequence[str]) -> DocumentError:
        return DocumentError(
            f"unknown field `{shown(path)}` in {self._what}",
            at=place(self._document, path),
            help=suggestion(str(path[-1]), known, f"known fields: {', '.join(known)}"),
        )

    def _wrong(self, path: _Path, message: str) -> DocumentError:
        field = f"`{shown(path)}` of {self._what}" if path else self._what
        return DocumentError(f"{field} {message}", at=place(self._document, path))


def _spelt(field: str, shape: dict[str, Shape]) -> str:
    lower = field.lower()
    return next((name for name in shape if name.lower() == lower), "")


def _is_labels(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(label, str) for label in value.values())


_SCALARS: dict[str, tuple[Callable[[Any], bool], str]] = {
    TEXT: (lambda value: isinstance(value, str), "a string"),
    FLAG: (lambda value: isinstance(value, bool), "true or false"),
    NUMBER: (
        lambda value: isinstance(value, int) and not isinstance(value, bool),
        "a whole number",
    ),
    MAP: (lambda value: isinstance(value, dict), "a map"),
    LABELS: (_is_labels, "a map of strings"),
}
"""What fits a scalar shape, and how it is called."""


def _named(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    if isinstance(value, list):
        return "a list"
    return f"`{plain(value)}`"


def shown(path: _Path) -> str:
    """Return a path as people write it: `results[0].policy`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def place(document: Document, path: _Path = ()) -> Location:
    """Return file and line of a field of a document."""
    return Location(document.file, document.line_of(list(path)), shown(path))
