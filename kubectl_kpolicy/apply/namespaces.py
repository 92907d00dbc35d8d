"""Namespaces and their labels, learnt from the Namespace objects that came with the input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .names import labels_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.model import Object


def labels_by_namespace(objects: Iterable[Object]) -> dict[str, Mapping[str, str]]:
    """Return the labels of every Namespace among `objects`, by its name."""
    return {name: labels_of(obj) for name, obj in namespaces_by_name(objects).items()}


def namespaces_by_name(objects: Iterable[Object]) -> dict[str, Object]:
    """Return every Namespace among `objects`, by its name."""
    return {
        name_of(obj): obj
        for obj in objects
        if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"
    }
