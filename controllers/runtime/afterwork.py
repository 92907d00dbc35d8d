"""Work that is done after a request was answered, in order, through a bounded queue.

Audit policies and the hand-over to the loops must not make a request wait, and must not pile up either: when the queue is
full the newest work is dropped and counted, because the background scan comes to the same results later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .metrics import Metrics

Work = Callable[[], Awaitable[None]]
_log = logging.getLogger(__name__)


class Afterwork:
    """A bounded queue of work with a few workers."""

    def __init__(self, metrics: Metrics, *, size: int = 1000, workers: int = 8) -> None:
        self._queue: asyncio.Queue[Work] = asyncio.Queue(size)
        self._metrics = metrics
        self._count = workers
        self._workers: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the workers."""
        self._workers = [asyncio.create_task(self._run()) for _ in range(self._count)]

    def add(self, work: Work) -> bool:
        """Queue some work; return False, and count it, when there is no room."""
        self._metrics.count("kyverno_breaker_total", ("audit",))
        try:
            self._queue.put_nowait(work)
        except asyncio.QueueFull:
            self._metrics.count("kyverno_breaker_drops", ("audit",))
            return False
        return True

    async def finish(self) -> None:
        """Wait until everything queued is done."""
        await self._queue.join()

    async def stop(self) -> None:
        """Stop the workers where they are."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []

    async def _run(self) -> None:
        while True:
            work = await self._queue.get()
            try:
                await work()
            except Exception:
                _log.exception("work after a request failed")
            finally:
                self._queue.task_done()
