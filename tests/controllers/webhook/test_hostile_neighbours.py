"""One tenant posts objects that are dear to evaluate, as fast as it can; another one's reviews go on as if nothing were."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import orjson

from .staging import body, pod
from .test_bodies_under_flood import flooded, head, post

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

SECONDS = 4.0
ATTACKERS = 8
P99 = 1.0


def configmap(**data: str) -> dict[str, Any]:
    """Return a ConfigMap of the attacker's."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "attacker"}, "data": data}  # fmt: skip


def hostile() -> list[bytes]:
    """Return reviews of legal size that would take seconds each."""
    searched = configmap(pattern="*" + "a?" * 100 + "b*", text="a" * 200_000)
    walked = {**configmap(), "binaryData": {"x": [[[0]] for _ in range(100_000)]}}
    crowded = pod(namespace="attacker")
    crowded["spec"]["containers"] = [{"name": f"c{n}", "image": "nginx", "env": [{"name": "a", "value": "b"}] * 20} for n in range(2000)]  # fmt: skip
    return [body(searched), body(walked), body(crowded)]


async def attack(port: int, trusting: ssl.SSLContext, sent: bytes, end: float) -> int:
    """Post a review until the end; return how often."""
    count = 0
    while time.monotonic() < end:
        await post(port, trusting, sent)
        count += 1
    return count


async def neighbour(port: int, trusting: ssl.SSLContext, end: float, most: int) -> tuple[list[float], list[bool]]:  # fmt: skip
    """Post ordinary reviews on one connection until the end; return how long each took and whether it was let through."""
    waits, allowed = [], []
    sent = body(pod(namespace="other"))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname="localhost")  # fmt: skip
    while (began := time.monotonic()) < end and len(waits) < most:
        writer.write(head(len(sent)) + sent)
        first = await reader.readuntil(b"\r\n\r\n")
        length = int(first.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        waits.append(time.monotonic() - began)
        allowed.append(orjson.loads(answer)["response"]["allowed"])
    writer.transport.abort()
    return waits, allowed


def test_a_hostile_tenant_at_full_speed_does_not_delay_another_ones_reviews(tmp_path: Path) -> None:
    async def go(port: int, trusting: ssl.SSLContext) -> None:
        calm, _ = await neighbour(port, trusting, time.monotonic() + SECONDS, 50)
        # on a machine that is busy with others everything waits, this or that
        longest = max(P99, 40 * sorted(calm)[len(calm) // 2])
        end, reviews = time.monotonic() + SECONDS, hostile()
        attacks = [
            asyncio.create_task(attack(port, trusting, reviews[n % len(reviews)], end))
            for n in range(ATTACKERS)
        ]
        waits, allowed = await neighbour(port, trusting, end, 100_000)
        counts = await asyncio.gather(*attacks)
        assert all(counts)
        assert waits
        assert all(allowed)
        assert sorted(waits)[int(len(waits) * 0.99)] < longest

    with flooded(tmp_path) as (port, _process, trusting):
        asyncio.run(go(port, trusting))
