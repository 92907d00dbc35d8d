"""A worker: answers requests beside others on one port, and is told by its parent everything it knows of the cluster.

Started by `controllers.runtime.workers` only. It ends when its parent is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import socket
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

from controllers.kube.reflector import Informers
from controllers.replica import AFTERWORK
from controllers.runtime.feed import Channel, Message, options_in, take_over, unpacked
from controllers.runtime.figures import show_process
from controllers.runtime.logs import configure
from controllers.runtime.running import ended
from controllers.runtime.workers import HANG, PING
from controllers.starting import clock_of, connected, loops_of, make_runtime, settle_memory
from controllers.webhook.certificates import Pair
from controllers.webhook.secret_path import unpacked as shared_in
from controllers.webhook.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.runtime.process import Runtime

METRICS_EVERY = 10
"""Signs of life between two reports of figures."""

_log = logging.getLogger(__name__)


class Worker:
    """One worker on its channel; `run` until the parent says so or is gone."""

    def __init__(self, channel: Channel, runtime: Runtime, serving: Serving) -> None:
        self._channel = channel
        self._runtime = runtime
        self._serving = serving
        self._clock = runtime.clock
        self._heard_at = self._clock.monotonic()
        self._pings = 0
        self._refreshing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Take over what the parent says, until it says so, is gone or hangs.

        A parent that hangs follows no policy and no exception any more, and what was true when it was last heard may not be: requests
        are answered as if nothing were known, and the API server finds another replica once this worker is gone.
        """
        self._runtime.cache.is_fed = self._is_fed
        minding = asyncio.create_task(self._mind())
        try:
            await self._listen()
        finally:
            minding.cancel()
        self._serving.drain()
        if self._is_fed():
            await asyncio.sleep(self._runtime.options.drain_seconds)
        await self._serving.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(AFTERWORK):
                await self._runtime.background_queue.finish()

    async def _listen(self) -> None:
        async for message in self._channel.messages():
            self._heard_at = self._clock.monotonic()
            if message["t"] == "STOP":
                break
            self._take(message)

    async def _mind(self) -> None:
        while self._is_fed():
            await self._clock.sleep(PING)
        _log.error("the parent hangs; this worker ends")
        self._channel.close()

    def _is_fed(self) -> bool:
        return self._clock.monotonic() - self._heard_at <= HANG

    def _take(self, message: Message) -> None:
        if take_over(self._runtime.cache, message):
            return
        match message["t"]:
            case "PING":
                self._answer()
            case "CERTIFICATE":
                self._serving.load(pair_in(message))
            case "CALLERS":
                take_callers(self._serving, message)
            case "KINDS":
                self._refreshing = asyncio.create_task(self._refresh())

    def _answer(self) -> None:
        self._channel.send({"t": "ALIVE", "ready": self._serving.is_ready})
        self._pings += 1
        if self._pings % METRICS_EVERY == 0:
            self._channel.send({"t": "METRICS", "dump": self._runtime.metrics.dump()})

    async def _refresh(self) -> None:
        try:
            await self._runtime.cache.discovery.refresh()
        except Exception:
            # The parent asks again with the next change; stale kinds only widen what is looked at.
            _log.exception("the kinds of the server cannot be read")


def pair_in(message: Mapping[str, Any]) -> Pair:
    """Return the certificate in a message."""
    return Pair(unpacked(message["certificate"]), unpacked(message["private"]))


def take_callers(serving: Serving, message: Mapping[str, Any]) -> None:
    """Have a server go by what a message says of its callers."""
    shared = shared_in(message["callers"])
    if shared is not None:
        serving.take(shared)


async def work(fd: int) -> None:
    """Be a worker on a connected socket."""
    channel = await Channel.on(socket.socket(fileno=fd))
    messages = channel.messages()
    setup = await anext(messages)
    options = options_in(setup["options"])
    configure(options.log_level, options.log_format, "worker")
    clock = clock_of(options)
    client, accounts = await connected(options, clock)
    async with AsyncExitStack() as closing:
        closing.push_async_callback(client.close)
        closing.push_async_callback(accounts.close)
        informers = Informers(client, clock=clock)
        closing.push_async_callback(informers.close)
        runtime = await make_runtime(
            options,
            client,
            clock,
            informers,
            key=unpacked(setup["key"]),
            user=setup["user"],
            accounts=accounts,
        )
        closing.push_async_callback(runtime.close)
        await _serve(channel, setup, runtime)


async def _serve(channel: Channel, setup: Message, runtime: Runtime) -> None:
    """Answer requests until the parent ends it, with the loops of a worker beside."""
    show_process(runtime.metrics, "worker")
    runtime.background_queue.start()
    loops = loops_of(runtime)
    beside = asyncio.create_task(loops.run())
    try:
        serving = Serving(
            runtime,
            pair_in(setup),
            sink=loops.sink,
            port=setup["port"],
            shared_port=True,
            on_outage=lambda: channel.send({"t": "OUTAGE"}),
        )
        take_callers(serving, setup)
        await serving.start()
        cache = runtime.cache
        cache.on_listed.append(lambda _: settle_memory() if cache.is_ready else None)
        await Worker(channel, runtime, serving).run()
    finally:
        await runtime.background_queue.stop()
        await ended([beside])


def main() -> None:
    """Run a worker on the socket that the parent passed."""
    parser = argparse.ArgumentParser(prog="python -m controllers.worker")
    parser.add_argument("--fd", type=int, required=True)
    given = parser.parse_args()
    # The parent decides when a worker ends; a signal to the whole group must not end it in the middle of an answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(work(given.fd))


if __name__ == "__main__":
    main()
