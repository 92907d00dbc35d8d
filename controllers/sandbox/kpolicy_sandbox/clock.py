"""The sandbox's clock: real time plus an offset that people and tests move forward, so that hours pass in an instant.

Whoever waits for an instant waits here; moving the clock wakes everybody.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta

_AMOUNT = r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)"
_PART = re.compile(_AMOUNT, re.ASCII)
_DURATION = re.compile(rf"[+-]?(?:{_AMOUNT})+", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_LONGEST = (1 << 63) / 1e9
"""Seconds; Go counts nanoseconds in 64 bits."""


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


def parse_duration(text: str) -> timedelta | None:
    """Read a duration as Go writes them (`1h30m`, `1.5s`), to the microsecond; None when it is none or longer than Go's longest."""
    if text in ("0", "+0", "-0"):
        return timedelta()
    if not _DURATION.fullmatch(text):
        return None
    seconds = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    if seconds > _LONGEST:
        return None
    return timedelta(seconds=-seconds if text.startswith("-") else seconds)


def parse_instant(text: object) -> datetime | None:
    """Read an RFC 3339 instant; None when it is none."""
    if not isinstance(text, str):
        return None
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
