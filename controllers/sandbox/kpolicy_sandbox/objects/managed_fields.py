"""The record of who owns which field of an object, and what plain writes leave in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .field_paths import from_fields, leaves, to_fields

if TYPE_CHECKING:
    from .field_paths import Path
    from .shapes import Shape

Object = dict[str, Any]
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, and when, as `managedFields` record it."""

    manager: str
    api_version: str
    subresource: str
    stamp: str
    force: bool = False


def record_update(shape: Shape, before: Object | None, after: Object, writer: Writer) -> Object:
    """Return `after` with `managedFields` that say what the writer changed since `before`."""
    old = leaves(shape, before) if before else {}
    new = leaves(shape, after)
    changed = {path for path, value in new.items() if old.get(path, _MISSING) != value}
    gone = old.keys() - new.keys()
    known = entries(before) if before else []
    if not changed and not gone:
        return with_entries(after, known)
    mine = next((one for one in known if made_by(one, writer, "Update")), None)
    others = without([one for one in known if one is not mine], changed | gone)
    paths = ((from_fields(mine["fieldsV1"]) if mine else set()) - gone) | changed
    if not paths:
        return with_entries(after, others)
    made = entry(
        writer.manager, "Update", writer.api_version, writer.subresource, writer.stamp, paths
    )
    return with_entries(after, [*others, made])


def made_by(one: Object, writer: Writer, operation: str) -> bool:
    """Tell whether an entry is a writer's own, of an operation."""
    return (one.get("manager"), one.get("operation"), one.get("subresource", "")) == (
        writer.manager,
        operation,
        writer.subresource,
    )


def without(known: list[Object], lost: set[Path]) -> list[Object]:
    """Return entries that no longer own some paths; those that then own nothing are gone."""
    made = []
    for one in known:
        paths = from_fields(one.get("fieldsV1"))
        if not paths & lost:
            made.append(one)
        elif left := paths - lost:
            fresh = entry("", "", "", "", "", left)["fieldsV1"]
            made.append({**one, "fieldsV1": fresh})
    return made


def with_entries(obj: Object, known: list[Object]) -> Object:
    """Return an object with these entries as its `managedFields`."""
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": {**meta, "managedFields": known} if known else meta}


def entry(
    manager: str, operation: str, api_version: str, subresource: str, stamp: str, paths: set[Path]
) -> dict[str, Any]:
    """Return one entry of `managedFields`."""
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields(paths),
    }
    return {**made, "subresource": subresource} if subresource else made


def entries(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an object's `managedFields`."""
    found = obj.get("metadata", {}).get("managedFields")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
