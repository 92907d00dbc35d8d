"""Runs the sandbox's own controllers: every change wakes the one that cares, one object at a time, again later when it failed.

A controller is a function from an object to the instant at which it wants to look again (None: at the next change).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.custom.definitions import STORAGE
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.objects.strategies import CRD_FINALIZER

from . import garbage, namespaces, pods, roles, workloads
from .writing import delete, drop_finalizer, set_status

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.store import Change

Object = dict[str, Any]
Place = tuple[str, str, str]
Controller = Callable[["Cluster", Object], Awaitable[datetime | None]]
_LOG = logging.getLogger(__name__)
_SHORTEST, _LONGEST = 0.25, 30.0
_BY = "crd-controller"


def place_of(storage: str, obj: Object) -> Place:
    """Return where an object lies."""
    return storage, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


async def _definition(cluster: Cluster, definition: Object) -> None:
    """Keep the status of a CRD; delete the objects of one that is to go, and let it go when none is left."""
    spec = definition["spec"]
    if not definition["metadata"].get("deletionTimestamp"):
        set_status(cluster, STORAGE, definition, _status_of(definition))
        return
    storage = f"{spec['group']}/{spec['names']['plural']}"
    resource = cluster.registry.by_storage(storage)
    if resource is not None:
        for obj in cluster.store.list(storage):
            if not obj["metadata"].get("deletionTimestamp"):
                await delete(cluster, resource, obj, by=_BY)
        if cluster.store.list(storage):
            return
    crds = cluster.resource("apiextensions.k8s.io", "customresourcedefinitions")
    await drop_finalizer(cluster, crds, definition, CRD_FINALIZER, by=_BY)


def _status_of(definition: Object) -> Object:
    spec, status = definition["spec"], definition.get("status") or {}
    stored = list(status.get("storedVersions") or ())
    stored += [
        one["name"] for one in spec["versions"] if one.get("storage") and one["name"] not in stored
    ]
    return {**status, "acceptedNames": spec["names"], "storedVersions": stored}


CONTROLLERS: dict[str, Controller] = {
    "/namespaces": namespaces.reconcile,
    "/pods": pods.reconcile,
    "apps/deployments": workloads.deployment,
    "apps/replicasets": workloads.replica_set,
    "apps/statefulsets": workloads.stateful_set,
    "apps/daemonsets": workloads.daemon_set,
    "batch/jobs": workloads.job,
    "apiextensions.k8s.io/customresourcedefinitions": _definition,
    "rbac.authorization.k8s.io/clusterroles": roles.reconcile,
}
_EMPTIED = {"/namespaces", "apiextensions.k8s.io/customresourcedefinitions"}
"""What is to go is left alone by its controller, but for these, whose content goes first."""


class ControlPlane:
    """All controllers of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._dirty: set[Place] = set()
        self._busy: dict[Place, asyncio.Task[None]] = {}
        self._waiting: dict[Place, asyncio.Task[None]] = {}
        self._failures: dict[Place, int] = {}
        self._stop: Callable[[], None] | None = None

    def start(self) -> None:
        """Look at everything that is there, and from now on at everything that changes."""
        self._stop = self._cluster.store.listen(self._changed)
        for storage in self._cluster.store.storages():
            for obj in self._cluster.store.list(storage):
                self.wake(place_of(storage, obj))

    async def close(self) -> None:
        """Stop all controllers."""
        if self._stop is not None:
            self._stop()
        tasks = [*self._busy.values(), *self._waiting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, change: Change) -> None:
        meta = change.object["metadata"]
        if change.type == "DELETED":
            for storage, dependent in self._cluster.store.owned_by(meta["uid"]):
                self.wake(place_of(storage, dependent))
            if space := meta.get("namespace"):
                self._wake_namespace(space, change.storage)
        else:
            self.wake(place_of(change.storage, change.object))
        if change.storage == "rbac.authorization.k8s.io/clusterroles":
            for aggregate in roles.aggregates(self._cluster):
                self.wake((change.storage, "", aggregate))
        self._wake_owners(change)

    def _wake_namespace(self, name: str, storage: str) -> None:
        """Look at a namespace again when it waits for its content to go, or may miss what every namespace has."""
        space = self._cluster.store.get("/namespaces", "", name)
        if space and (
            storage in namespaces.FURNITURE or space["metadata"].get("deletionTimestamp")
        ):
            self.wake(("/namespaces", "", name))

    def _wake_owners(self, change: Change) -> None:
        for owner in change.object["metadata"].get("ownerReferences") or ():
            found = self._cluster.store.by_uid(owner.get("uid", ""))
            if found is None:
                continue
            resource = self._cluster.registry.by_api_version(found["apiVersion"], found["kind"])
            if resource is not None:
                self.wake(place_of(resource.storage, found))

    def wake(self, place: Place) -> None:
        """Look at an object as soon as nobody else does."""
        self._dirty.add(place)
        if place not in self._busy:
            self._busy[place] = asyncio.create_task(self._work(place))

    async def _work(self, place: Place) -> None:
        try:
            while place in self._dirty:
                self._dirty.discard(place)
                await self._once(place)
        finally:
            del self._busy[place]

    async def _once(self, place: Place) -> None:
        try:
            again = await self._reconcile(place)
            self._failures.pop(place, None)
        except ApiError as error:
            failures = self._failures[place] = self._failures.get(place, 0) + 1
            _LOG.info("%s: %s", "/".join(place), error)
            seconds = min(_SHORTEST * 2 ** min(failures, 10), _LONGEST)
            self._later(place, lambda: asyncio.sleep(seconds))
        except Exception:
            # one object that a controller stumbles over must not stop the others
            _LOG.exception("a controller failed at %s", "/".join(place))
        else:
            if again is not None:
                self._later(place, lambda: self._cluster.clock.until(again))

    async def _reconcile(self, place: Place) -> datetime | None:
        obj = self._cluster.store.get(*place)
        if obj is None:
            return None
        if await garbage.collected(self._cluster, place[0], obj):
            return None
        controller = CONTROLLERS.get(place[0])
        obj = self._cluster.store.get(*place)
        if controller is None or obj is None:
            return None
        if obj["metadata"].get("deletionTimestamp") and place[0] not in _EMPTIED:
            return None
        return await controller(self._cluster, obj)

    def _later(self, place: Place, wait: Callable[[], Awaitable[None]]) -> None:
        if held := self._waiting.pop(place, None):
            held.cancel()
        self._waiting[place] = asyncio.create_task(self._wake_after(place, wait))

    async def _wake_after(self, place: Place, wait: Callable[[], Awaitable[None]]) -> None:
        await wait()
        if self._waiting.get(place) is asyncio.current_task():
            del self._waiting[place]
        self.wake(place)
