"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) as the API server applies them, and the choice between kinds of patches.

Strict, unlike the engine's patches, which follow Kyverno: a missing path is an error here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import ApiError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable


JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def merge_patch(current: Any, patch: Any) -> Any:
    """Return `current` with a merge patch applied; null removes."""
    if not isinstance(patch, dict):
        return patch
    made = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merge_patch(made.get(key), value)
    return made


def json_patch(current: Any, operations: Any) -> Any:
    """Return `current` with a JSON patch applied; ApiError 422 for one that does not apply."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    made = current
    try:
        for operation in operations:
            made = _apply(made, operation)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise ApiError(
            422,
            "Invalid",
            f"the server rejected our request due to an error in our request: {error}",
        ) from error
    return made


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _parts(operation["path"])
    match operation["op"]:
        case "add":
            return _edited(document, path, _add, operation["value"])
        case "replace":
            return _edited(document, path, _replace, operation["value"])
        case "remove":
            return _edited(document, path, _remove)
        case "test":
            if _get(document, path) != operation.get("value"):
                raise ValueError(f"testing path {operation['path']} value failed")
            return document
        case "move":
            source = _parts(operation["from"])
            value = _get(document, source)
            return _edited(_edited(document, source, _remove), path, _add, value)
        case "copy":
            return _edited(document, path, _add, _get(document, _parts(operation["from"])))
    raise ValueError(f"unexpected kind: {operation['op']}")


def _parts(pointer: str) -> list[str]:
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"missing path: {pointer}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _get(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part)]
    return document


def _index(container: Any, part: str) -> Any:
    if isinstance(container, list):
        index = int(part)
        if not 0 <= index < len(container):
            raise ValueError(f"invalid index referenced: {part}")
        return index
    if part not in container:
        raise ValueError(f"missing path: {part}")
    return part


def _edited(
    document: Any, path: list[str], edit: Callable[[Any, str, Any], None], value: Any = None
) -> Any:
    """Return a document, copied along a path, after `edit` of what holds the last part; the whole one where the path is empty."""
    if not path:
        if edit is _remove:
            raise ValueError("missing path: the whole document cannot be removed")
        return value
    made = list(document) if isinstance(document, list) else dict(document)
    if len(path) == 1:
        edit(made, path[0], value)
    else:
        index = _index(made, path[0])
        made[index] = _edited(made[index], path[1:], edit, value)
    return made


def _add(container: Any, part: str, value: Any) -> None:
    if not isinstance(container, list):
        container[part] = value
        return
    index = len(container) if part == "-" else int(part)
    if not 0 <= index <= len(container):
        raise ValueError(f"invalid index referenced: {part}")
    container.insert(index, value)


def _replace(container: Any, part: str, value: Any) -> None:
    container[_index(container, part)] = value


def _remove(container: Any, part: str, _: Any) -> None:
    del container[_index(container, part)]
