"""Objects that generate rules make, from data in the rule or as copies of others (rows A-87, U-05)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError

from .labels import SOURCE_UID

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


_BOOKKEEPING = ("creationTimestamp", "managedFields", "resourceVersion", "selfLink", "uid")


def listed(value: Json) -> list[Object]:
    """Return an object, or those of a List, as they may be wanted; raises EvaluationError for what is none.

    What a SecretList holds are Secrets, whatever the items say.
    """
    if not isinstance(value, dict):
        raise EvaluationError("what is generated must be an object")
    items, kind = value.get("items"), str(value.get("kind") or "")
    if not isinstance(items, list) or not kind.endswith("List"):
        return [value]
    if kind == "List":
        return [one for item in items for one in listed(item)]
    head = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    if not all(isinstance(one, dict) for one in items):
        raise EvaluationError("what is generated must be an object")
    return [{**one, **head} for one in items]


def placed_as(obj: Object, namespace: str) -> Object:
    """Return an object as it is to be made in a namespace, without what the server keeps (row GP-10).

    One that was read from the cluster is a copy and is labelled with its source (row GP-11). Owners in another namespace
    cannot own it.
    """
    given = obj.get("metadata")
    old = given if isinstance(given, dict) else {}
    kept = {key: value for key, value in old.items() if key not in _BOOKKEEPING}
    if old.get("namespace") and old["namespace"] != namespace:
        kept.pop("ownerReferences", None)
    kept.pop("namespace", None)
    if namespace:
        kept["namespace"] = namespace
    if old.get("resourceVersion") and old.get("uid"):
        kept["labels"] = {**(kept.get("labels") or {}), SOURCE_UID: str(old["uid"])}
    return {**obj, "metadata": kept}


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
