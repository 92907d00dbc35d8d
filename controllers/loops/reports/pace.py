"""How fast reports are written: at full speed while little is created, with a small share of the time while much is.

A report costs an API server more than the creation of the object it is about, and nobody waits for it as somebody waits
for the creation. So in a rush reports stand back, and catch up when it is over; a rush that does not end gets them all the same.
However much there is to judge, this process takes no more than its budget of processor time: a leader that begins anew leaves
the machine to others.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from controllers.kube.rush import PATIENCE, Rush

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from controllers.kube import Clock

SHARE: Final = 0.05
"""The part of the time that reports take in a rush."""

LATE_SHARE: Final = 0.5
"""The part of the time that reports take in a rush that does not end."""

LEAST: Final = 0.025
"""Seconds that a piece of work counts at least: a server goes on with it after it has answered."""

BUDGET: Final = 0.5
"""Seconds of processor time that this process may take in a second while there is work on reports."""

SAVED: Final = 5.0
"""Seconds of processor time that it may take at once after it took less."""

_STEP = 0.25


class Pace:
    """Lets work on reports begin. `rush` is told of every new object, `turn` is waited for before each piece of work.

    `spent` tells the seconds of processor time of this process.
    """

    def __init__(self, clock: Clock, spent: Callable[[], float] = time.process_time) -> None:
        self.rush = Rush(clock)
        self._clock = clock
        self._spent = spent
        self._left, self._left_at, self._spent_then = SAVED, clock.monotonic(), spent()
        self._rush_since: float | None = None
        self._next_at = 0.0
        self._under_way = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a piece of work may begin, which is the body of the block."""
        while (pause := self._pause()) > 0:
            await self._clock.sleep(min(max(pause, LEAST), _STEP))
        began = self._clock.monotonic()
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            now = self._clock.monotonic()
            self._next_at = now + max(now - began, LEAST) * (1 / self._share(now) - 1)

    def _pause(self) -> float:
        """Return how long to wait before looking again; in a rush one piece of work is done at a time."""
        now = self._clock.monotonic()
        owed = self._owed(now)
        if not self.rush.is_on:
            self._rush_since = None
            return owed
        if self._rush_since is None:
            self._rush_since = now
        return _STEP if self._under_way else max(self._next_at - now, owed)

    def _owed(self, now: float) -> float:
        """Return how long it takes until this process has processor time left again."""
        spent = self._spent()
        gained, taken = (now - self._left_at) * BUDGET, spent - self._spent_then
        self._left = min(SAVED, self._left + gained - taken)
        self._left_at, self._spent_then = now, spent
        return max(0.0, -self._left / BUDGET)

    def _share(self, now: float) -> float:
        since = self._rush_since
        return SHARE if since is None or now - since < PATIENCE else LATE_SHARE
