"""Everything that was read, by resource: objects, whether they are complete, and what stands in the way.

Filled by a source (live, recorded or a test), read by the functions that make rows. It holds state and tells listeners; it
never waits and never asks anybody.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from engine.fields import part
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, MutableMapping, Sequence
    from datetime import datetime

    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity

T = TypeVar("T")
Key = tuple[str, str, str]
"""Kind, namespace and name."""


class Trouble(StrEnum):
    """What can stand in the way of reading; each has another remedy."""

    MISSING = "missing"
    FORBIDDEN = "forbidden"
    UNAUTHORIZED = "unauthorized"
    UNREACHABLE = "unreachable"
    FAILED = "failed"
    CUT = "cut"


@record
class Problem:
    """Why a resource cannot be read, in words of the server, and what to do about it."""

    trouble: Trouble
    message: str
    help: str = ""


@record
class Change:
    """What became of one object: `object` is None when it is gone; `problem` is set instead when reading was hindered."""

    resource: str
    key: Key | None = None
    object: Object | None = None
    problem: Problem | None = None
    is_synced: bool = False


class ClusterCache:
    """See the module. `version` of a resource grows with every change, which is what caches go by.

    `viewer` is who looks, once the server has said it. `left_out` has, for sources of violations of which only the worst were read,
    the weight that no violation beyond them is above.
    """

    def __init__(self) -> None:
        self.viewer: Identity | None = None
        self.left_out: MutableMapping[str, tuple[float, float]] = {}
        self._objects: dict[str, dict[Key, Object]] = {}
        self._versions: dict[str, int] = {}
        self._synced: dict[str, datetime | None] = {}
        self._problems: dict[str, Problem] = {}
        self._listeners: list[Callable[[Change], None]] = []
        self._derived: dict[str, tuple[int, Any]] = {}
        self._rows: dict[tuple[str, Key], tuple[Object, Sequence[Any]]] = {}

    def objects(self, resource: str) -> list[Object]:
        """Return the objects of a resource, in the order they came."""
        return list(self._objects.get(resource, {}).values())

    def version(self, *resources: str) -> int:
        """Return a number that changes whenever one of the resources does."""
        return sum(self._versions.get(name, 0) for name in resources)

    def is_synced(self, resource: str) -> bool:
        """Tell whether everything of a resource was read once."""
        return resource in self._synced

    def is_awaited(self, resource: str) -> bool:
        """Tell whether a resource is neither whole nor known to be hindered."""
        return not self.is_synced(resource) and not self.problem(resource)

    def problem(self, resource: str) -> Problem | None:
        """Return what keeps a resource from being read now."""
        return self._problems.get(resource)

    def seen_at(self, resource: str) -> datetime | None:
        """Return when the source last knew a resource to be whole."""
        return self._synced.get(resource)

    def cached(
        self, resource: str, obj: Object, make: Callable[[Object], Sequence[T]]
    ) -> Sequence[T]:
        """Return what is made of one object, its rows, anew only when the object is another than last time."""
        key = (resource, key_of(obj))
        found = self._rows.get(key)
        if found is not None and found[0] is obj:
            return found[1]
        rows = make(obj)
        self._rows[key] = (obj, rows)
        return rows

    def derived(self, name: str, resources: Sequence[str], make: Callable[[], T]) -> T:
        """Return what follows from some resources, made anew only when one of them changed; nobody may change it."""
        version = self.version(*resources)
        found = self._derived.get(name)
        if found is None or found[0] != version:
            found = self._derived[name] = (version, make())
        made: T = found[1]
        return made

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Tell a listener of every change from now on."""
        self._listeners.append(listener)

    def put(self, resource: str, obj: Object) -> None:
        """Take over an object, new or changed."""
        key = key_of(obj)
        self._objects.setdefault(resource, {})[key] = obj
        self._changed(Change(resource, key, obj))

    def remove(self, resource: str, key: Key) -> None:
        """Forget an object."""
        if self._objects.get(resource, {}).pop(key, None) is not None:
            self._rows.pop((resource, key), None)
            self._changed(Change(resource, key))

    def replace(self, resource: str, objects: Iterable[Object], at: datetime | None) -> None:
        """Hold exactly these objects, which are all there are at an instant; None where there may be more."""
        arrived = {key_of(obj): obj for obj in objects}
        for key in [key for key in self._objects.get(resource, {}) if key not in arrived]:
            self.remove(resource, key)
        for obj in arrived.values():
            self.put(resource, obj)
        if at is not None:
            self.synced(resource, at)

    def clear(self) -> None:
        """Forget everything, as if nothing had been read yet; listeners hear of each resource that is gone."""
        names = {*self._objects, *self._synced, *self._problems}
        self._objects.clear()
        self._synced.clear()
        self._problems.clear()
        self._rows.clear()
        for name in names:
            self._changed(Change(name))

    def synced(self, resource: str, at: datetime) -> None:
        """Note that a resource is whole at an instant; an earlier problem is over."""
        self._synced[resource] = at
        self._problems.pop(resource, None)
        self._changed(Change(resource, is_synced=True))

    def hindered(self, resource: str, problem: Problem) -> None:
        """Note what keeps a resource from being read; what was read before stays."""
        self._problems[resource] = problem
        self._changed(Change(resource, problem=problem))

    def _changed(self, change: Change) -> None:
        self._versions[change.resource] = self._versions.get(change.resource, 0) + 1
        for listener in self._listeners:
            listener(change)


def key_of(obj: Object) -> Key:
    """Return what tells an object from all others of its resource."""
    metadata = part(obj, "metadata")
    return (
        str(obj.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )
