"""Keeps a Store equal to what a server has: one paged list, then watches, for as long as it runs.

For every part that reads objects from memory. What it copes with: bookmarks, resuming after the end of a
stream, listing again on 410, pauses that grow, long pauses where we may not look or the kind is missing, time-outs for
connections that went silent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .client import PAGE, Client
from .clock import Backoff, Clock, SystemClock
from .clock import chance as by_chance
from .errors import Forbidden, Gone, KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Object

    from .kinds import Kind
    from .store import Store

_SHORTEST_WATCH, _LONGEST_WATCH = 300, 600
_LONG_PAUSE = 60.0
_HEALTHY_AFTER = 120.0
_TOO_SHORT = 1.0
_TRIES_IN_PAGES = 3
_FIRST_PAGE = 50
"""Objects asked for at first for people who look: a screenful is there soon, and a long page's rest is not waited for."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind are wanted; everywhere and all of them by default."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    metadata_only: bool = False


class Reflector:
    """Fills a store. `run` it as a task; `problem` says what keeps it from working (empty: nothing).

    With `by_page` the store holds a long list's objects as they come, before it is whole: for people who look, never for
    decisions. So does `enough`, which is asked after each page whether what came suffices: the store `is_cut` then, and changes of
    what was left where it is are passed over.
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
    ) -> None:
        self.kind = kind
        self.store = store
        self.problem = ""
        self._client = client
        self._selection = selection
        self._clock: Clock = clock or SystemClock()
        self._chance = chance
        self._backoff = Backoff(chance=chance)
        self._on_problem = on_problem
        self._version = ""
        self._stale_lists = 0
        self._by_page = by_page
        self._enough = enough

    def __repr__(self) -> str:
        return f"<Reflector {self.kind} {self.problem or 'healthy'} {self.store!r}>"

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

    async def _round(self) -> None:
        """List where there is no version to go on from, then watch until the stream ends."""
        if not self._version:
            await self._list()
        started = self._clock.monotonic()
        seen = await self._watch()
        lasted = self._clock.monotonic() - started
        if lasted >= _HEALTHY_AFTER or seen:
            self._backoff.reset()
        elif lasted < _TOO_SHORT:
            await self._clock.sleep(self._backoff.next())

    async def _list(self) -> None:
        items: list[Object] = []
        resume = ""
        limit = _FIRST_PAGE if self._by_page else PAGE
        if self._stale_lists >= _TRIES_IN_PAGES:
            # A server that compacts faster than we turn pages would never let us finish: then everything at once.
            limit = 0
        while True:
            page = await self._client.list(
                self.kind,
                self._selection.namespace,
                label_selector=self._selection.labels,
                field_selector=self._selection.fields,
                limit=limit,
                resume=resume,
                metadata_only=self._selection.metadata_only,
            )
            items.extend(page.items)
            if self._by_page:
                self.store.add(page.items)
            resume = page.resume
            is_enough = self._enough is not None and self._enough(items)
            if not resume or is_enough:
                break
            limit = PAGE
        self.store.is_cut = bool(resume)
        self.store.replace(items, page.resource_version)
        self._version = page.resource_version
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
        async for event in events:
            # INVARIANT: what is cut does not grow.
            if (
                self.store.is_cut
                and event.type in ("ADDED", "MODIFIED")
                and not self.store.holds(event.object)
            ):
                self._version = str(
                    (event.object.get("metadata") or {}).get("resourceVersion") or self._version
                )
                continue
            self.store.apply(event)
            self._version = self.store.version
            seen += 1
            if self.problem:
                self._report("")
        return seen

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
