"""The same stored object in another version of its resource: Events by field, custom resources by name of the version only."""

from __future__ import annotations

from typing import Any

from kpolicy_sandbox.kinds import EVENTS, Resource

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


# Events are one store with two faces: core `v1` and `events.k8s.io/v1`, converted field by field; stored as core.
#
# Which face a policy sees matters (the one-time-code scenario reads `message`), so the same conversion serves reads, writes and
# admission with matchPolicy Equivalent.


_PAIRS = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
TO_NEW = dict(_PAIRS)
TO_CORE = {new: core for core, new in _PAIRS}


def to_core(event: Object) -> Object:
    """Return an Event as core `v1` has it."""
    made = {TO_CORE.get(key, key): value for key, value in event.items()}
    made["apiVersion"] = "v1"
    return made


def to_new(event: Object) -> Object:
    """Return an Event as `events.k8s.io/v1` has it."""
    made = {TO_NEW.get(key, key): value for key, value in event.items()}
    made["apiVersion"] = "events.k8s.io/v1"
    return made
