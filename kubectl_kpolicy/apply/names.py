"""How objects are named: by identity, by reference, by the path that results show. Sound for whatever a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.fields import part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object

Identity = tuple[str, str, str, str]
"""API version, kind, namespace, name."""


def name_of(obj: Mapping[str, Any]) -> str:
    """Return an object's name; its generateName while it has no name (row A-34)."""
    metadata = part(obj, "metadata")
    return _text(metadata.get("name")) or _text(metadata.get("generateName"))


def namespace_of(obj: Mapping[str, Any]) -> str:
    """Return an object's namespace, empty where it has none."""
    return _text(part(obj, "metadata").get("namespace"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """Return an object's labels, empty where they are missing or not a map."""
    return part(obj, "metadata", "labels")


def identity(obj: Object) -> Identity:
    """Return what tells an object from others of a cluster."""
    return str(obj.get("apiVersion", "")), str(obj.get("kind", "")), namespace_of(obj), name_of(obj)


def resource_path(obj: Object) -> str:
    """Return `namespace/Kind/name` of an object, its namespace empty where it has none."""
    return f"{namespace_of(obj)}/{obj.get('kind', '')}/{name_of(obj)}"


def reference(obj: Object) -> dict[str, str]:
    """Return apiVersion, kind, namespace and name of an object; what it does not have is left out."""
    keys = ("apiVersion", "kind", "namespace", "name")
    return {key: value for key, value in zip(keys, identity(obj), strict=True) if value}
