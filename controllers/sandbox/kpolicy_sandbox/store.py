"""Where objects lie: all of them in memory, every change written through to SQLite, one counter of resource versions.

Synchronous and without any rule about objects; the rooms above decide what may be stored. Changes go into a ring that watches
read from, and to listeners (watches, the sandbox's own controllers).

INVARIANT: a stored object is never changed in place; whoever changes one makes a new one.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

Object = dict[str, Any]
Objects = list[Object]
Key = tuple[str, str]
HISTORY = 20_000

_SCHEMA = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
CREATE TABLE IF NOT EXISTS objects (
  storage TEXT, namespace TEXT, name TEXT, revision INTEGER, body BLOB, PRIMARY KEY (storage, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT);
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: `type` is ADDED, MODIFIED or DELETED; `before` is the object as it was."""

    revision: int
    storage: str
    type: str
    object: Object
    before: Object | None


class Stale(Exception):  # noqa: N818 - says what the object is, as NotFound would
    """The object is at another resource version than the writer thought."""


class Store:
    """Objects by storage key, namespace and name."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = sqlite3.connect(str(path) if path else ":memory:", isolation_level=None)
        self._database.executescript(_SCHEMA)
        self._objects: dict[str, dict[Key, Object]] = {}
        self._owned: dict[str, set[tuple[str, Key]]] = {}
        self._uids: dict[str, tuple[str, Key]] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self.history: deque[Change] = deque(maxlen=HISTORY)
        self.revision = int(self.fact("revision") or 1)
        self.oldest = self.revision
        self._load()

    def _load(self) -> None:
        rows = self._database.execute("SELECT storage, namespace, name, body FROM objects")
        for storage, namespace, name, body in rows:
            obj = orjson.loads(body)
            self._objects.setdefault(storage, {})[(namespace, name)] = obj
            self._index(storage, (namespace, name), obj)

    def fact(self, name: str) -> str | None:
        """Return a value that survives restarts."""
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set_fact(self, name: str, value: str) -> None:
        """Keep a value across restarts."""
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def get(self, storage: str, namespace: str, name: str) -> Object | None:
        """Return an object, None when there is none."""
        return self._objects.get(storage, {}).get((namespace, name))

    def list(self, storage: str, namespace: str = "") -> Objects:
        """Return objects ordered by namespace and name; all namespaces without one."""
        held = self._objects.get(storage, {})
        keys = sorted(key for key in held if not namespace or key[0] == namespace)
        return [held[key] for key in keys]

    def storages(self) -> Sequence[str]:
        """Return every storage key under which something lies."""
        return [storage for storage, held in self._objects.items() if held]

    def owned_by(self, uid: str) -> Iterator[tuple[str, Object]]:
        """Yield the objects that name an owner by this UID, each with its storage key."""
        for storage, key in sorted(self._owned.get(uid, ())):
            yield storage, self._objects[storage][key]

    def by_uid(self, uid: str) -> Object | None:
        """Return the object with a UID."""
        place = self._uids.get(uid)
        return self._objects[place[0]][place[1]] if place else None

    def put(self, storage: str, obj: Object, expected: str | None = None) -> Object:
        """Store an object and return it with its new resourceVersion; Stale when it is not at `expected` ("" = must be new)."""
        meta = obj["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        before = self._objects.get(storage, {}).get(key)
        found = before["metadata"]["resourceVersion"] if before else ""
        if expected is not None and found != expected:
            raise Stale
        stored = {**obj, "metadata": {**meta, "resourceVersion": str(self.revision + 1)}}
        self._write(storage, key, stored)
        kind = "MODIFIED" if before else "ADDED"
        self._publish(Change(self.revision, storage, kind, stored, before))
        return stored

    def remove(self, storage: str, namespace: str, name: str) -> Object | None:
        """Remove an object and return its last state; None when there is none."""
        before = self._objects.get(storage, {}).get((namespace, name))
        if before is None:
            return None
        meta = {**before["metadata"], "resourceVersion": str(self.revision + 1)}
        self._write(storage, (namespace, name), None)
        last = {**before, "metadata": meta}
        self._publish(Change(self.revision, storage, "DELETED", last, before))
        return last

    def _write(self, storage: str, key: Key, obj: Object | None) -> None:
        revision = self.revision + 1
        database = self._database
        # serialised before the transaction opens, so that what cannot be written changes nothing
        body = orjson.dumps(obj) if obj is not None else b""
        database.execute("BEGIN")
        if obj is None:
            database.execute(
                "DELETE FROM objects WHERE storage=? AND namespace=? AND name=?", (storage, *key)
            )
        else:
            database.execute(
                "INSERT OR REPLACE INTO objects VALUES (?,?,?,?,?)", (storage, *key, revision, body)
            )
        database.execute("INSERT OR REPLACE INTO facts VALUES ('revision', ?)", (str(revision),))
        database.execute("COMMIT")
        held = self._objects.setdefault(storage, {})
        if (old := held.pop(key, None)) is not None:
            self._unindex(storage, key, old)
        if obj is not None:
            held[key] = obj
            self._index(storage, key, obj)
        self.revision = revision

    def _index(self, storage: str, key: Key, obj: Object) -> None:
        self._uids[obj["metadata"].get("uid", "")] = (storage, key)
        for owner in obj["metadata"].get("ownerReferences", ()):
            self._owned.setdefault(owner["uid"], set()).add((storage, key))

    def _unindex(self, storage: str, key: Key, obj: Object) -> None:
        self._uids.pop(obj["metadata"].get("uid", ""), None)
        for owner in obj["metadata"].get("ownerReferences", ()):
            if (owned := self._owned.get(owner["uid"])) is not None:
                owned.discard((storage, key))
                if not owned:
                    del self._owned[owner["uid"]]

    def _publish(self, change: Change) -> None:
        if len(self.history) == self.history.maxlen:
            self.oldest = self.history[0].revision
        self.history.append(change)
        for listener in tuple(self._listeners):
            listener(change)

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Call `listener` for every change, in order; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def since(self, revision: int) -> Sequence[Change]:
        """Return the changes after a revision; Stale when the ring does not reach back that far."""
        if revision < self.oldest:
            raise Stale
        return [change for change in self.history if change.revision > revision]

    def close(self) -> None:
        """Close the database."""
        self._database.close()
