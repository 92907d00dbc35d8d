"""Workers: fed with what the parent knows, replaced when they end or hang, told of what changes."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controllers.kube import Discovery, SystemClock
from controllers.kube.kinds import NAMESPACES
from controllers.kube.reflector import Informers
from controllers.runtime import workers as module
from controllers.runtime.cluster_cache import ClusterCache
from controllers.runtime.feed import packed, unpacked
from controllers.runtime.metrics import Metrics
from controllers.runtime.watching import Watches
from controllers.runtime.workers import Workers, reserved_port
from tests.controllers.kube.fake import FakeClient

TINY = """
import json, os, socket, sys, time
how, record = sys.argv[1], sys.argv[2]
end = socket.socket(fileno=int(sys.argv[4]))
file = end.makefile("rwb")
def say(message):
    body = json.dumps(message).encode()
    file.write(len(body).to_bytes(4, "big") + body)
    file.flush()
while True:
    size = file.read(4)
    if len(size) < 4:
        break
    message = json.loads(file.read(int.from_bytes(size, "big")))
    with open(record, "a") as out:
        out.write(json.dumps([os.getpid(), message["t"], message.get("k"), (message.get("o") or {}).get("metadata", {}).get("name")]) + "\\n")
    if message["t"] == "STOP":
        break
    if message["t"] == "PING":
        if how == "hang":
            time.sleep(600)
        if how == "late":
            time.sleep(1)
            how = "answer"
        say({"t": "METRICS", "dump": {"counters": [["kpolicy_reviews_refused", ["x"], 1]], "times": [], "gauges": []}})
        say({"t": "ALIVE", "ready": True})
"""
"""A worker that writes down what it is told, and answers or hangs."""


@asynccontextmanager
async def workers(tmp_path: Path, how: str, count: int = 1):
    script, record = tmp_path / "worker.py", tmp_path / "record"
    script.write_text(TINY)
    client = FakeClient()
    client.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "early"}})
    informers, metrics = Informers(client), Metrics()
    cache = ClusterCache(Discovery(client), metrics)
    watches = Watches(informers, cache, "kyverno")
    made = Workers(
        count, cache, watches.stores, metrics, SystemClock(), dict,
        command=(sys.executable, str(script), how, str(record)),
    )  # fmt: skip
    task = asyncio.create_task(made.run())

    def told() -> list[list[Any]]:
        import json

        return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []  # fmt: skip

    try:
        yield made, client, told, metrics, task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        watches.stop()
        await informers.close()


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_worker_is_told_what_there_is_and_what_changes(tmp_path: Path) -> None:
    async def go() -> None:
        async with workers(tmp_path, "answer", 2) as (made, client, told, metrics, _):
            await asyncio.wait_for(made.wait_ready(), 20)
            assert made.ready == 2
            client.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "late"}})
            await eventually(lambda: sum(entry[3] == "late" for entry in told()) == 2)
            first = told()[0][0]
            mine = [entry[1:] for entry in told() if entry[0] == first and entry[1] != "PING"]
            assert mine[0] == ["SETUP", None, None]
            assert mine.count(["PUT", "namespaces", "early"]) == 1
            assert mine.index(["PUT", "namespaces", "early"]) < mine.index(["LISTED", "namespaces", None])  # fmt: skip
            await eventually(lambda: b'reason="x"' in metrics.exposition())
            await made.stop(20)

    asyncio.run(go())


def test_a_worker_that_is_slow_to_start_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "HANG", 0.3)
    monkeypatch.setattr(module, "PING", 0.05)

    async def go() -> None:
        async with workers(tmp_path, "late") as (made, _, told, _, _):
            await asyncio.wait_for(made.wait_ready(), 20)
            assert len({entry[0] for entry in told()}) == 1

    asyncio.run(go())


def test_a_worker_that_hangs_is_replaced(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "HANG", 0.3)
    monkeypatch.setattr(module, "START", 0.6)
    monkeypatch.setattr(module, "PING", 0.05)

    async def go() -> None:
        async with workers(tmp_path, "hang") as (made, _client, told, _metrics, _):
            await eventually(lambda: len({entry[0] for entry in told()}) >= 2)
            assert made.ready == 0

    asyncio.run(go())


def test_a_worker_that_ends_is_replaced_and_told_everything_again(tmp_path: Path) -> None:
    async def go() -> None:
        async with workers(tmp_path, "answer") as (made, _client, told, _metrics, _):
            await asyncio.wait_for(made.wait_ready(), 20)
            made.tell({"t": "STOP"})
            await eventually(lambda: len({entry[0] for entry in told()}) == 2)
            await asyncio.wait_for(made.wait_ready(), 20)
            second = told()[-1][0]
            await eventually(
                lambda: (
                    [second, "LISTED", "namespaces", None] in told()
                    and [second, "PUT", "namespaces", "early"] in told()
                )
            )

    asyncio.run(go())


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    async def go() -> None:
        async with workers(tmp_path, "answer") as (made, _client, told, _metrics, task):
            await asyncio.wait_for(made.wait_ready(), 20)
            process = told()[0][0]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)
            await eventually(lambda: not Path(f"/proc/{process}/cmdline").exists() or not Path(f"/proc/{process}/cmdline").read_bytes())  # fmt: skip

    asyncio.run(go())


def test_a_port_is_held_for_workers_to_share() -> None:
    with reserved_port("127.0.0.1", 0) as held:
        port = held.getsockname()[1]
        with reserved_port("127.0.0.1", port) as other:
            assert other.getsockname()[1] == port


def test_bytes_travel_as_text() -> None:
    assert unpacked(packed(b"\x00\xff")) == b"\x00\xff"
    assert str(NAMESPACES) == "namespaces"
