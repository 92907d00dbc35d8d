"""A replica of the controllers in this process: what is shipped, without sockets, on a connection that breaks."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from controllers.kube import KubeError, Unreachable
from controllers.kube.accounts import Job
from controllers.kube.lease import Election
from controllers.kube.reflector import Informers
from controllers.loops.process import _own_kinds
from controllers.runtime.options import Options
from controllers.runtime.watching import Watches
from controllers.starting import loops_of, make_runtime
from controllers.webhook import serving as serving_module
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.certificates import first_certificates
from controllers.webhook.reviewing import budget_of
from controllers.webhook.tls import ServerTls

from .virtual import START, VirtualClock

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from .server import ApiServer

KEY = b"k" * 32
NAMESPACE = "kyverno"
USER = f"system:serviceaccount:{NAMESPACE}:kyverno-admission-controller"
TIMEOUT = 10.0
_SENT = frozenset({"get", "list", "list_all", "create", "update", "patch", "delete", "review", "raw"})  # fmt: skip


class Died(BaseException):
    """The process is gone; nothing that handles errors may see it."""


@cache
def _pair() -> Any:
    return first_certificates(["127.0.0.1"], START).leaf


@cache
def _tls(pair: Any) -> ServerTls:
    """Return what would be shown to callers; nobody calls, and making it anew takes as long as half a history."""
    return ServerTls(pair)


class Line:
    """A replica's connection to the server: it takes time, breaks by chance, and ends with the replica.

    `fault` is how likely it is that a call is not made, or is made and its answer lost. Whoever is stopped goes on where it was.
    """

    def __init__(self, client: Any, chance: random.Random) -> None:
        self._client, self._chance = client, chance
        self.is_dead, self.fault, self.slowness = False, 0.0, 0.004
        self.dies_at = -1
        self.goes_on = asyncio.Event()
        self.goes_on.set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name == "watch":
            return self._watch
        return self._call(name, found) if name in _SENT else found

    async def pause(self) -> None:
        """Take the time that a network takes; raises Died."""
        await asyncio.sleep(self._chance.uniform(0.0, 2 * self.slowness))
        await self.goes_on.wait()
        if self.is_dead:
            raise Died

    def _call(self, name: str, work: Any) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            await self.pause()
            draw = self._chance.random()
            if draw < self.fault / 2:
                raise Unreachable("the connection broke")
            self._count_down()
            answer = await work(*args, **kwargs)
            self._count_down()
            await self.pause()
            if draw < self.fault:
                raise Unreachable("the connection broke before the answer came")
            return answer

        return call

    def _count_down(self) -> None:
        """Die before or after the call that was chosen."""
        if self.dies_at >= 0:
            self.dies_at -= 1
            if self.dies_at < 0:
                self.is_dead = True
                raise Died

    async def _watch(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for event in self._client.watch(*args, **kwargs):
            await asyncio.sleep(self._chance.uniform(0.0, 20 * self.slowness))
            await self.goes_on.wait()
            if self.is_dead:
                raise Died
            yield event


class Replica:
    """One replica. `start` it, `kill` it, `stop` it for a while; `review` is what the server calls."""

    def __init__(self, number: int, server: ApiServer, chance: random.Random) -> None:
        self.number, self._server, self._chance = number, server, chance
        self.clock = VirtualClock()
        self.line = Line(server.own(USER), chance)
        self.is_leading = self.is_up = False
        self._tasks: list[asyncio.Task[Any]] = []
        self._reviews: set[asyncio.Task[bytes]] = set()
        self._routes: Any = None
        self._runtime: Any = None

    async def start(self) -> None:
        """Start and wait until everything is known."""
        self.line = Line(self._server.own(USER), self._chance)
        client: Any = self.line
        informers = Informers(client, clock=self.clock)
        options = Options(workers=0, namespace=NAMESPACE, identity=f"replica-{self.number}", background_scan=False, client_ca=Path("ca"))  # fmt: skip
        runtime = await make_runtime(options, client, self.clock, informers, key=KEY, user=USER)
        runtime.background_queue.start()
        watches = Watches(informers, runtime.cache, NAMESPACE)
        loops: Any = loops_of(runtime)
        # what policies do besides has histories of its own; these loops are those of grants, codes and the trail
        loops._loops = lambda: list(_own_kinds(loops._of(Job.GRANTS)))
        with patch.object(serving_module, "ServerTls", _tls):
            serving = serving_module.Serving(runtime, _pair(), sink=loops.sink, port=0)
        self._routes, self._runtime = serving._server._routes.reviews, runtime
        self._grant_usage = serving._grant_usage
        election = Election(client, NAMESPACE, "kyverno", f"replica-{self.number}", clock=self.clock)  # fmt: skip
        works = (loops.run(), serving._grant_usage.run(), self._lead(election, loops))
        self._tasks = [asyncio.create_task(_quiet(work)) for work in works]
        self._tasks += [*watches._tasks, *runtime.background_queue._workers]
        self._informers = informers
        self.is_up = True
        while not runtime.cache.is_ready and not self.line.is_dead:
            await asyncio.sleep(0.05)

    async def _lead(self, election: Election, loops: Any) -> None:
        async def lead() -> None:
            self.is_leading = True
            try:
                await loops.lead()
            finally:
                self.is_leading = False

        while True:
            with suppress(KubeError, ExceptionGroup):
                await election.run(lead)
            await self.clock.sleep(2.0)

    @property
    def is_alive(self) -> bool:
        return not self.line.is_dead and self._routes is not None

    async def review(self, path: str, body: bytes) -> bytes:
        """Answer as the webhook does, to a caller with a certificate; raises ConnectionError where nobody answers."""
        if not self.is_alive:
            raise ConnectionError("connection refused")
        task = asyncio.create_task(self._answer(path, body))
        self._reviews.add(task)
        task.add_done_callback(self._over)
        try:
            async with asyncio.timeout(TIMEOUT):
                return await asyncio.shield(task)
        except TimeoutError:
            raise ConnectionError("context deadline exceeded") from None
        except (Died, asyncio.CancelledError):
            if not self.line.is_dead:
                raise
            raise ConnectionError("connection reset by peer") from None

    def _over(self, task: asyncio.Task[bytes]) -> None:
        self._reviews.discard(task)
        if not task.cancelled():
            task.exception()

    async def _answer(self, path: str, body: bytes) -> bytes:
        current_caller.set(Caller.CERTIFICATE)
        await self.line.pause()
        first, _, rest = path.partition("/")
        answer: bytes = await self._routes[first](rest, body, budget_of(TIMEOUT))
        await self.line.pause()
        return answer

    async def kill(self) -> None:
        """End at once, wherever it is."""
        self.line.is_dead, self.is_up = True, False
        self.line.goes_on.set()
        tasks = [*self._tasks, *self._reviews]
        tasks += [shared.task for shared in self._informers._shared.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._routes = None

    async def flush(self) -> None:
        """Write what was counted."""
        await self._grant_usage.flush()


async def _quiet(work: Any) -> None:
    with suppress(Died, BaseExceptionGroup):
        await work
