"""How much runs at once, how much may wait for it, and how much of both one tenant may take: for look-ups and for reviews."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Overloaded(Exception):  # noqa: N818 - it names the state, as asyncio's own QueueFull does
    """There is no room to wait."""


class Room:
    """Places for so much at once and a bounded queue before them.

    Of the places no tenant gets more than a quarter, of the queue no more than half, so that what waits long for one of them does
    not make all others wait. Who names no tenant is alone and may have it all.
    """

    def __init__(self, places: int, waiting: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._most, self._most_waiting = places, waiting
        self._shares: WeakValueDictionary[str, _Share] = WeakValueDictionary()
        self.waiting = 0

    @asynccontextmanager
    async def place(self, tenant: str = "") -> AsyncIterator[None]:
        """Hold a place; raises Overloaded where too many wait for one."""
        share = self._shares.get(tenant)
        if share is None:
            share = self._shares[tenant] = _Share(max(1, self._most // 4) if tenant else self._most)
        waits = share.places.locked() or self._places.locked()
        most = max(1, self._most_waiting // 2) if tenant else self._most_waiting
        if waits and (share.waiting >= most or self.waiting >= self._most_waiting):
            raise Overloaded
        self.waiting, share.waiting = self.waiting + waits, share.waiting + waits
        try:
            await share.places.acquire()
            try:
                await self._places.acquire()
            except BaseException:
                share.places.release()
                raise
        finally:
            self.waiting, share.waiting = self.waiting - waits, share.waiting - waits
        try:
            yield
        finally:
            self._places.release()
            share.places.release()


class _Share:
    """What one tenant has of a room."""

    def __init__(self, places: int) -> None:
        self.places = asyncio.Semaphore(places)
        self.waiting = 0
