"""The same stored object in another version of its resource: Events by field, custom resources by name of the version only."""

from __future__ import annotations

from typing import Any

from kpolicy_sandbox.kinds import EVENTS, Resource

from .events import to_core, to_new

Object = dict[str, Any]


def presented(resource: Resource, obj: Object) -> Object:
    """Return an object in the version of a resource; the same object where it is in it already."""
    if resource.group == EVENTS:
        return obj if obj.get("apiVersion") == resource.api_version else to_new(obj)
    if resource.storage == "/events" and obj.get("apiVersion") != "v1":
        return to_core(obj)
    if obj.get("apiVersion") == resource.api_version:
        return obj
    return {**obj, "apiVersion": resource.api_version}


def stored_form(resource: Resource, obj: Object) -> Object:
    """Return an object in the version in which it is stored."""
    if resource.group == EVENTS:
        return to_core(obj)
    if resource.custom is not None:
        return {**obj, "apiVersion": f"{resource.group}/{resource.custom.storage_version}"}
    return obj
