"""Keys that rest for a fixed time before they are worked on, so that what changes again meanwhile is one piece of work.

In place of `WorkQueue.add_after` where keys come in thousands and all of them rest equally long: they are due in the order in
which they came, so that one sleeper serves all of them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from .clock import Clock

K = TypeVar("K", bound="Hashable")


class Gathering(Generic[K]):
    """Hands each key on after `seconds`; one that comes again meanwhile is due when it was. `run` it as a task."""

    def __init__(self, clock: Clock, seconds: float, hand_on: Callable[[K], None]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._hand_on = hand_on
        self._due: dict[K, float] = {}
        self._arrived = asyncio.Event()

    def __repr__(self) -> str:
        return f"<Gathering {len(self._due)} keys>"

    def add(self, key: K) -> None:
        """Take a key."""
        if key not in self._due:
            self._due[key] = self._clock.monotonic() + self._seconds
            self._arrived.set()

    async def run(self) -> None:
        """Hand keys on until cancelled."""
        while True:
            while self._due:
                key, due = next(iter(self._due.items()))
                if (rest := due - self._clock.monotonic()) > 0:
                    await self._clock.sleep(rest)
                del self._due[key]
                self._hand_on(key)
            self._arrived.clear()
            await self._arrived.wait()
