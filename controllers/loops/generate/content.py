"""Comparing and replacing the content of generated objects: pure, objects in, objects out (rows U-05, U-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.gotext import plain

if TYPE_CHECKING:
    from engine.model import Json, Object

_NOT_CONTENT = frozenset({"metadata", "status"})


def satisfies(existing: Json, wanted: Json) -> bool:
    """Tell whether a value holds everything that is wanted: maps may hold more, lists not.

    What the server or people add beside is left alone, so that defaults are not fought over (row U-06).
    """
    if isinstance(wanted, dict):
        return isinstance(existing, dict) and all(
            key in existing and satisfies(existing[key], value)
            for key, value in wanted.items()
            if value is not None
        )
    if isinstance(wanted, list):
        return (
            isinstance(existing, list)
            and len(existing) == len(wanted)
            and all(satisfies(*pair) for pair in zip(existing, wanted, strict=True))
        )
    return bool(existing == wanted)


def is_as_wanted(existing: Object, wanted: Object, *, is_copy: bool) -> bool:
    """Tell whether an object needs no update. A copy must equal its source, as what is gone there must go here."""
    if not satisfies(_placed(existing), _placed(wanted)):
        return False
    if is_copy:
        return _content(existing) == _content(wanted)
    return satisfies(_content(existing), _content(wanted))


def replaced(existing: Object, wanted: Object) -> Object:
    """Return an object with the wanted content; labels and annotations of others stay."""
    metadata = dict(existing.get("metadata") or {})
    for name in ("labels", "annotations"):
        more = (wanted.get("metadata") or {}).get(name)
        if more:
            metadata[name] = {**(metadata.get(name) or {}), **more}
    kept = {"status": existing["status"]} if "status" in existing else {}
    return {**{key: value for key, value in wanted.items() if key != "status"}, "metadata": metadata, **kept}  # fmt: skip


def with_texts(obj: Object) -> Object:
    """Return an object whose labels and annotations are texts, as no server takes the numbers that variables may give."""
    metadata = obj["metadata"]
    changed = {
        name: {key: one if isinstance(one, str) else plain(one) for key, one in values.items()}
        for name in ("labels", "annotations")
        if isinstance(values := metadata.get(name), dict)
        and any(not isinstance(one, str) for one in values.values())
    }
    return {**obj, "metadata": {**metadata, **changed}} if changed else obj


def _content(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in _NOT_CONTENT}


def _placed(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    return {name: metadata.get(name) or {} for name in ("labels", "annotations")}
