"""Watches that keep a ClusterCache current, and the kinds of the server with it.

For processes that watch themselves: a replica without workers, or the parent that feeds them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controllers.kube import Clock, Discovery, Kind, KubeError
from controllers.kube.kinds import CONFIG_MAPS, CRDS
from controllers.kube.reflector import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube.reflector import Informers
    from controllers.kube.store import Change, Store
    from engine.model import Object

    from .cluster_cache import ClusterCache

CONFIG_MAP = "kyverno"
SETTLE_SECONDS = 0.2
"""How long new kinds gather before the server is asked for all of them again."""

_log = logging.getLogger(__name__)


class Watches:
    """Watches for everything a ClusterCache holds.

    `stores` hold the objects as they came, for whoever is to be told all of them again. The tasks tell the ClusterCache when a
    kind is complete.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, namespace: str) -> None:
        self.stores: dict[Kind, Store] = {}
        self._informers, self._cache, self._namespace = informers, cache, namespace
        self._tasks: list[asyncio.Task[None]] = []
        for kind in cache.watched:
            self._follow(kind)

    def follow_served(self) -> None:
        """Watch the kinds that the server has come to have since; whoever has objects of them is told."""
        known = {str(kind) for kind in self.stores}
        for kind in self._cache.served_too():
            if str(kind) not in known:
                self._follow(kind)

    def _follow(self, kind: Kind) -> None:
        # of ConfigMaps only our own is watched
        is_ours = Selection(namespace=self._namespace, fields=f"metadata.name={CONFIG_MAP}")
        store = self._informers.acquire(kind, is_ours if kind == CONFIG_MAPS else Selection())
        self.stores[kind] = store
        self._tasks.append(_watch(store, self._cache, kind, self._namespace))

    def stop(self) -> None:
        """Tell the ClusterCache nothing more."""
        for task in self._tasks:
            task.cancel()


def _watch(store: Store, cache: ClusterCache, kind: Kind, namespace: str) -> asyncio.Task[None]:
    def changed(change: Change) -> None:
        obj = change.new if change.new is not None else change.old
        if obj is not None and (kind != CONFIG_MAPS or _is_ours(obj, namespace)):
            (cache.remove if change.new is None else cache.put)(kind, kind.typed(obj))

    store.on_change(changed)
    return asyncio.create_task(_tell_when_listed(store, cache, kind), name=f"first list of {kind}")


async def _tell_when_listed(store: Store, cache: ClusterCache, kind: Kind) -> None:
    await store.wait_synced()
    cache.listed(kind)


def _is_ours(obj: Object, namespace: str) -> bool:
    metadata = obj.get("metadata") or {}
    return (metadata.get("namespace"), metadata.get("name")) == (namespace, CONFIG_MAP)


class DiscoveryRefresh:
    """Keeps a Discovery equal to what the server has, by its CustomResourceDefinitions.

    `on_change` are called after each refresh and must not wait.
    """

    def __init__(self, discovery: Discovery, clock: Clock) -> None:
        self.on_change: list[Callable[[], None]] = []
        self._discovery = discovery
        self._clock = clock
        self._stale = asyncio.Event()

    def mark(self) -> None:
        """Have the server asked again."""
        self._stale.set()

    def follow(self, informers: Informers) -> None:
        """Ask again whenever a definition comes, goes or begins to be served."""
        store = informers.acquire(CRDS)
        store.on_change(self._changed, replay=False)

    async def run(self) -> None:
        """Ask the server as often as needed, until cancelled; what cannot be had is tried again."""
        while True:
            await self._stale.wait()
            await self._clock.sleep(SETTLE_SECONDS)
            self._stale.clear()
            try:
                await self._discovery.refresh()
            except KubeError as error:
                _log.warning("the kinds of the server cannot be read: %s", error.message)
                self._stale.set()
                await self._clock.sleep(SETTLE_SECONDS * 10)
                continue
            for listener in self.on_change:
                listener()

    def _changed(self, change: Change) -> None:
        if change.old is None or change.new is None or _served(change.old) != _served(change.new):
            self._stale.set()


def _served(definition: Object) -> tuple[object, ...]:
    spec, status = definition.get("spec") or {}, definition.get("status") or {}
    conditions = [(one.get("type"), one.get("status")) for one in status.get("conditions") or ()]
    versions = [(one.get("name"), one.get("served")) for one in spec.get("versions") or ()]
    return tuple(versions), tuple(conditions)
