"""Watch streams in a rush: parts gather, none is lost, and what comes alone is not kept waiting."""

from __future__ import annotations

import asyncio

from controllers.kube.http import QUICK, REST, documents, unhurried
from tests.clock import ManualClock


async def reading(waits: list[float]) -> list[tuple[int, float]]:
    """Return the documents of a stream and when each was read; each is sent so long after the one before."""
    clock = ManualClock()
    sent: list[bytes] = []
    arrived = asyncio.Event()
    found: list[tuple[int, float]] = []

    async def parts():
        while True:
            while not sent:
                arrived.clear()
                await arrived.wait()
            part = b"".join(sent)
            sent.clear()
            yield part

    async def read():
        stream = documents(unhurried(parts(), clock))
        while True:
            document = await anext(stream)
            found.append((document, round(clock.monotonic(), 3)))

    task = asyncio.create_task(read())
    for number, wait in enumerate(waits):
        await clock.advance(wait)
        sent.append(b"%d\n" % number)
        arrived.set()
    await clock.advance(10)
    task.cancel()
    return found


def test_what_comes_now_and_then_is_read_at_once():
    found = asyncio.run(reading([1.0, 2 * QUICK, 2 * QUICK]))
    assert [at for _, at in found] == [1.0, 1.0 + 2 * QUICK, 1.0 + 4 * QUICK]


def test_what_comes_in_a_rush_is_read_together_a_moment_later():
    each = QUICK / 2
    found = asyncio.run(reading([1.0, *[each] * 100]))
    assert [number for number, _ in found] == list(range(101))
    assert len({at for _, at in found}) <= 2 + 100 * each / REST + 1
    assert all(at <= 1.0 + number * each + REST + 0.001 for number, at in found)


def test_the_end_of_a_rush_is_the_end_of_the_waiting():
    found = asyncio.run(reading([1.0, QUICK / 2, QUICK / 2, 1.0, 1.0]))
    assert [at for _, at in found][-2:] == [2.01, 3.01]
