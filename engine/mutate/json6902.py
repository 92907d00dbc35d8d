"""Kyverno's patchesJson6902: RFC 6902 with negative indexes, parents made on add, and removal of what is not there (A-82, O-10).

Texts of errors are those that Kyverno reports. Every operation copies the maps and lists along its path and nothing else, so
neither the object nor the patch is ever changed. Deliberate differences: paths, padding of lists and what `copy` may add up to
are bounded, and a missing parent whose name is escaped (`~1`) is made under its real name.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError, LimitError

from . import pointer
from .values import check_level, same

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Json, Object

    from .operations import Operation

_MOST_COPIED: Final = 100_000


def apply_patch(operations: Sequence[Operation], resource: Object) -> Object:
    """Apply operations in order; return the very same object when they change nothing.

    Raises EvaluationError, in Kyverno's words, for the first operation that does not apply; LimitError where a bound is reached.
    """
    document = _Document(resource)
    for operation in operations:
        _APPLY[operation.kind](document, operation)
    return resource if same(resource, document.root) else document.root


class _Document:
    """The object while it is patched: its root, and how much has been copied within it."""

    __slots__ = ("_copied", "root")

    def __init__(self, root: Object) -> None:
        self.root = root
        self._copied = 0

    def find(self, path: str) -> tuple[Json, str] | None:
        """Return the map or list that a path's last key is for, and that key; None where there is none. Nothing is copied."""
        parts = pointer.split(path)
        if not parts:
            return None
        *parents, key = parts
        container: Json = self.root
        for part in parents:
            if not isinstance(container, dict | list) or not pointer.has(container, part):
                return None
            container = pointer.get(container, part)
        return (container, key) if isinstance(container, dict | list) else None

    def open(self, path: str) -> tuple[Json, str]:
        """Return the same as `find` for a path that it finds, with everything along the path copied, so it may be changed."""
        *parents, key = pointer.split(path)
        container: Json = dict(self.root)
        self.root = container
        for part in parents:
            inner = _shallow(pointer.get(container, part))
            pointer.replace(container, part, inner)
            container = inner
        return container, key

    def replace_root(self, value: Json) -> None:
        """Put another object in the place of the whole one."""
        if not isinstance(value, dict):
            raise EvaluationError("patch leaves something that is not an object")
        self.root = value

    def ensure_parents(self, path: str) -> None:
        """Make what is missing above a path's last key: a list where the next key is an index or `-`, else a map."""
        container: Json = dict(self.root)
        self.root = container
        for part, following in pairwise(pointer.split(path)):
            inner = pointer.get(container, part) if pointer.has(container, part) else None
            if inner is None:
                inner = _put_parent(container, part, following)
            elif isinstance(inner, dict | list):
                inner = _shallow(inner)
                pointer.replace(container, part, inner)
            else:
                raise EvaluationError("invalid state detected")
            container = inner

    def count_copy(self, value: Json) -> None:
        """Add the size of a copied value to what has been copied; LimitError beyond the bound, or where it is too deep."""
        pending = [(value, 0)]
        while pending:
            item, depth = pending.pop()
            self._copied += 1
            if self._copied > _MOST_COPIED:
                raise LimitError(f"patch copies more than {_MOST_COPIED} values")
            if isinstance(item, dict | list):
                check_level(depth)
                children = item.values() if isinstance(item, dict) else item
                pending.extend([(child, depth + 1) for child in children])


def _shallow(container: Json) -> Json:
    return dict(container) if isinstance(container, dict) else list(container)


def _put_parent(container: Json, key: str, following: str) -> Json:
    """Make a parent and put it in place: over a null that is there, else as a new member."""
    _pad(container, key)
    parent = _new_parent(following)
    put = pointer.replace if pointer.has(container, key) else pointer.add
    put(container, key, parent)
    return parent


def _pad(container: Json, key: str) -> None:
    index = pointer.index_of(key)
    if isinstance(container, list) and index is not None and index > len(container):
        container.extend([None] * _padding(index - len(container)))


def _new_parent(following: str) -> Json:
    if following == "-":
        return []
    index = pointer.index_of(following)
    if index is None:
        return {}
    if index < -1:
        raise pointer.bad_index(f"Unable to ensure path for negative index other than -1: {index}")
    return [None] * _padding(max(index, 0))


def _padding(count: int) -> int:
    if count > pointer.MOST_PADDING:
        raise LimitError(f"patch would add more than {pointer.MOST_PADDING} nulls to a list")
    return count


def _add(document: _Document, operation: Operation) -> None:
    path = operation.path
    if not path:
        document.replace_root(operation.value)
        return
    document.ensure_parents(path)
    if document.find(path) is None:
        raise pointer.missing(f'add operation does not apply: doc is missing path: "{path}"')
    container, key = document.open(path)
    _within(f"error in add for path: '{path}'", pointer.add, container, key, operation.value)


def _remove(document: _Document, operation: Operation) -> None:
    path = operation.path
    if document.find(path) is None:
        return
    container, key = document.open(path)
    _within(f"error in remove for path: '{path}'", pointer.remove, container, key)


def _replace(document: _Document, operation: Operation) -> None:
    path = operation.path
    if not path:
        document.replace_root(operation.value)
        return
    found = document.find(path)
    if found is None:
        raise pointer.missing(f"replace operation does not apply: doc is missing path: {path}")
    if not pointer.has(*found):
        raise pointer.missing(f"replace operation does not apply: doc is missing key: {path}")
    pointer.replace(*document.open(path), operation.value)


def _move(document: _Document, operation: Operation) -> None:
    source, path = operation.source, operation.path
    if not source:
        raise EvaluationError(
            "unable to move entire document to another path: invalid state detected"
        )
    if document.find(source) is None:
        raise pointer.missing(f"move operation does not apply: doc is missing from path: {source}")
    container, key = document.open(source)
    value = _within(f"error in move for path: '{key}'", pointer.get, container, key)
    pointer.remove(container, key)
    document.count_copy(value)
    if document.find(path) is None:
        raise pointer.missing(
            f"move operation does not apply: doc is missing destination path: {path}"
        )
    container, key = document.open(path)
    _within(f"error in move for path: '{path}'", pointer.add, container, key, value)


def _copy(document: _Document, operation: Operation) -> None:
    source, path = operation.source, operation.path
    found = document.find(source)
    if found is None:
        raise pointer.missing(
            f'copy operation does not apply: doc is missing from path: "{source}"'
        )
    value = _within(f"error in copy for from: '{source}'", pointer.get, *found)
    document.count_copy(value)
    if document.find(path) is None:
        raise pointer.missing(
            f"copy operation does not apply: doc is missing destination path: {path}"
        )
    container, key = document.open(path)
    _within("error while adding value during copy", pointer.add, container, key, value)


def _test(document: _Document, operation: Operation) -> None:
    path = operation.path
    found = document.find(path) if path else None
    if path and found is None:
        raise pointer.missing(f"test operation does not apply: is missing path: {path}")
    value = document.root if found is None else _tested(path, *found)
    if not same(value, operation.value):
        raise EvaluationError(f"testing value {path} failed: test failed")


def _tested(path: str, container: Json, key: str) -> Json:
    if isinstance(container, dict):
        return container.get(key)
    return _within(f"error in test for path: '{path}'", pointer.get, container, key)


def _within(context: str, action: Callable[..., Json], *arguments: Json) -> Json:
    """Run one step of an operation; put in front of its error what was being done."""
    try:
        return action(*arguments)
    except EvaluationError as error:
        raise EvaluationError(f"{context}: {error.message}") from error


_APPLY: Final[dict[str, Callable[[_Document, Operation], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
