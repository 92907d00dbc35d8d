"""The object that a request carries once variables given by hand are put into it (`request.object.metadata.labels.x=y`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.evaluate import dotted_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Object

_NEW, _OLD = ["request", "object"], ["request", "oldObject"]


def overridden(
    obj: Object, variables: Mapping[str, Any], operation: str
) -> tuple[Object | None, Object | None]:
    """Return the new and the old object of a request on `obj`.

    As in Kyverno's CLI an UPDATE changes nothing but what variables say, and a DELETE has only an old object.
    """
    new: Object | None = None if operation == "DELETE" else obj
    old: Object | None = obj if operation in ("UPDATE", "DELETE") else None
    for key, value in variables.items():
        if not key.startswith("request."):
            continue
        path = dotted_path(key)
        if path[:2] == _NEW and new is not None:
            new = _placed(new, path[2:], value)
        elif path[:2] == _OLD and old is not None:
            old = _placed(old, path[2:], value)
    return new, old


def _placed(data: Any, path: Sequence[str], value: Any) -> Any:
    """Return `data` with `value` at `path`; only the maps on the way are copied, maps that meet are merged."""
    if path:
        known = data if isinstance(data, dict) else {}
        return {**known, path[0]: _placed(known.get(path[0]), path[1:], value)}
    if isinstance(data, dict) and isinstance(value, dict):
        return {**data, **{key: _placed(data.get(key), (), below) for key, below in value.items()}}
    return value
