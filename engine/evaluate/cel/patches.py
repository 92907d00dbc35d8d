"""JSON patches of policies written in CEL: RFC 6902 to the letter, as `evanphx/json-patch` applies it for the API server.

Stricter than the patches of classic policies (`engine.mutate.json6902`), which make parents and pass over what is not there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.mutate.json6902 import apply_patch
from engine.mutate.operations import Operation, read_operations
from engine.mutate.pointer import split
from engine.mutate.values import same

if TYPE_CHECKING:
    from engine.model import Json, Object

_SOURCED: Final = frozenset({"copy", "move"})


class _TestFailed(Exception):  # noqa: N818 - no mistake: the patch is not for this object
    """A `test` operation does not hold."""


def apply_patches(patches: Any, obj: Object) -> Object:
    """Return an object with patches applied; the very same one where nothing changes or a `test` operation does not hold.

    Raises EvaluationError `JSON Patch: …` for what is no list of patches and for an operation that does not apply.
    """
    if not isinstance(patches, list):
        raise EvaluationError("a JSON patch expression must give a list of patches")
    try:
        patched = obj
        for operation in read_operations(patches):
            patched = _applied(operation, patched)
    except _TestFailed:
        return obj
    except EvaluationError as error:
        raise error.reworded(f"JSON Patch: {error.message}") from error
    return obj if same(obj, patched) else patched


def _applied(operation: Operation, obj: Object) -> Object:
    if operation.kind == "test":
        if not _holds(operation, obj):
            raise _TestFailed
        return obj
    if operation.kind in _SOURCED:
        parent, key = _parent(operation, operation.source, obj, "from path")
        _require(operation, operation.source, parent, key)
    parent, key = _parent(operation, operation.path, obj, "path")
    if operation.kind in ("remove", "replace"):
        _require(operation, operation.path, parent, key)
    return apply_patch([operation], obj)


def _holds(operation: Operation, obj: Object) -> bool:
    try:
        parent, key = _parent(operation, operation.path, obj, "path")
    except EvaluationError:
        return False
    found, value = _member(parent, key)
    return same(value, operation.value) if found else operation.value is None


def _parent(operation: Operation, path: str, obj: Object, what: str) -> tuple[Json, str]:
    """Return the map or list that a path's last key is for, and the key; raises EvaluationError where there is none."""
    *parents, key = split(path) or [""]
    container: Json = obj
    for part in parents:
        found, container = _member(container, part)
        if not found or not isinstance(container, dict | list):
            text = f'doc is missing {what}: "{path}": missing value'
            raise EvaluationError(f"{operation.kind} operation does not apply: {text}")
    return container, key


def _require(operation: Operation, path: str, parent: Json, key: str) -> None:
    found, _ = _member(parent, key)
    if found:
        return
    if operation.kind == "remove":
        text = f"Unable to remove nonexistent key: {key}: missing value"
        raise EvaluationError(f"error in remove for path: '{path}': {text}")
    text = f"doc is missing key: {path}: missing value"
    raise EvaluationError(f"{operation.kind} operation does not apply: {text}")


def _member(container: Json, key: str) -> tuple[bool, Json]:
    """Return whether a map or list has a member, and the member."""
    if isinstance(container, dict):
        return key in container, container.get(key)
    if not isinstance(container, list) or not key.isdigit() or int(key) >= len(container):
        return False, None
    return True, container[int(key)]
