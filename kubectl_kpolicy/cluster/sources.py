"""Where a ClusterCache comes from while somebody looks at it: a live cluster by watches, or a recording."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from controllers.kube.clock import Clock, ServerClock
from controllers.kube.errors import KubeError, Unauthorized, Unreachable
from controllers.kube.kinds import Kind
from controllers.kube.reflector import Informers, Selection

from . import celkinds
from .cache import ClusterCache, Problem, Trouble, key_of
from .fetching import Scope, fetch_journal, fetch_labelled, named
from .resources import RESOURCES, Resource, problem_of
from .violations import SOURCES, weight

if TYPE_CHECKING:
    from collections.abc import Container, Coroutine, Iterable, Sequence
    from datetime import datetime

    from controllers.kube import Client
    from controllers.kube.store import Change, Store
    from engine.model import Object

POLL_SECONDS = 60.0
"""How often what cannot be watched is read again: the pace of Kyverno's own TTL loop."""

BEAT_SECONDS = 10.0
"""How often the server is asked for a sign of life, which also tells its time: watches may be silent for minutes."""


MOST_RESULTS = 60_000
"""Results of policies that a console reads at most; what they take of memory is far below 400 MiB."""
_WORST = 500

_HEAD_START = 1.0
"""Seconds that the resources of the first screen are read alone, at most."""


def _is_enough(reports: Sequence[Object]) -> bool:
    """Tell whether the results of some reports are as many as a console reads."""
    return sum(len(report.get("results") or ()) for report in reports) >= MOST_RESULTS


class _Cut:
    """Reports of which not all were read: what is watched of them, and the worst ones beside those."""

    def __init__(self, resource: Resource, store: Store) -> None:
        self.resource, self.store = resource, store
        self.worst: Sequence[Object] = ()


class Source(Protocol):
    """Fills a ClusterCache, and tells the time that belongs to it."""

    world: ClusterCache
    name: str

    def now(self) -> datetime:
        """Return the instant that the ClusterCache is looked at."""

    async def start(self) -> None:
        """Begin to fill the ClusterCache."""

    async def refresh(self) -> None:
        """Read again what is not watched; raises KubeError."""

    async def close(self) -> None:
        """Stop."""


class LiveSource:
    """A cluster by watches; a resource's problem shows within the first try and clears with the next success.

    `first` are asked for before the others, since each of those needs a connection of its own.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        scope: Scope | None = None,
        resources: Iterable[str] = (),
        name: str = "",
        first: Sequence[str] = (),
    ) -> None:
        self.world = ClusterCache()
        self.name = name
        self.client = client
        self._clock = clock
        self._scope = scope or Scope()
        asked = tuple(resources)
        self._wanted = [RESOURCES[one] for one in asked or RESOURCES if one in RESOURCES]
        self._of_cel = [one for one in celkinds.NAMES if one in asked or not asked]
        self._informers = Informers(client, clock=clock, on_problem=self._troubled, by_page=True)
        self._first = first
        self._tasks: set[asyncio.Task[None]] = set()
        self._polled = asyncio.Lock()
        self._silent: dict[str, Problem] = {}
        self._cut: dict[str, _Cut] = {}

    def now(self) -> datetime:
        """Return the current instant."""
        return self._clock.now()

    @property
    def skew(self) -> float:
        """How many seconds the server's clock is ahead of ours, below zero when it is behind."""
        return self._clock.skew if isinstance(self._clock, ServerClock) else 0.0

    async def start(self) -> None:
        """Open a watch for each resource, the first ones ahead of the others, and begin to poll for the rest."""
        ahead = [resource for resource in self._wanted if resource.name in self._first]
        for resource in ahead:
            self._follow(resource)
        if ahead:
            await self._heard_of({resource.name for resource in ahead})
        for resource in self._wanted:
            if resource not in ahead:
                self._follow(resource)
        for name in self._of_cel:
            self._spawn(self._follow_cel(name))
        self._spawn(self._poll())
        self._spawn(self._live())

    async def refresh(self) -> None:
        """Read again what is not watched: labelled objects and the journal; raises KubeError where the server is away."""
        async with self._polled:
            await self._beat()
            for cut in self._cut.values():
                await self._read_worst(cut)
            await fetch_journal(self.client, self.world, self._scope.journal, self.now())
            await fetch_labelled(self.client, self.world, self._scope.namespace, self.now())

    async def close(self) -> None:
        """Stop all watches."""
        for task in list(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._informers.close()

    async def _heard_of(self, names: Container[str]) -> None:
        """Return when something of one of these resources came, or is in the way, or nothing happens for too long."""
        heard = asyncio.Event()
        self.world.on_change(lambda change: heard.set() if change.resource in names else None)

        async def give_up() -> None:
            await self._clock.sleep(_HEAD_START)
            heard.set()

        self._spawn(give_up())
        await heard.wait()

    def _follow(self, resource: Resource) -> None:
        namespace = self._scope.namespace if resource.kind.namespaced else ""
        selection = Selection(namespace, resource.labels, resource.fields)
        enough = _is_enough if resource.name in SOURCES else None
        store = self._informers.acquire(resource.kind, selection, enough=enough)

        def listen(change: Change) -> None:
            if change.new is not None:
                self.world.put(resource.name, named([change.new], resource.kind)[0])
            elif change.old is not None:
                self.world.remove(resource.name, key_of(named([change.old], resource.kind)[0]))

        store.on_change(listen)

        async def note() -> None:
            await store.wait_synced()
            if store.is_cut:
                self.world.left_out[resource.name] = weight(None)
                self._cut[resource.name] = _Cut(resource, store)
                await self._read_worst(self._cut[resource.name])
            self.world.synced(resource.name, self.now())

        self._spawn(note())

    async def _read_worst(self, cut: _Cut) -> None:
        """Take over the worst reports beside those that are watched, where the server can sort them; let go those that are no more."""
        kind, name = cut.resource.kind, cut.resource.name
        with suppress(KubeError):
            page = await self.client.list(kind, limit=_WORST, sort_by="severity")
            found = named(page.items, kind) if page.sorted_by else []
            kept = set(map(key_of, found))
            for obj in cut.worst:
                if key_of(obj) not in kept and not cut.store.holds(obj):
                    self.world.remove(name, key_of(obj))
            for obj in found:
                self.world.put(name, obj)
            cut.worst = found

    async def _follow_cel(self, name: str) -> None:
        """Watch every kind that the server has of these; which there are is asked until it is told."""
        while True:
            try:
                kinds = await celkinds.kinds(self.client, name)
                break
            except KubeError as error:
                group = Kind(celkinds.GROUP, "v1", "policies", "Policy")
                self.world.hindered(name, problem_of(error, group))
                await self._clock.sleep(POLL_SECONDS)
        if not kinds:
            self.world.synced(name, self.now())
        for kind in kinds:
            resource = Resource(name, kind, "policies written in CEL", optional=True)
            self._wanted.append(resource)
            self._follow(resource)

    def _troubled(self, kind: Kind, message: str) -> None:
        """Note a watch's problem; its nature is found out by asking once more."""
        for resource in self._wanted:
            if resource.kind != kind:
                continue
            if not message:
                if self.world.problem(resource.name):
                    self.world.synced(resource.name, self.now())
            else:
                if self.world.is_synced(resource.name) and not self.world.problem(resource.name):
                    self.world.synced(resource.name, self.now())
                self.world.hindered(resource.name, Problem(Trouble.FAILED, message))
                self._spawn(self._diagnose(resource))

    async def _diagnose(self, resource: Resource) -> None:
        try:
            await self.client.list(resource.kind, self._scope.namespace if resource.kind.namespaced else "", limit=1)  # fmt: skip
        except KubeError as error:
            if self.world.problem(resource.name):
                self.world.hindered(resource.name, problem_of(error, resource.kind))

    async def _poll(self) -> None:
        while True:
            with suppress(KubeError):
                await self.refresh()
            await self._clock.sleep(POLL_SECONDS)

    async def _live(self) -> None:
        """Listen for the server: a watch on a connection that went silent would not tell for minutes."""
        answered = self.now()
        while True:
            await self._clock.sleep(BEAT_SECONDS)
            try:
                await self._beat()
            except KubeError as error:
                self._note_silence(error, answered)
            else:
                answered = self.now()
                self._note_answer(answered)

    def _note_silence(self, error: KubeError, answered: datetime) -> None:
        """Let what was whole be what it was when the server last answered."""
        for resource in self._wanted:
            name = resource.name
            if self.world.is_synced(name) and not self.world.problem(name):
                self.world.synced(name, answered)
                problem = self._silent[name] = problem_of(error, resource.kind)
                self.world.hindered(name, problem)

    def _note_answer(self, now: datetime) -> None:
        """Take back what silence was noted for, unless a watch has found more wrong meanwhile."""
        for name, problem in self._silent.items():
            if self.world.problem(name) is problem:
                self.world.synced(name, now)
        self._silent.clear()

    async def _beat(self) -> None:
        """Ask the server for anything; raises KubeError where it is away, not where it does not answer this."""
        try:
            await self.client.raw("GET", "/version")
        except (Unreachable, Unauthorized):
            raise
        except KubeError:
            return

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
