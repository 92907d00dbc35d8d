"""Processes that answer requests, under one that watches them: fed, asked for signs of life, replaced when they hang.

A request that makes a worker spin must not stop the replica: whoever does not answer for `HANG` seconds is killed, and while
no worker listens the API server is refused, which fails closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .feed import Channel, Message, change_message, everything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controllers.kube import Clock, Kind
    from controllers.kube.store import Store

    from .cluster_cache import ClusterCache
    from .metrics import Metrics

PING: Final = 1.0
HANG: Final = 10.0
"""Seconds without a sign of life after which the other side counts as one that hangs: a worker is replaced, a parent not believed."""
START: Final = 120.0
"""Seconds until the first sign of life: a start costs a second of work, of which a crowded machine gives little."""
RESTART: Final = 0.5
COMMAND: Final = (sys.executable, "-m", "controllers.worker")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Worker:
    """One process, its channel, and when it was last heard of."""

    process: asyncio.subprocess.Process
    channel: Channel
    heard_at: float
    has_spoken: bool = False
    is_ready: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Workers:
    """`count` workers. `run` keeps them running; `tell` sends all of them a message, new ones what they missed.

    `setup` makes the first message of a worker, which must hold everything it starts with but the ClusterCache.
    """

    def __init__(
        self,
        count: int,
        cache: ClusterCache,
        stores: Mapping[Kind, Store],
        metrics: Metrics,
        clock: Clock,
        setup: Callable[[], Message],
        *,
        command: Sequence[str] = COMMAND,
        on_outage: Callable[[], None] = lambda: None,
    ) -> None:
        self._count = count
        self._cache, self._stores = cache, stores
        self._metrics, self._clock = metrics, clock
        self._setup = setup
        self._command = command
        self._on_outage = on_outage
        self._workers: dict[int, _Worker] = {}
        self._changed = asyncio.Event()
        self._is_stopping = False
        cache.on_change.append(lambda change: self.tell(change_message(change)))
        cache.on_listed.append(lambda kind: self.tell({"t": "LISTED", "k": str(kind)}))

    @property
    def ready(self) -> int:
        """How many workers are ready."""
        return sum(worker.is_ready for worker in self._workers.values())

    async def wait_ready(self) -> None:
        """Return when all workers are ready."""
        while self.ready < self._count:
            self._changed.clear()
            await self._changed.wait()

    def tell(self, message: Message) -> None:
        """Send a message to all workers."""
        for worker in self._workers.values():
            worker.channel.send(message)

    async def run(self) -> None:
        """Keep the workers running until cancelled, then end them."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._count):
                group.create_task(self._keep(number))

    async def stop(self, seconds: float) -> None:
        """Let the workers finish what they answer; whoever does not within the time is ended when `run` is."""
        self._is_stopping = True
        self.tell({"t": "STOP"})
        waiting = [worker.process.wait() for worker in self._workers.values()]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*waiting)

    async def _keep(self, number: int) -> None:
        while not self._is_stopping:
            worker = await self._started()
            self._workers[number] = worker
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._listen(number, worker))
                    group.create_task(self._watch(worker))
            finally:
                del self._workers[number]
                worker.channel.close()
                if worker.process.returncode is None:
                    with suppress(ProcessLookupError):
                        worker.process.kill()
                status = await worker.process.wait()
            self._on_outage()
            _log.warning(
                "worker %d ended with status %d and is replaced", worker.process.pid, status
            )
            await self._clock.sleep(RESTART)

    async def _started(self) -> _Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            process = await asyncio.create_subprocess_exec(
                *self._command, "--fd", str(fd), pass_fds=(fd,)
            )
        channel = await Channel.on(ours)
        channel.send({"t": "SETUP", **self._setup()})
        for message in everything(self._stores, self._cache):
            channel.send(message)
        return _Worker(process, channel, self._clock.monotonic())

    async def _listen(self, number: int, worker: _Worker) -> None:
        async for message in worker.channel.messages():
            self._hear(number, worker, message)
        worker.gone.set()

    def _hear(self, number: int, worker: _Worker, message: Mapping[str, Any]) -> None:
        worker.heard_at, worker.has_spoken = self._clock.monotonic(), True
        match message["t"]:
            case "ALIVE":
                if worker.is_ready != message["ready"]:
                    worker.is_ready = bool(message["ready"])
                    self._changed.set()
            case "OUTAGE":
                self._on_outage()
            case "METRICS":
                self._metrics.show(f"worker {number}", message["dump"])

    async def _watch(self, worker: _Worker) -> None:
        """Ask for a sign of life every second; kill whoever gives none for too long."""
        while not worker.gone.is_set():
            worker.channel.send({"t": "PING"})
            await self._clock.sleep(PING)
            allowed = HANG if worker.has_spoken else START
            if self._clock.monotonic() - worker.heard_at > allowed:
                _log.error("worker %d does not answer and is killed", worker.process.pid)
                with suppress(ProcessLookupError):
                    worker.process.kill()
                return


def reserved_port(host: str, port: int) -> socket.socket:
    """Return a bound socket that holds a port for workers to share; raises OSError when it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind((host, port))
    return held
