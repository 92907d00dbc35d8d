"""Objects in memory with what an API server adds to them: versions, uids, events; the inside of `fake.FakeClient`.

Apart from the client so that the interface reads as an interface. It is no server: no schemas, no admission, no rights.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import orjson

from controllers.kube.client import Event
from controllers.kube.errors import Conflict, Invalid, NotFound

if TYPE_CHECKING:
    from controllers.kube.clock import Clock
    from controllers.kube.kinds import Kind
    from engine.model import Json, Object

Key = tuple[str, str]
T = TypeVar("T")


@dataclass(slots=True)
class Table:
    """Objects of one resource, all its events, and those who wait for more."""

    kind: Kind
    objects: dict[Key, Object] = field(default_factory=dict)
    events: list[tuple[int, Event, Object | None]] = field(default_factory=list)
    oldest: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class Memory:
    """All tables, with one counter of versions."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._version = itertools.count(1)
        self.last = 0
        self.tables: dict[tuple[str, str], Table] = {}

    def table(self, kind: Kind) -> Table:
        """Return the objects of a resource: all versions of a group share them."""
        return self.tables.setdefault((kind.group, kind.plural), Table(kind))

    def one(self, table: Table, name: str, namespace: str) -> Object:
        """Return the stored object itself; raises NotFound."""
        found = table.objects.get((namespace, name))
        if found is None:
            raise NotFound(f'{table.kind} "{name}" not found', status=404, reason="NotFound")
        return found

    def next(self) -> int:
        """Count one version on and return it."""
        self.last = next(self._version)
        return self.last

    def stamp(self) -> str:
        """Return the current instant as the API writes it."""
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def replace(
        self, table: Table, old: Object, new: Object, subresource: str, dry_run: bool
    ) -> Object:
        """Put `new` in the place of `old`; raises Conflict when it states another version."""
        wanted = (new.get("metadata") or {}).get("resourceVersion")
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            raise Conflict(
                f'Operation cannot be fulfilled on {table.kind} "{old["metadata"]["name"]}": '
                "the object has been modified; please apply your changes to the latest version "
                "and try again",
                status=409,
                reason="Conflict",
            )
        if subresource == "status":
            new = {**copied(old), "status": new.get("status")}
        return self.store(table, new, old, dry_run=dry_run)

    def store(
        self, table: Table, new: Object, before: Object | None, *, old: Object | None = None, dry_run: bool = False
    ) -> Object:  # fmt: skip
        """Keep an object with the metadata that servers set; one without change keeps its version."""
        before = before or old
        metadata = new.setdefault("metadata", {})
        kept = before["metadata"] if before else {}
        number = self.last + 1
        metadata["uid"] = kept.get("uid") or metadata.get("uid") or f"uid-{number}"
        metadata["creationTimestamp"] = (
            kept.get("creationTimestamp") or metadata.get("creationTimestamp") or self.stamp()
        )
        generation = int(kept.get("generation") or 0)
        changes_spec = before is None or _without(before) != _without(new)
        metadata["generation"] = generation + 1 if changes_spec else generation
        if before is not None:
            metadata["resourceVersion"] = kept["resourceVersion"]
            if new == before:
                return copied(new)
        if dry_run:
            return copied(new)
        metadata["resourceVersion"] = str(self.next())
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.remove(table, key_of(new))
            return copied(new)
        table.objects[key_of(new)] = new
        self.announce(table, Event("MODIFIED" if before else "ADDED", new), before)
        return copied(new)

    def remove(self, table: Table, key: Key) -> None:
        """Remove an object, if it is there, and announce it."""
        old = table.objects.pop(key, None)
        if old is None:
            return
        gone = copied(old)
        gone["metadata"]["resourceVersion"] = str(self.next())
        self.announce(table, Event("DELETED", gone), old)

    def announce(self, table: Table, event: Event, old: Object | None) -> None:
        """Record an event at the current version and wake the watches of its table."""
        table.events.append((self.last, event, old))
        _wake(table)

    def wake(self) -> None:
        """Let all watches look again."""
        for table in self.tables.values():
            _wake(table)


def _wake(table: Table) -> None:
    table.changed.set()
    table.changed = asyncio.Event()


def copied(value: T) -> T:
    """Return a value that shares nothing with the given one."""
    made: T = orjson.loads(orjson.dumps(value))
    return made


def key_of(obj: Object) -> Key:
    """Return namespace and name of an object."""
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _without(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


def merged(into: Json, patch: Json) -> Json:
    """Apply a JSON merge patch (RFC 7396) to a value that may be changed."""
    if not isinstance(patch, dict):
        return patch
    made = into if isinstance(into, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), value)
    return made


def json_patched(patch: Json, old: Object) -> Object:
    """Return an object with a JSON patch applied; raises Invalid."""
    from engine.errors import EngineError
    from engine.mutate.json6902 import apply_patch
    from engine.mutate.operations import read_operations

    try:
        return copied(apply_patch(read_operations(patch), old))
    except EngineError as error:
        raise Invalid(error.message, status=422, reason="Invalid") from error
