"""One document of a text: its value, where it stands, and on request where a part of it stands.

Lines of parts are needed only for messages, so nothing about them is kept while reading; the first question composes the
document's own stretch of text again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from engine.errors import DocumentError
from engine.lang.work import LIMITS

from .compose import roots


class Document:
    """A decoded document, the line of its first value (from 1), the name of its file, and lines and names of `repeated` keys."""

    __slots__ = ("_end", "_line", "_path", "_root", "_start", "_text", "_whole", "file", "repeated", "value")  # fmt: skip

    def __init__(
        self,
        value: Any,
        line: int = 1,
        file: str = "",
        *,
        text: str = "",
        start: int = 0,
        end: int = 0,
        repeated: tuple[tuple[int, str], ...] = (),
    ) -> None:
        self.value = value
        self._line = line
        self.file = file
        self.repeated = repeated
        self._text = text
        self._start = start
        self._end = end
        self._root: Node | None = None
        self._whole: Document | None = None
        self._path: tuple[str | int, ...] = ()

    def __repr__(self) -> str:
        return f"<Document {self.file or 'text'}:{self._line} {type(self.value).__name__}>"

    @property
    def line(self) -> int:
        """The line of the first value, from 1."""
        return self._line if self._whole is None else self._whole.line_of(self._path)

    def part(self, path: Sequence[str | int], value: Any) -> Document:
        """Return a part as a document of its own, for members of lists; its line is looked up when asked for."""
        found = Document(value, file=self.file)
        found._whole = self
        found._path = tuple(path)
        return found

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line where the part at `path` begins, or of its nearest ancestor that stands in the text."""
        if self._whole is not None:
            return self._whole.line_of((*self._path, *path))
        node = self._compose()
        first = None
        for step in path:
            found = _child(node, step) if node is not None else None
            if found is None:
                break
            first, node = found
        return self._line if first is None else self._offset() + first

    def _compose(self) -> Node | None:
        """Return the root node of the document's own text, composed once."""
        if self._root is None and self._text:
            try:
                self._root = next(
                    roots(self._text[self._start : self._end], LIMITS, self.file, care=True), None
                )
            except DocumentError:
                self._text = ""
        return self._root

    def _offset(self) -> int:
        """Return the line at which the document's own text begins."""
        root = self._root
        return self._line - (root.start_mark.line if root is not None else 0)


def _child(node: Node, step: str | int) -> tuple[int, Node] | None:
    """Return line (from 0) and value node of a key or index; of equal keys the last one counts."""
    if isinstance(node, SequenceNode):
        if isinstance(step, int) and -len(node.value) <= step < len(node.value):
            item = node.value[step]
            return item.start_mark.line, item
        return None
    if isinstance(node, MappingNode):
        for key, value in reversed(node.value):
            if isinstance(key, ScalarNode) and key.value == str(step):
                return key.start_mark.line, value
    return None
