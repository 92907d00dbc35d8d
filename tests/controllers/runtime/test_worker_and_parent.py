"""A worker goes by what its parent says for as long as the parent says anything."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from controllers.kube import Discovery
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.feed import Channel
from controllers.runtime.metrics import Metrics
from controllers.runtime.workers import HANG
from controllers.worker import Worker
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient


class Ready:
    """What a worker tells its parent of the webhooks; there are none here."""

    is_ready = True
    is_over = False

    def drain(self) -> None:
        """Leave."""

    async def stop(self) -> None:
        """End."""
        self.is_over = True


class Queue:
    """Nothing is left to do."""

    async def finish(self) -> None:
        """Return at once."""


def test_a_worker_whose_parent_hangs_knows_nothing_and_ends() -> None:
    async def go() -> None:
        clock = ManualClock()
        client: Any = FakeClient(clock=clock)
        cache = ClusterCache(Discovery(client), Metrics())
        for kind in WATCHED:
            cache.listed(kind)
        ours, theirs = socket.socketpair()
        parent, channel = await Channel.on(ours), await Channel.on(theirs)
        runtime: Any = SimpleNamespace(clock=clock, cache=cache, background_queue=Queue())
        serving: Any = Ready()
        answers = parent.messages()
        task = asyncio.create_task(Worker(channel, runtime, serving).run())
        try:
            parent.send({"t": "PING"})
            await asyncio.wait_for(anext(answers), 20)
            for _ in range(3):
                await clock.advance(HANG)
                assert cache.is_ready
                assert cache.missing == ()
                parent.send({"t": "PING"})
                await asyncio.wait_for(anext(answers), 20)
            await clock.advance(HANG + 1)
            assert not cache.is_ready
            assert cache.missing
            await asyncio.wait_for(task, 20)
            assert serving.is_over
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            parent.close()
            channel.close()
            await asyncio.sleep(0)

    asyncio.run(go())
