"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902) as the API server applies them, and the choice between kinds of patches.

Strict, unlike the engine's patches, which follow Kyverno: a missing path is an error here.
"""

from __future__ import annotations

from typing import Any

from kpolicy_sandbox.errors import ApiError, bad_request

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
            return _add(document, path, operation["value"])
        case "replace":
            _get(document, path)
            return _put(document, path, operation["value"])
        case "remove":
            return _remove(document, path)
        case "test":
            if _get(document, path) != operation.get("value"):
                raise ValueError(f"testing path {operation['path']} value failed")
            return document
        case "move":
            source = _parts(operation["from"])
            value = _get(document, source)
            return _add(_remove(document, source), path, value)
        case "copy":
            return _add(document, path, _get(document, _parts(operation["from"])))
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


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    made: Any = list(document) if isinstance(document, list) else dict(document)
    index = _index(made, path[0]) if len(path) > 1 or isinstance(made, list) else path[0]
    made[index] = _put(made[index], path[1:], value) if len(path) > 1 else value
    return made


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    if len(path) > 1:
        index = _index(document, path[0])
        made = list(document) if isinstance(document, list) else dict(document)
        made[index] = _add(document[index], path[1:], value)
        return made
    if isinstance(document, list):
        index = len(document) if path[0] == "-" else int(path[0])
        if not 0 <= index <= len(document):
            raise ValueError(f"invalid index referenced: {path[0]}")
        return [*document[:index], value, *document[index:]]
    return {**document, path[0]: value}


def _remove(document: Any, path: list[str]) -> Any:
    index = _index(document, path[0])
    made = list(document) if isinstance(document, list) else dict(document)
    if len(path) > 1:
        made[index] = _remove(document[index], path[1:])
    else:
        del made[index]
    return made
