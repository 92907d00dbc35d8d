"""Objects of one kind as last seen, with indexes: what a Reflector fills and everybody else reads without asking a server.

Nothing here waits. Listeners are told of every change at once and in order; they should note keys in a queue and return.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from engine.model import Object

    from .client import Event

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one object: `old` is None when it is new, `new` is None when it is gone."""

    key: Key
    old: Object | None
    new: Object | None


async def wait_synced(*stores: Store) -> None:
    """Return when all these stores hold everything."""
    for store in stores:
        await store.wait_synced()


def key_of(obj: Object) -> Key:
    """Return the key of an object; namespaces are few, and each is one text for all keys."""
    metadata = obj.get("metadata") or {}
    return sys.intern(str(metadata.get("namespace") or "")), str(metadata.get("name") or "")


def trimmed(obj: Object) -> Object:
    """Return an object without `managedFields`, which no policy reads and which are a fifth of its size."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    return {**obj, "metadata": kept}


def metadata_of(obj: Object) -> Object:
    """Return only the kind and metadata of an object, for stores that need no more."""
    found = trimmed(obj)
    return {key: found[key] for key in ("apiVersion", "kind", "metadata") if key in found}


def by_label(name: str) -> Callable[[Object], Iterable[str]]:
    """Return an index over the value of one label."""

    def values(obj: Object) -> Iterable[str]:
        value = ((obj.get("metadata") or {}).get("labels") or {}).get(name)
        return () if value is None else (str(value),)

    return values


def by_owner(obj: Object) -> Iterable[str]:
    """Index objects by the uids of their owners."""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return tuple(str(owner.get("uid")) for owner in owners)


def by_uid(obj: Object) -> Iterable[str]:
    """Index objects by their own uid."""
    uid = (obj.get("metadata") or {}).get("uid")
    return () if uid is None else (str(uid),)


class Store:
    """The objects of one kind.

    `indexes` name functions that give the values an object is found under. `reduce` makes of an arriving object what is
    kept. `version` is the resource version of the last change, for health. A store that `is_cut` was filled by somebody who did not
    want all that there is.
    """

    def __init__(
        self,
        *,
        indexes: Mapping[str, Callable[[Object], Iterable[str]]] | None = None,
        reduce: Callable[[Object], Object] = trimmed,
    ) -> None:
        self._reduce = reduce
        self._indexers = dict(indexes or {})
        self._objects: dict[Key, Any] = {}
        self._namespaces: dict[str, dict[Key, None]] = {}
        self._indexes: dict[str, dict[str, dict[Key, None]]] = {name: {} for name in self._indexers}
        self._listeners: list[Callable[[Change], None]] = []
        self._synced = asyncio.Event()
        self.version = ""
        self.is_cut = False

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return map(self._shown, list(self._objects.values()))

    @property
    def is_synced(self) -> bool:
        """Tell whether the store has held everything once."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when the store holds everything."""
        await self._synced.wait()

    def get(self, name: str, namespace: str = "") -> Object | None:
        """Return one object, None when there is none."""
        kept = self._objects.get((namespace, name))
        return None if kept is None else self._shown(kept)

    def holds(self, obj: Object) -> bool:
        """Tell whether an object is here in some version."""
        return key_of(obj) in self._objects

    def is_as(self, obj: Object) -> bool:
        """Tell whether an object is here in this very version."""
        kept = self._objects.get(key_of(obj))
        return kept is not None and _is_same(self._identity(kept), obj)

    def keys(self) -> list[Key]:
        """Return the keys of all objects."""
        return list(self._objects)

    def uids(self, namespace: str | None = None) -> list[tuple[Key, str]]:
        """Return the keys and uids of all objects, or of those of one namespace."""
        keys = self._objects if namespace is None else self._namespaces.get(namespace, ())
        return [(key, self._identity(self._objects[key])[0]) for key in keys]

    def in_namespace(self, namespace: str) -> list[Object]:
        """Return the objects of one namespace."""
        return [self._shown(self._objects[key]) for key in self._namespaces.get(namespace, ())]

    def by(self, index: str, value: str) -> list[Object]:
        """Return the objects that an index has under a value."""
        return [self._shown(self._objects[key]) for key in self._indexes[index].get(value, ())]

    def on_change(
        self, listener: Callable[[Change], None], *, replay: bool = True
    ) -> Callable[[], None]:
        """Tell a listener of every change from now on, first (with `replay`) of what is there; return how to stop."""
        self._listeners.append(listener)
        if replay:
            for key, kept in list(self._objects.items()):
                listener(Change(key, None, self._shown(kept)))

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def replace(self, objects: Iterable[Object], version: str) -> None:
        """Hold exactly these objects; listeners hear of the differences, objects that are gone included."""
        arrived = {key_of(obj): obj for obj in objects}
        self._remove_but(arrived)
        for key, obj in arrived.items():
            self._put(key, obj)
        self._settle(version)

    def add(self, objects: Iterable[Object]) -> list[Key]:
        """Take over some of the objects that are there, of which the keys are returned; `keep` follows with those of all."""
        keys = []
        for obj in objects:
            keys.append(key := key_of(obj))
            self._put(key, obj)
        return keys

    def keep(self, keys: Collection[Key], version: str) -> None:
        """Hold exactly the objects with these keys, all of which were added; listeners hear of those that are gone."""
        self._remove_but(keys)
        self._settle(version)

    def apply(self, event: Event) -> None:
        """Take over one watch event."""
        self.version = str(
            (event.object.get("metadata") or {}).get("resourceVersion") or self.version
        )
        if event.type == "DELETED":
            self._remove(key_of(event.object), event.object)
        elif event.type in ("ADDED", "MODIFIED"):
            self._put(key_of(event.object), event.object)

    # How an object is kept, which is as it is shown unless a subclass says otherwise.

    def _kept(self, obj: Object) -> Any:
        return obj

    def _shown(self, kept: Any) -> Object:
        found: Object = kept
        return found

    def _before(self, _key: Key, kept: Any) -> Object:
        """Return what listeners are told of an object as it was."""
        found: Object = kept
        return found

    def _identity(self, kept: Any) -> tuple[str, str]:
        """Return uid and resource version of an object."""
        return identity_of(kept)

    def _settle(self, version: str) -> None:
        self.version = version
        self._synced.set()

    def _remove_but(self, keys: Collection[Key]) -> None:
        for key in [key for key in self._objects if key not in keys]:
            self._remove(key)

    def _put(self, key: Key, obj: Object) -> None:
        kept = self._objects.get(key)
        if kept is not None and _is_same(self._identity(kept), obj):
            return
        new, old = self._reduce(obj), None
        if kept is not None:
            old = self._before(key, kept)
            self._unindex(key, old)
        self._objects[key] = self._kept(new)
        self._index(key, new)
        self._tell(Change(key, old, new))

    def _remove(self, key: Key, last: Object | None = None) -> None:
        """Forget an object; listeners are told its last state, where the server sent one."""
        kept = self._objects.pop(key, None)
        if kept is None:
            return
        old = self._before(key, kept)
        self._unindex(key, old)
        self._tell(Change(key, old if last is None else self._reduce(last), None))

    def _tell(self, change: Change) -> None:
        for listener in list(self._listeners):
            listener(change)

    def _index(self, key: Key, obj: Object) -> None:
        self._namespaces.setdefault(key[0], {})[key] = None
        for name, values in self._indexers.items():
            for value in values(obj):
                self._indexes[name].setdefault(value, {})[key] = None

    def _unindex(self, key: Key, obj: Object) -> None:
        _discard(self._namespaces, key[0], key)
        for name, values in self._indexers.items():
            for value in values(obj):
                _discard(self._indexes[name], value, key)


def _discard(index: dict[str, dict[Key, None]], value: str, key: Key) -> None:
    keys = index.get(value)
    if keys is not None:
        keys.pop(key, None)
        if not keys:
            del index[value]


def identity_of(obj: Object) -> tuple[str, str]:
    """Return uid and resource version of an object."""
    metadata = obj.get("metadata") or {}
    return str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")


def _is_same(known: tuple[str, str], obj: Object) -> bool:
    """Tell whether an object with a uid and a resource version is in the same state as one that is known."""
    return bool(known[1]) and known == identity_of(obj)
