"""Reflectors shared by everybody who wants the same objects, started with the first and stopped after the last.

For the parts whose kinds are known only at run time, because policies name them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .reflector import Reflector, Selection
from .store import Store, by_label, by_owner, by_uid, metadata_of, trimmed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.model import Object

    from .client import Client
    from .clock import Clock
    from .kinds import Kind

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

    def __repr__(self) -> str:
        return f"<Informers {len(self._shared)} kinds, {len(self.problems)} with problems>"

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
    ) -> Store:
        """Return the store of a kind and keep it filled until `release`; `labels` are indexed by `label:NAME`.

        Every store has the indexes `owner` and `uid`. `reduce` makes of an object what is kept of it, `enough` is the reflector's.
        Who comes second gets the indexes and the objects of the first.
        """
        key = (kind, selection)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = self._started(kind, selection, labels, reduce, enough)
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

    def _started(
        self,
        kind: Kind,
        selection: Selection,
        labels: Iterable[str],
        reduce: Callable[[Object], Object] | None,
        enough: Callable[[Sequence[Object]], bool] | None,
    ) -> _Shared:
        indexes: dict[str, Callable[[Object], Iterable[str]]] = {"owner": by_owner, "uid": by_uid}
        indexes.update({f"label:{name}": by_label(name) for name in labels})
        whole = metadata_of if selection.metadata_only else trimmed
        store = Store(indexes=indexes, reduce=reduce or whole)
        reflector = Reflector(
            self._client,
            kind,
            store,
            selection,
            clock=self._clock,
            on_problem=self._on_problem,
            by_page=self._by_page,
            enough=enough,
        )
        return _Shared(reflector, asyncio.create_task(reflector.run(), name=f"reflector {kind}"))


async def _stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
