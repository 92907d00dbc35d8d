"""A queue of keys for controllers: each key once, never two workers on one key, growing pauses after failures.

Keys, not events: whoever takes a key looks at the present state, so that a hundred changes of an object are one piece of
work. A key that is added while it is worked on comes again afterwards.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.errors import EngineError

from .clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable


K = TypeVar("K", bound="Hashable")

_LEAST, _MOST = 0.005, 1000.0
_PER_SECOND, _BURST = 10.0, 100.0


class WorkQueue(Generic[K]):
    """See the module. Retries are bounded by a bucket for all keys together, 10 a second after a burst of 100."""

    def __init__(
        self, *, clock: Clock | None = None, least: float = _LEAST, most: float = _MOST
    ) -> None:
        self._clock: Clock = clock or SystemClock()
        self._least, self._most = least, most
        self._ready: deque[K] = deque()
        self._dirty: set[K] = set()
        self._processing: set[K] = set()
        self._delayed: dict[K, tuple[float, asyncio.Task[None]]] = {}
        self._failures: dict[K, int] = {}
        self._tokens, self._filled_at = _BURST, self._clock.monotonic()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._delayed)

    @property
    def keys(self) -> frozenset[K]:
        """All keys that are ready, worked on, or wait for their time."""
        return frozenset((*self._dirty, *self._processing, *self._delayed))

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing is ready or being worked on; delayed keys may wait."""
        return not self._ready and not self._processing

    def failures(self, key: K) -> int:
        """Return how often in a row a key failed."""
        return self._failures.get(key, 0)

    def add(self, key: K) -> None:
        """Add a key, unless it waits already."""
        if key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.append(key)
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Add a key after some time; of two times for one key the earlier counts."""
        if seconds <= 0:
            self._cancel(key)
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        waiting = self._delayed.get(key)
        if waiting is not None and waiting[0] <= due:
            return
        self._cancel(key)
        task = asyncio.create_task(self._add_later(key, seconds))
        self._delayed[key] = (due, task)

    def retry(self, key: K) -> float:
        """Count a failure of a key, add it again after a pause that doubles each time, and return the pause."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        pause = max(min(self._least * 2.0 ** min(count, 64), self._most), self._bucket())
        self.add_after(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """Forget the failures of a key: it succeeded, or will never be tried again."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """Return the next key and mark it as worked on; call `done` afterwards."""
        while not self._ready:
            self._changed.clear()
            await self._changed.wait()
        key = self._ready.popleft()
        self._dirty.discard(key)
        self._processing.add(key)
        return key

    def done(self, key: K) -> None:
        """Mark a key as no longer worked on; if it was added meanwhile, it is ready again."""
        self._processing.discard(key)
        if key in self._dirty:
            self._ready.append(key)
        self._wake()

    async def idle(self) -> None:
        """Return when nothing is ready or being worked on."""
        while not self.is_idle:
            self._changed.clear()
            await self._changed.wait()
            self._changed.set()
            await asyncio.sleep(0)

    async def run(
        self,
        work: Callable[[K], Awaitable[None]],
        *,
        workers: int = 1,
        on_error: Callable[[K, Exception], None] | None = None,
    ) -> None:
        """Work on keys until cancelled; a key whose work raises is tried again later.

        Whatever is raised is told to `on_error`; without one, only our own errors are taken for something that may pass.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._worker(work, on_error))

    def close(self) -> None:
        """Drop everything that waits."""
        for key in list(self._delayed):
            self._cancel(key)
        self._ready.clear()
        self._dirty.clear()
        self._wake()

    async def _worker(
        self, work: Callable[[K], Awaitable[None]], on_error: Callable[[K, Exception], None] | None
    ) -> None:
        while True:
            key = await self.get()
            try:
                await work(key)
            except Exception as error:
                # Work is arbitrary code; one bad object must not stop the work on all others.
                if on_error is None and not isinstance(error, EngineError):
                    raise
                self.retry(key)
                if on_error is not None:
                    on_error(key, error)
            else:
                self.forget(key)
            finally:
                self.done(key)

    async def _add_later(self, key: K, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._delayed.pop(key, None)
        self.add(key)

    def _cancel(self, key: K) -> None:
        waiting = self._delayed.pop(key, None)
        if waiting is not None:
            waiting[1].cancel()

    def _bucket(self) -> float:
        """Take a token; return how long to wait for it."""
        now = self._clock.monotonic()
        self._tokens = min(_BURST, self._tokens + (now - self._filled_at) * _PER_SECOND)
        self._filled_at = now
        self._tokens -= 1
        return max(-self._tokens / _PER_SECOND, 0.0)

    def _wake(self) -> None:
        self._changed.set()


# Keys that rest for a fixed time before they are worked on, so that what changes again meanwhile is one piece of work.
#
# In place of `WorkQueue.add_after` where keys come in thousands and all of them rest equally long: they are due in the order in
# which they came, so that one sleeper serves all of them.


class Gathering(Generic[K]):
    """Hands each key on after `seconds`; one that comes again meanwhile is due when it was. `run` it as a task."""

    def __init__(self, clock: Clock, seconds: float, hand_on: Callable[[K], None]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._hand_on = hand_on
        self._due: dict[K, float] = {}
        self._arrived = asyncio.Event()

    @property
    def keys(self) -> frozenset[K]:
        """The keys that rest."""
        return frozenset(self._due)

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
