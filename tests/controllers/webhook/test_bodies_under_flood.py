"""A serving process under floods of bodies: what it takes at most, and whether others are answered meanwhile."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.webhook.bodies import BodyLimits, decoded_size

from .staging import body, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_MIB = 200
SECONDS = 0.5
MIB = 1024 * 1024


def around(value: bytes) -> bytes:
    """Return the review of a ConfigMap that holds `value` somewhere."""
    configmap = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "attacker"}, "data": "HERE"}  # fmt: skip
    return body(configmap).replace(b'"HERE"', value)


def repeated(unit: bytes, size: int) -> bytes:
    """Return a review of about `size` bytes that holds a list of nothing but `unit`."""
    return around(b"[" + unit * (size // len(unit)) + b"0]")


SHAPES = {
    "empty lists": b"[],",
    "lists in lists": b"[[0]],",
    "empty maps": b'{"a":{}},',
    "one number a map": b'{"":0},',
    "one letter a text": b'"a",',
    "pairs": b'{"name":"a","value":"b"},',
}


@contextmanager
def flooded(folder: Path) -> Iterator[tuple[int, int, ssl.SSLContext]]:
    """Yield port and process id of a server, and what to trust."""
    bundle = folder / "bundle.pem"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.controllers.webhook.flooded", str(bundle)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield port, process.pid, ssl.create_default_context(cafile=str(bundle))
        finally:
            process.stdin.close()
            process.wait(20)


def peak(process: int) -> float:
    """Return the most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def head(length: int) -> bytes:
    """Return the head of a request whose body has `length` bytes."""
    return b"POST /validate/fail?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length  # fmt: skip


async def post(port: int, trusting: ssl.SSLContext, sent: bytes) -> bytes:
    """Send one body on a connection of its own; return the status line and what stands in the answer, b"" for a connection cut."""
    with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, ssl=trusting, server_hostname="localhost"
            )
            try:
                writer.write(head(len(sent)) + sent)
                first = await reader.readuntil(b"\r\n\r\n")
                length = int(first.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                return first + await reader.readexactly(length)
            finally:
                writer.transport.abort()
    return b""


async def answers(port: int, trusting: ssl.SSLContext) -> bool:
    """Whether a review is answered soon: who comes before the server has seen that others left may be one connection too many."""
    end = time.monotonic() + 10
    while b" 200 " not in (await post(port, trusting, body(pod())))[:20]:
        if time.monotonic() > end:
            return False
    return True


async def flood(port: int, trusting: ssl.SSLContext, sent: bytes, connections: int) -> int:
    """Send a body again and again on many connections for some seconds; return how many were answered as reviews."""
    end, answered = time.monotonic() + SECONDS, 0

    async def one() -> None:
        nonlocal answered
        while time.monotonic() < end:
            answered += b" 200 " in (await post(port, trusting, sent))[:20]

    await asyncio.gather(*(one() for _ in range(connections)))
    return answered


def largest(unit: bytes) -> bytes:
    """Return the largest review of a shape that is decoded."""
    room = BodyLimits().decoded
    sent = repeated(unit, MIB // 2)
    size = int(MIB / 2 * room / decoded_size(sent))
    return repeated(unit, int(size * 0.98))


def test_no_flood_of_bodies_of_legal_size_takes_a_worker_beyond_its_memory(tmp_path: Path) -> None:
    with flooded(tmp_path) as (port, process, trusting):
        answered = 0
        for name, unit in SHAPES.items():
            answered += asyncio.run(flood(port, trusting, repeated(unit, 60 * 1024), 48))
            answered += asyncio.run(flood(port, trusting, largest(unit), 6))
            assert peak(process) <= MOST_MIB, name
        assert answered
        asyncio.run(flood(port, trusting, repeated(b"{},", 15 * MIB), 12))
        assert b" 200 " in asyncio.run(post(port, trusting, body(pod())))[:20]
        assert peak(process) <= MOST_MIB


def test_no_number_of_connections_with_bodies_that_never_end_takes_a_worker_beyond_its_memory(tmp_path: Path) -> None:  # fmt: skip
    async def go(port: int, trusting: ssl.SSLContext) -> None:
        opened = []

        async def open_one(length: int, declared: int) -> None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(5):
                    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="localhost")  # fmt: skip
                    opened.append(writer)
                    writer.write(head(declared) + b"[" * length)
                    await writer.drain()

        for length, declared in ((0, 1000), (63 * 1024, 64 * 1024), (MIB, 2 * MIB)):
            await asyncio.gather(*(open_one(length, declared) for _ in range(150)))
        assert len(opened) > 100
        for writer in opened:
            writer.transport.abort()

    with flooded(tmp_path) as (port, process, trusting):
        asyncio.run(go(port, trusting))
        assert asyncio.run(answers(port, trusting))
        assert peak(process) <= MOST_MIB
