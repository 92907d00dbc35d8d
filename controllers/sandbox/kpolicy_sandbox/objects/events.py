"""Events are one store with two faces: core `v1` and `events.k8s.io/v1`, converted field by field; stored as core.

Which face a policy sees matters (the one-time-code scenario reads `message`), so the same conversion serves reads, writes and
admission with matchPolicy Equivalent.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
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
