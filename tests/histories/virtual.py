"""An event loop whose time passes only when nothing is left to do, so that minutes take no time and chance comes from a seed."""

from __future__ import annotations

import asyncio
import random
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

START = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Jumps to the next timer when nothing is ready; for programs that wait for nothing outside."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0

    def time(self) -> float:
        return self._passed

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._passed = max(self._passed, self._scheduled[0]._when)
        super()._run_once()


class VirtualClock:
    """The clock of one replica, or of the server: the loop's, `ahead` of it by some seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.monotonic() + self.ahead)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


def run(main: Coroutine[Any, Any, Any], seed: int) -> Any:
    """Run a program to its end in time of its own; everything that it draws follows from the seed."""
    loop = VirtualLoop()
    with _chance_from(seed):
        try:
            asyncio.set_event_loop(loop)
            return loop.run_until_complete(main)
        finally:
            _end(loop)
            asyncio.set_event_loop(None)
            loop.close()


def _end(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())


@contextmanager
def _chance_from(seed: int) -> Iterator[None]:
    """Let `random.SystemRandom` and `secrets`, which both draw here, follow from a seed."""
    drawn, before = random.Random(seed), random._urandom
    random._urandom = drawn.randbytes
    try:
        yield
    finally:
        random._urandom = before
