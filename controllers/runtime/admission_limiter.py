"""How many requests are worked on at once, and how many may wait: beyond that a request is refused, not queued.

A queue without bound turns overload into time-outs, which depend on the failure policy; a refusal is a verdict.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Overloaded(Exception):  # noqa: N818 - it names the state, as asyncio's own QueueFull does
    """There is no room to wait."""


class AdmissionLimiter:
    """A semaphore with a bounded queue."""

    def __init__(self, running: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(running)
        self._waiting = 0
        self._most_waiting = waiting

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._waiting

    async def __aenter__(self) -> Self:
        if not self._room.locked():
            await self._room.acquire()
            return self
        if self._waiting >= self._most_waiting:
            raise Overloaded
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._room.release()
