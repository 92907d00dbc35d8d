"""How fast reports are written: at full speed while little is created, with a small share of the time while much is.

A report costs an API server more than the creation of the object it is about, and nobody waits for it as somebody waits
for the creation. So in a rush reports stand back, and catch up when it is over; a rush that does not end gets them all the same.
However much there is to judge, this process takes no more than its budget of processor time: a leader that begins anew leaves
the machine to others.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from controllers.kube.rush import PATIENCE, Rush
from controllers.runtime.running import ended

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
        self._ended = asyncio.Event()
        self._next = asyncio.Lock()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait until a piece of work may begin, which is the body of the block."""
        # one looks whether it may begin while the others wait behind it: hundreds that look cost more than what they wait to do
        async with self._next:
            await self._wait()
            began = self._clock.monotonic()
            self._under_way += 1
            self._ended.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._ended.set()
            now = self._clock.monotonic()
            self._next_at = now + max(now - began, LEAST) * (1 / self._share(now) - 1)

    async def _wait(self) -> None:
        """Return when work may begin; in a rush one piece is done at a time."""
        while True:
            now = self._clock.monotonic()
            pause = self._owed(now)
            if self._stands_back(now):
                if self._under_way:
                    await self._until_ended()
                    continue
                pause = max(self._next_at - now, pause)
            if pause <= 0:
                return
            await self._clock.sleep(min(max(pause, LEAST), _STEP))

    async def _until_ended(self) -> None:
        """Return when what is under way has ended, and soon in any case: it may hang, and the rush be over."""
        either = (
            asyncio.create_task(self._ended.wait()),
            asyncio.create_task(self._clock.sleep(_STEP)),
        )
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await ended(either)

    def _stands_back(self, now: float) -> bool:
        if not self.rush.is_on:
            self._rush_since = None
        elif self._rush_since is None:
            self._rush_since = now
        return self._rush_since is not None

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
