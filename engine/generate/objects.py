"""Objects that generate rules make, from data in the rule or as copies of others (rows A-87, U-05)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Block, Json, Object

_OF_THE_SERVER = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)


def from_data(data: Json, where: Block, labels: Mapping[str, str]) -> Object:
    """Return the object that `data` describes, named and placed by `where` (apiVersion, kind, name, namespace)."""
    given = data if isinstance(data, dict) else {}
    metadata = given.get("metadata")
    head = {
        "apiVersion": where.get("apiVersion") or given.get("apiVersion", ""),
        "kind": where.get("kind") or given.get("kind", ""),
        "metadata": _placed(metadata if isinstance(metadata, dict) else {}, where, labels),
    }
    return {**head, **{key: value for key, value in given.items() if key not in head}}


def copy_of(source: Object, where: Block, labels: Mapping[str, str]) -> Object:
    """Return a copy of `source` under another name or namespace, without what belongs to the original alone."""
    old = source.get("metadata") or {}
    kept = {key: value for key, value in old.items() if key not in _OF_THE_SERVER}
    made = {key: value for key, value in source.items() if key != "status"}
    kept["name"] = where.get("name") or old.get("name", "")
    made["metadata"] = _placed(kept, where, labels)
    return made


def _placed(metadata: Block, where: Block, labels: Mapping[str, str]) -> Object:
    made = dict(metadata)
    if where.get("name"):
        made["name"] = where["name"]
    made.pop("namespace", None)
    if where.get("namespace"):
        made["namespace"] = where["namespace"]
    made["labels"] = {**(metadata.get("labels") or {}), **labels}
    return made
