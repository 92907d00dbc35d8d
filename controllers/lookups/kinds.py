"""Discovery that asks again for kinds it does not know, but not for every question about a kind that nobody has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

from controllers.kube.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from controllers.kube.clock import Clock
    from controllers.kube.kinds import Discovery

T = TypeVar("T")
REFRESH_SECONDS = 30.0


class FreshKinds:
    """Finds kinds; a search that finds nothing refreshes the discovery, at most once in half a minute."""

    def __init__(self, discovery: Discovery, clock: Clock | None = None) -> None:
        self._discovery = discovery
        self._clock: Clock = clock or SystemClock()
        self._lock = asyncio.Lock()
        self._refreshed_at = float("-inf")

    async def find(self, search: Callable[[Discovery], T]) -> T:
        """Return what a search finds, now or after asking the server; raises KubeError when it cannot be asked."""
        found = search(self._discovery)
        if found:
            return found
        async with self._lock:
            now = self._clock.monotonic()
            if now - self._refreshed_at >= REFRESH_SECONDS:
                await self._discovery.refresh()
                self._refreshed_at = now
        return search(self._discovery)
