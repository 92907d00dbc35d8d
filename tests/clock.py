"""A clock that tests move by hand, and time for tasks that are ready."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta


class ManualClock:
    """A clock that stands still until somebody moves it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._passed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"<ManualClock {self.now().isoformat()} {self.sleeping} sleeping>"

    @property
    def sleeping(self) -> int:
        """How many wait for this clock to be moved."""
        return sum(not future.done() for _, _, future in self._sleepers)

    def now(self) -> datetime:
        """Return the instant the clock was moved to."""
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Return the seconds the clock was moved in all."""
        return self._passed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved so far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._passed + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Move the clock, waking sleepers in order, each at its own instant, with time to act in between."""
        end = self._passed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._passed, _, future = heapq.heappop(self._sleepers)
            if not future.done():
                future.set_result(None)
                await settle()
        self._passed = end
        await settle()


async def settle(rounds: int = 50) -> None:
    """Let tasks that are ready run, so that what follows sees their effect; for tests with clocks moved by hand."""
    for _ in range(rounds):
        await asyncio.sleep(0)
