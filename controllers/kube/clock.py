"""Time, as something that is handed in: what waits or compares instants asks a Clock and never the machine.

For reflectors, queues, elections and loops. Tests and the sandbox hand in a clock that they move themselves.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC: for what is written down."""

    def monotonic(self) -> float:
        """Return seconds that never go back: for how long something took."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current instant, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(max(seconds, 0))


class ServerClock(SystemClock):
    """The later of the machine's time and the API server's, which says its own with every answer.

    Instants in objects are the server's, so they are compared with its time; a machine whose clock is behind must not
    honour what has ended. `ahead` (seconds) starts it later than the machine, for tests and demonstrations.
    """

    JUMP = 30.0
    """Seconds by which the server's time must get ahead at once for sleepers to be woken."""

    TOLERATED = 2.0
    """Seconds that an answer's date may differ without meaning anything: it has whole seconds, and takes its time."""

    def __init__(self, ahead: float = 0.0) -> None:
        self._ahead = ahead
        self.skew = 0.0
        self._jumped = asyncio.Event()

    def now(self) -> datetime:
        """Return the later of both instants, aware, in UTC."""
        ahead = self._ahead + max(self.skew, 0.0)
        return super().now() + timedelta(seconds=ahead) if ahead else super().now()

    def observe(self, date: str) -> None:
        """Take notice of the `Date` of an answer that has just come (RFC 9110); one that is none changes nothing."""
        try:
            told = parsedate_to_datetime(date)
        except ValueError:
            return
        if told.tzinfo is None:
            return
        skew = (told - datetime.now(UTC)).total_seconds() - self._ahead
        before, self.skew = self.skew, skew if abs(skew) > self.TOLERATED else 0.0
        if self.skew - before > self.JUMP:
            self._jumped.set()
            self._jumped = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds, or when the server's time has jumped ahead, so that whoever waits looks again."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._jumped.wait(), max(seconds, 0))


# Pauses that grow: how long to wait after the first, second, … failure in a row.

chance: Callable[[], float] = random.SystemRandom().random
"""Numbers from 0 to 1, for spreading requests; nothing secret depends on them."""


@dataclass(slots=True)
class Backoff:
    """Doubling pauses between `least` and `most` seconds, of which the upper half is left to chance.

    The spread keeps many clients that lost one server from coming back at the same instant.
    """

    least: float = 0.8
    most: float = 30.0
    chance: Callable[[], float] = field(default=chance, repr=False)
    failures: int = 0

    def next(self) -> float:
        """Count a failure and return the seconds to wait."""
        pause = min(self.least * 2.0 ** min(self.failures, 64), self.most)
        self.failures += 1
        return pause * (0.5 + 0.5 * self.chance())

    def reset(self) -> None:
        """Start again from the shortest pause."""
        self.failures = 0
