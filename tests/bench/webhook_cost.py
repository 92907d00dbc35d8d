"""What the webhook costs over HTTPS: requests a second on one core, waiting times, memory, beside servers that only decode.

The server is a process of its own, pinned to one core; reviews come from here, on the other core, over 16 connections that
stay open, as API servers send them.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import subjects
from .webhook_server import IS_REFUSED, LANES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONNECTIONS = 16
WARM_UP, SECONDS, ROUNDS = 0.5, 1.0, 7


class Figures:
    """Of one server: reviews a second, processor time of each, waiting times, MiB."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.costs: list[float] = []
        self.waits: list[float] = []
        self.memory = 0.0

    @property
    def rate(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rates)

    @property
    def cost(self) -> float:
        """The median of the rounds, in µs of the server's core; what else runs on the host does not count in it."""
        return statistics.median(self.costs) * 1e6

    def wait(self, part: float) -> float:
        """Return the waiting time that a part of all reviews stayed below, in ms."""
        ordered = sorted(self.waits)
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1e3


def measure() -> dict[str, Figures]:
    """Return the figures of each kind of server; rounds take turns, so a slow moment hits all alike."""
    found = {kind: Figures() for kind in LANES}
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    try:
        for _ in range(ROUNDS):
            for kind, figures in found.items():
                with _server(kind) as (port, process, ended):
                    waits, spent = asyncio.run(_load(port, kind, process))
                    figures.rates.append(len(waits) / SECONDS)
                    figures.costs.append(spent / len(waits))
                    figures.waits += waits
                    figures.memory = max(figures.memory, ended() / 1024)
    finally:
        os.sched_setaffinity(0, set(cores))
    return found


@contextmanager
def _server(kind: str) -> Iterator[tuple[int, int, Callable[[], int]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.webhook_server", kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    line = process.stdout.readline()

    def ended() -> int:
        process.stdin.close()
        return int(process.stdout.readline())

    try:
        yield int(line), process.pid, ended
    finally:
        process.stdin.close()
        if process.wait(20):
            raise RuntimeError(f"the server for `{kind}` ended with {process.returncode}")


async def _load(port: int, kind: str, process: int) -> tuple[list[float], float]:
    """Send reviews over all connections; return how long each took, and the seconds of a core that the server spent."""
    is_bad = kind.endswith(IS_REFUSED)
    body = subjects.review_bytes(is_bad=is_bad)
    head = f"POST /{LANES[kind]}?timeout=10s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"  # fmt: skip
    request = head.encode() + body
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    begin = time.perf_counter() + WARM_UP
    waits: list[float] = []
    senders = [
        asyncio.create_task(_sender(port, trusting, request, begin, waits, is_bad=is_bad))
        for _ in range(CONNECTIONS)
    ]
    await asyncio.sleep(begin - time.perf_counter())
    before = _spent(process)
    await asyncio.gather(*senders)
    return waits, _spent(process) - before


def _spent(process: int) -> float:
    """Return the seconds of processor time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _sender(
    port: int,
    trusting: ssl.SSLContext,
    request: bytes,
    begin: float,
    waits: list[float],
    *,
    is_bad: bool,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    end = begin + SECONDS
    while (sent := time.perf_counter()) < end:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        assert (b'"allowed":true' in answer) is not is_bad, answer
        now = time.perf_counter()
        if begin <= sent and now < end:
            waits.append(now - sent)
    writer.close()
