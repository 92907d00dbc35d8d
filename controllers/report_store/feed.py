"""Tells whoever watches what was written, by this process or another one, each change once and in order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from controllers.kube import Clock, Gone, KubeError

if TYPE_CHECKING:
    from .batch import Change
    from .storage import Storage

POLL_SECONDS: Final = 1.0
"""How often it is asked what other processes wrote."""

_AT_ONCE: Final = 1000
MOST_UNREAD: Final = 5000
"""Changes that a watch may be behind; it ends then, and its client reads anew."""

MOST_TOGETHER: Final = 100
"""Changes that a watch tells of by one write: what it holds for a client that reads slowly stays small."""

_log = logging.getLogger(__name__)


class Subscription:
    """What one watch has not seen yet; `next` gives it, with None at its end once the watch is to end."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Change | None] = asyncio.Queue()

    def put(self, change: Change) -> bool:
        """Add a change; return False where the watch is too far behind."""
        if self._queue.qsize() >= MOST_UNREAD:
            self.end()
            return False
        self._queue.put_nowait(change)
        return True

    def end(self) -> None:
        """Let the watch end when it has seen what is there."""
        self._queue.put_nowait(None)

    async def next(self, seconds: float) -> list[Change | None]:
        """Return some of the changes that are there, at least one; raises TimeoutError when none comes in time."""
        async with asyncio.timeout(seconds):
            taken = [await self._queue.get()]
        while len(taken) < MOST_TOGETHER and not self._queue.empty():
            taken.append(self._queue.get_nowait())
        return taken


class Feed:
    """See the module. `run` it as a task."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage, self._clock = storage, clock
        self._subscriptions: set[Subscription] = set()
        self._wake = asyncio.Event()
        self._seen = 0
        storage.on_commit.append(self._wake.set)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            try:
                await self._follow()
            except Gone:
                # What happened is not known any more, as after a long time away.
                self.end_all()
                self._seen = 0
            except KubeError as error:
                _log.warning("changes cannot be read: %s", error.message)
                await self._clock.sleep(POLL_SECONDS)

    def subscribe(self) -> Subscription:
        """Return what gets every change that is told from now on."""
        made = Subscription()
        self._subscriptions.add(made)
        return made

    def unsubscribe(self, one: Subscription) -> None:
        """Tell it nothing more."""
        self._subscriptions.discard(one)

    def end_all(self) -> None:
        """End all watches; their clients come again."""
        for one in self._subscriptions:
            one.end()
        self._subscriptions.clear()

    async def _follow(self) -> None:
        if not self._seen:
            _, self._seen = await self._storage.bounds()
        while True:
            changes = await self._storage.changes(self._seen, _AT_ONCE)
            for change in changes:
                self._seen = change.version
                for one in list(self._subscriptions):
                    if not one.put(change):
                        self.unsubscribe(one)
            if len(changes) < _AT_ONCE:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._wake.wait()
                self._wake.clear()
