"""Keeps a Store equal to what a server has: one paged list, then watches, for as long as it runs.

For every part that reads objects from memory. What it copes with: bookmarks, resuming after the end of a
stream, listing again on 410, pauses that grow, long pauses where we may not look or the kind is missing, time-outs for
connections that went silent.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from .client import PAGE, Client
from .clock import Backoff, Clock, SystemClock
from .clock import chance as by_chance
from .errors import Forbidden, Gone, KubeError, NotFound
from .packed import PACKED_PAGE, PackedStore
from .rush import PATIENCE
from .store import Key, Store, by_label, by_owner, by_uid, metadata_of, trimmed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

    from engine.model import Object

    from .client import Event
    from .kinds import Kind
    from .rush import Rush

_SHORTEST_WATCH, _LONGEST_WATCH = 300, 600
_LONG_PAUSE = 60.0
_HEALTHY_AFTER = 120.0
_TOO_SHORT = 1.0
_TRIES_IN_PAGES = 3
_FIRST_PAGE = 50
"""Objects asked for at first for people who look: a screenful is there soon, and a long page's rest is not waited for."""

LOOK: Final = 1.0
"""Seconds between two looks at how many objects there are while a watch rests."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind are wanted; everywhere and all of them by default.

    `packed` are kept for whoever goes through very many (see `packed`), and taken over page by page.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    packed: bool = False


class Reflector:
    """Fills a store. `run` it as a task; `problem` says what keeps it from working (empty: nothing).

    With `by_page` the store holds a long list's objects as they come, before it is whole: for people who look, never for
    decisions. So does `enough`, which is asked after each page whether what came suffices: the store `is_cut` then, and changes of
    what was left where it is are passed over.

    With a `rush` the watch rests while many objects are new, because each costs the server its encoding for us: it is closed, the
    objects are counted now and then, and it goes on where it was when the rush is over, or has lasted for long.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        store: Store,
        selection: Selection = Selection(),
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = by_chance,
        on_problem: Callable[[Kind, str], None] | None = None,
        by_page: bool = False,
        enough: Callable[[Sequence[Object]], bool] | None = None,
        rush: Rush | None = None,
    ) -> None:
        self.kind = kind
        self.store = store
        self.problem = ""
        self._client = client
        self._selection = selection
        self._page = partial(
            client.list,
            kind,
            selection.namespace,
            label_selector=selection.labels,
            field_selector=selection.fields,
        )
        self._clock: Clock = clock or SystemClock()
        self._chance = chance
        self._backoff = Backoff(chance=chance)
        self._on_problem = on_problem
        self._version = ""
        self._stale_lists = 0
        self._by_page = by_page
        self._is_paged = by_page or selection.packed
        self._enough = enough
        self._rush = rush
        self._rests = False
        self._behind_until = 0

    async def run(self) -> None:
        """Keep the store filled until cancelled; no error of the server ends it."""
        while True:
            started = self._clock.monotonic()
            try:
                await self._round()
            except Gone:
                self._version = ""
                self._stale_lists += 1
                await self._clock.sleep(self._backoff.next())
            except KubeError as error:
                self._report(error.message)
                await self._clock.sleep(self._pause(error, started))

    def never_rest(self) -> None:
        """Let the watch go on in a rush from now on, because of somebody who cannot wait; a rest ends within a second."""
        self._rush = None

    async def _round(self) -> None:
        """List where there is no version to go on from, then watch until the stream ends."""
        if self._rests:
            await self._rest()
        if not self._version:
            await self._list()
        started = self._clock.monotonic()
        seen = await self._watch()
        lasted = self._clock.monotonic() - started
        if lasted >= _HEALTHY_AFTER or seen:
            self._backoff.reset()
        elif lasted < _TOO_SHORT and not self._rests:
            await self._clock.sleep(self._backoff.next())

    async def _list(self) -> None:
        items: list[Object] = []
        keys: set[Key] = set()
        resume = ""
        usual = PACKED_PAGE if self._selection.packed else PAGE
        limit = _FIRST_PAGE if self._by_page else usual
        if self._stale_lists >= _TRIES_IN_PAGES:
            # A server that compacts faster than we turn pages would never let us finish: then everything at once.
            limit = 0
        while True:
            page = await self._page(
                limit=limit, resume=resume, metadata_only=self._selection.metadata_only
            )
            if self._is_paged:
                keys.update(self.store.add(page.items))
            if not self._is_paged or self._enough is not None:
                items.extend(page.items)
            resume, version = page.resume, page.resource_version
            # it is not to be there beside the next one
            del page
            is_enough = self._enough is not None and self._enough(items)
            if not resume or is_enough:
                break
            limit = usual
        self.store.is_cut = bool(resume)
        if self._is_paged:
            self.store.keep(keys, version)
        else:
            self.store.replace(items, version)
        self._version = version
        self._stale_lists = 0
        self._report("")

    async def _watch(self) -> int:
        """Take over events until the stream ends; return how many came."""
        span = _LONGEST_WATCH - _SHORTEST_WATCH
        seen = 0
        events = self._client.watch(
            self.kind,
            self._version,
            namespace=self._selection.namespace,
            label_selector=self._selection.labels,
            field_selector=self._selection.fields,
            timeout_seconds=_SHORTEST_WATCH + int(span * self._chance()),
            metadata_only=self._selection.metadata_only,
        )
        async with aclosing(cast("AsyncGenerator[Event]", events)):
            async for event in events:
                seen += self._taken_over(event)
                if self.problem:
                    self._report("")
                if self._rests:
                    break
        return seen

    def _taken_over(self, event: Event) -> bool:
        """Take over an event; False for a change of what was left where it is."""
        is_held = self.store.holds(event.object)
        # INVARIANT: what is cut does not grow.
        if self.store.is_cut and event.type in ("ADDED", "MODIFIED") and not is_held:
            metadata = event.object.get("metadata") or {}
            self._version = str(metadata.get("resourceVersion") or self._version)
            return False
        self.store.apply(event)
        self._version = self.store.version
        if event.type == "ADDED" and not is_held:
            self._note_new()
        return True

    def _note_new(self) -> None:
        """Count a new object, unless it was counted during a rest, and rest once there are many."""
        version = self._version
        if self._rush is None or (version.isdecimal() and int(version) <= self._behind_until):
            return
        self._rush.count()
        self._rests = self._rush.is_full and version.isdecimal()

    async def _rest(self) -> None:
        """Return when the rush is over, has lasted for long, or is nothing to wait for; what is new meanwhile is counted."""
        self._rests = False
        known, began = len(self.store), self._clock.monotonic()
        with self._rush.rest() if self._rush is not None else nullcontext():
            while (
                (rush := self._rush) is not None
                and rush.is_full
                and self._clock.monotonic() - began < PATIENCE
            ):
                await self._clock.sleep(LOOK)
                page = await self._page(limit=1, metadata_only=True)
                there = len(page.items) + page.remaining
                rush.count(max(there - known, 0))
                known = there
                if page.resource_version.isdecimal():
                    self._behind_until = int(page.resource_version)
        if known > 2 * len(self.store):
            # a list costs the server less than as many events
            self._version = ""

    def _pause(self, error: KubeError, started: float) -> float:
        if isinstance(error, Forbidden | NotFound):
            return _LONG_PAUSE * (0.5 + 0.5 * self._chance())
        if self._clock.monotonic() - started >= _HEALTHY_AFTER:
            self._backoff.reset()
        pause = self._backoff.next()
        return max(pause, error.retry_after or 0.0)

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            if self._on_problem is not None:
                self._on_problem(self.kind, problem)


_EVERYTHING = Selection()


@dataclass(slots=True)
class _Shared:
    """A reflector, its task, and how many want it."""

    reflector: Reflector
    task: asyncio.Task[None]
    users: int = 0


class Informers:
    """All reflectors of one process; `by_page` is theirs."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        on_problem: Callable[[Kind, str], None] | None = None,
        by_page: bool = False,
    ) -> None:
        self._client = client
        self._by_page = by_page
        self._clock = clock
        self._on_problem = on_problem
        self._shared: dict[tuple[Kind, Selection], _Shared] = {}

    @property
    def problems(self) -> dict[Kind, str]:
        """What keeps reflectors from working, by kind."""
        return {
            kind: shared.reflector.problem
            for (kind, _), shared in self._shared.items()
            if shared.reflector.problem
        }

    def is_current(self, kind: Kind, selection: Selection = _EVERYTHING) -> bool:
        """Tell whether the store of what was acquired holds everything, and nothing keeps its reflector from working."""
        shared = self._shared.get((kind, selection))
        return (
            shared is not None
            and shared.reflector.store.is_synced
            and not shared.reflector.problem
            and not shared.task.done()
        )

    def acquire(
        self,
        kind: Kind,
        selection: Selection = _EVERYTHING,
        *,
        labels: Iterable[str] = (),
        reduce: Callable[[Object], Object] | None = None,
        enough: Callable[[Sequence[Object]], bool] | None = None,
        rush: Rush | None = None,
    ) -> Store:
        """Return the store of a kind and keep it filled until `release`; `labels` are indexed by `label:NAME`.

        Every store but a packed one has the indexes `owner` and `uid`. `reduce` makes of an object what is kept of it, `enough` and `rush` are the
        reflector's. Who comes second gets the indexes and the objects of the first; without a `rush` the watch rests for nobody
        any more.
        """
        key = (kind, selection)
        shared = self._shared.get(key)
        if shared is None:
            indexes: dict[str, Callable[[Object], Iterable[str]]] = {
                "owner": by_owner,
                "uid": by_uid,
            }
            indexes.update({f"label:{name}": by_label(name) for name in labels})
            whole = metadata_of if selection.metadata_only else trimmed
            store = (
                PackedStore()
                if selection.packed
                else Store(indexes=indexes, reduce=reduce or whole)
            )
            reflector = Reflector(
                self._client,
                kind,
                store,
                selection,
                clock=self._clock,
                on_problem=self._on_problem,
                by_page=self._by_page,
                enough=enough,
                rush=rush,
            )
            task = asyncio.create_task(reflector.run(), name=f"reflector {kind}")
            shared = self._shared[key] = _Shared(reflector, task)
        elif rush is None:
            shared.reflector.never_rest()
        shared.users += 1
        return shared.reflector.store

    async def release(self, kind: Kind, selection: Selection = _EVERYTHING) -> None:
        """Give back what was acquired; the last one stops the reflector."""
        shared = self._shared.get((kind, selection))
        if shared is None:
            return
        shared.users -= 1
        if not shared.users:
            del self._shared[kind, selection]
            await _stopped(shared.task)

    async def close(self) -> None:
        """Stop everything."""
        tasks = [shared.task for shared in self._shared.values()]
        self._shared.clear()
        for task in tasks:
            await _stopped(task)


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
