"""The sandbox's clock: real time plus an offset that people and tests move forward, so that hours pass in an instant.

Whoever waits for an instant waits here; moving the clock wakes everybody.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class Clock:
    """Real time, shifted."""

    def __init__(self, offset: timedelta = timedelta()) -> None:
        self.offset = offset
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        """Return the present instant in UTC."""
        return datetime.now(UTC) + self.offset

    def stamp(self) -> str:
        """Return now as `metadata.creationTimestamp` has it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def advance(self, by: timedelta) -> None:
        """Move forward; time never goes back."""
        if by < timedelta():
            raise ValueError("the clock only moves forward")
        self.offset += by
        self._moved.set()
        self._moved = asyncio.Event()

    async def until(self, instant: datetime) -> None:
        """Wait until an instant has come, by itself or because the clock was moved."""
        while (left := (instant - self.now()).total_seconds()) > 0:
            moved = self._moved
            try:
                await asyncio.wait_for(moved.wait(), min(left, 3600))
            except TimeoutError:
                continue


def parse_instant(text: object) -> datetime | None:
    """Read an RFC 3339 instant; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
