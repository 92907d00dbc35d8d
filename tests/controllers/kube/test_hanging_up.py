"""Watches that are given up, over TLS: nothing is left of them when the loop that they ran in has ended."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from contextlib import contextmanager, suppress

from controllers.kube import connect, load_access
from controllers.kube.kinds import NAMESPACES
from kpolicy_sandbox.server import Sandbox


@contextmanager
def elsewhere(folder):
    """Run a sandbox in a loop and a thread of its own; give the path of its kubeconfig."""
    is_up, is_done = threading.Event(), threading.Event()
    told = []

    async def serve() -> None:
        async with Sandbox.start(folder) as sandbox:
            told.append(str(sandbox.kubeconfig))
            is_up.set()
            await asyncio.to_thread(is_done.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert is_up.wait(30)
        yield told[0]
    finally:
        is_done.set()
        thread.join(30)


async def given_up(kubeconfig: str) -> None:
    """Watch until all there is has come, in a task that is cancelled then."""
    client = connect(load_access(kubeconfig))
    awaited = {one["metadata"]["name"] for one in (await client.list_all(NAMESPACES)).items}
    is_quiet = asyncio.Event()

    async def watch() -> None:
        async for event in client.watch(NAMESPACES, ""):
            awaited.discard(event.object["metadata"]["name"])
            if not awaited:
                is_quiet.set()

    task = asyncio.create_task(watch())
    async with asyncio.timeout(30):
        await is_quiet.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    await client.close()


def test_a_watch_that_is_given_up_leaves_no_connection_behind(tmp_path):
    with elsewhere(tmp_path / "sandbox") as kubeconfig, warnings.catch_warnings(record=True) as said:  # fmt: skip
        warnings.simplefilter("always")
        for _ in range(10):
            asyncio.run(given_up(kubeconfig))
        gc.collect()

    assert [str(one.message) for one in said if issubclass(one.category, ResourceWarning)] == []
