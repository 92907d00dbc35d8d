"""Answers to the engine's questions from a handful of objects that stand for a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.evaluate import Answer, ConfigMapLookup, ListLookup, Lookup, ObjectLookup
from engine.lang import wildcard

if TYPE_CHECKING:
    from collections.abc import Sequence


def answer_from(lookup: Lookup, objects: Sequence[dict[str, Any]]) -> Answer:
    """Return the answer that a cluster of exactly these objects would give."""
    if isinstance(lookup, ConfigMapLookup):
        found = [obj for obj in objects if _is(obj, "ConfigMap", lookup.namespace, lookup.name)]
        return Answer.found(found[0]) if found else Answer.failed("not found")
    if isinstance(lookup, ObjectLookup):
        found = [obj for obj in objects if _is(obj, lookup.kind, lookup.namespace, lookup.name)]
        return Answer.found(found[0] if found else None)
    if isinstance(lookup, ListLookup):
        name, namespace = lookup.name or "*", lookup.namespace or "*"
        return Answer.found([obj for obj in objects if _is(obj, lookup.kind, namespace, name)])
    return Answer.absent()


def _is(obj: dict[str, Any], kind: str, namespace: str, name: str) -> bool:
    metadata = obj.get("metadata") or {}
    return (
        obj.get("kind") == kind
        and wildcard.match(namespace, str(metadata.get("namespace") or ""))
        and wildcard.match(name, str(metadata.get("name") or ""))
    )
