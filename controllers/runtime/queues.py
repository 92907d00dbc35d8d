"""Work that is done after a request was answered, in order, through a bounded queue.

Audit policies and the hand-over to the loops must not make a request wait, and must not pile up either: when the queue is
full, or what it keeps alive takes too much memory, the newest work is dropped and counted, because the background scan comes
to the same results later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from .running import ended

if TYPE_CHECKING:
    from .metrics import Metrics


Work = Callable[[], Awaitable[None]]
_log = logging.getLogger(__name__)


MOST_BYTES = 16 * 1024 * 1024
"""Bytes of objects that waiting work keeps alive."""


class BackgroundQueue:
    """A bounded queue of work with a few workers."""

    def __init__(
        self, metrics: Metrics, *, size: int = 1000, workers: int = 8, most_bytes: int = MOST_BYTES
    ) -> None:
        self._queue: asyncio.Queue[tuple[Work, int]] = asyncio.Queue(size)
        self._metrics = metrics
        self._held, self._most_bytes = 0, most_bytes
        self._count = workers
        self._workers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the workers."""
        self._workers = [asyncio.create_task(self._run()) for _ in range(self._count)]

    def add(self, work: Work, size: int = 0) -> bool:
        """Queue some work that keeps about `size` bytes alive; return False, and count it, when there is no room."""
        self._metrics.count("kyverno_breaker_total", ("audit",))
        # however large, one piece of work may wait: nothing would ever be known of a large object otherwise
        if self._queue.full() or (self._held and self._held + size > self._most_bytes):
            self._metrics.count("kyverno_breaker_drops", ("audit",))
            return False
        self._held += size
        self._queue.put_nowait((work, size))
        return True

    async def finish(self) -> None:
        """Wait until everything queued is done."""
        await self._queue.join()

    async def stop(self) -> None:
        """Stop the workers where they are."""
        await ended(self._workers)
        self._workers = []

    async def _run(self) -> None:
        while True:
            work, size = await self._queue.get()
            try:
                await work()
            except Exception:
                _log.exception("work after a request failed")
            finally:
                # INVARIANT: what the work holds is let go of before it stops counting
                del work
                self._held -= size
                self._queue.task_done()
