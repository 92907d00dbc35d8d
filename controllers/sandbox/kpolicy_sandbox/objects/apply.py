"""Server-side apply: an object merged into what is there, and what its manager applied before and leaves out now removed.

The rules are the simple form of structured-merge-diff: what a manager leaves out is removed unless somebody else owns it; a
field that another manager owns with another value is a conflict unless forced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import ApiError

from .field_paths import from_fields, item_word, leaves, text_of
from .managed_fields import entries, entry, made_by, with_entries, without

if TYPE_CHECKING:
    from .field_paths import Path
    from .managed_fields import Writer
    from .shapes import Shape

Object = dict[str, Any]


def apply_object(shape: Shape, live: Object, applied: Object, writer: Writer) -> Object:
    """Return the live object (empty: a new one) with `applied` merged in; ApiError 409 naming every conflict."""
    wanted = leaves(shape, applied)
    held = leaves(shape, live)
    others = [one for one in entries(live) if not made_by(one, writer, "Apply")]
    mine = next((one for one in entries(live) if made_by(one, writer, "Apply")), None)
    conflicts = [
        (one, path)
        for one in others
        for path in sorted(from_fields(one.get("fieldsV1")) & wanted.keys())
        if wanted[path] is not ... and held.get(path, ...) != wanted[path]
    ]
    if conflicts and not writer.force:
        raise _conflict(conflicts)
    lost = {path for _, path in conflicts}
    kept = without(others, lost)
    dropped = from_fields(mine.get("fieldsV1") if mine else {}) - wanted.keys()
    for one in kept:
        dropped -= from_fields(one.get("fieldsV1"))
    made = _merge(shape, live, applied)
    # an item of a list goes before its fields, by whose keys it is found
    for path in sorted(dropped, key=len):
        made = _remove(shape, made, path)
    record = entry(
        writer.manager, "Apply", writer.api_version, writer.subresource, writer.stamp, set(wanted)
    )
    if mine and mine.get("fieldsV1") == record["fieldsV1"]:
        record = mine
    return with_entries(made, [record, *kept])


def _conflict(conflicts: list[tuple[Object, Path]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{one.get("manager", "")}"'
            + (f" using {one['apiVersion']}" if one.get("operation") == "Update" else ""),
            "field": text_of(path),
        }
        for one, path in conflicts
    ]
    by_manager: dict[str, list[str]] = {}
    for cause in causes:
        by_manager.setdefault(cause["message"], []).append(cause["field"])
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        parts = [
            "conflicts" + who.removeprefix("conflict") + ":\n- " + "\n- ".join(fields)
            for who, fields in by_manager.items()
        ]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(parts)
    return ApiError(409, "Conflict", text, {"causes": causes})


def _merge(shape: Shape, live: Any, applied: Any) -> Any:
    if isinstance(applied, dict) and isinstance(live, dict) and not shape.atomic:
        made = dict(live)
        for key, value in applied.items():
            made[key] = _merge(shape.child(key), made.get(key), value)
        return made
    if isinstance(applied, list) and isinstance(live, list) and shape.list_type != "atomic":
        held = {item_word(shape, item): item for item in live}
        inner = shape.item()
        for item in applied:
            word = item_word(shape, item)
            held[word] = _merge(inner, held[word], item) if word in held else item
        return list(held.values())
    return applied


def _remove(shape: Shape, value: Any, path: Path) -> Any:
    if not path:
        return value
    word, rest = path[0], path[1:]
    if word.startswith("f:"):
        key = word[2:]
        if not isinstance(value, dict) or key not in value:
            return value
        inner = _remove(shape.child(key), value[key], rest) if rest else None
        if inner is None or (rest and inner in ({}, [])):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: inner}
    if not isinstance(value, list):
        return value
    made = []
    for item in value:
        if item_word(shape, item) != word:
            made.append(item)
        elif rest:
            made.append(_remove(shape.item(), item, rest))
    return made
