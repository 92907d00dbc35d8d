"""The clock that follows the API server where that is later, and the machine everywhere else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from controllers.kube import connect, load_access
from controllers.kube.clock import ServerClock
from kpolicy_sandbox.server import Sandbox


def ahead_of_machine(clock: ServerClock) -> float:
    return (clock.now() - datetime.now(UTC)).total_seconds()


def date(**shift: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(**shift), usegmt=True)


def test_a_server_that_is_ahead_is_followed():
    clock = ServerClock()
    clock.observe(date(hours=4))

    assert ahead_of_machine(clock) == pytest.approx(4 * 3600, abs=5)


def test_a_server_that_is_behind_does_not_make_anything_younger():
    clock = ServerClock()
    clock.observe(date(hours=-4))

    assert ahead_of_machine(clock) == pytest.approx(0, abs=5)


def test_a_clock_set_right_again_is_followed_back():
    clock = ServerClock()
    clock.observe(date(hours=4))
    clock.observe(date())

    assert clock.skew == 0


def test_the_whole_seconds_of_a_date_mean_nothing():
    clock = ServerClock()
    clock.observe(date(seconds=-1))

    assert clock.skew == 0


@pytest.mark.parametrize(
    "text", ["", "yesterday", "Sat, 99 Foo 2026", "21 Nov 2026 10:00:00 -0000"]
)
def test_a_date_that_is_none_changes_nothing(text):
    clock = ServerClock()
    clock.observe(text)

    assert clock.skew == 0


def test_a_clock_that_starts_ahead_stays_there():
    clock = ServerClock(3600)
    clock.observe(date())
    assert ahead_of_machine(clock) == pytest.approx(3600, abs=5)
    clock.observe(date(hours=4))
    assert ahead_of_machine(clock) == pytest.approx(4 * 3600, abs=5)


def test_who_sleeps_is_woken_when_the_server_jumps_ahead():
    async def play() -> None:
        clock = ServerClock()
        sleeper = asyncio.create_task(clock.sleep(600))
        await asyncio.sleep(0)
        clock.observe(date(seconds=20))
        await asyncio.sleep(0)
        assert not sleeper.done()
        clock.observe(date(hours=4))
        await asyncio.wait_for(sleeper, 10)

    asyncio.run(play())


def test_sleep_lasts_as_long_as_was_asked():
    async def play() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await ServerClock().sleep(0.05)
        return loop.time() - began

    # a loop's own clock may be a tick ahead of the one that timers go by
    assert 0.04 <= asyncio.run(asyncio.wait_for(play(), 10)) < 10


def test_every_answer_of_a_server_tells_its_time(tmp_path):
    async def play() -> None:
        async with Sandbox.start(tmp_path) as sandbox:
            clock = ServerClock()
            client = connect(load_access(sandbox.kubeconfig), clock=clock)
            try:
                sandbox.clock.advance(timedelta(hours=2))
                await client.raw("GET", "/version")
                assert ahead_of_machine(clock) == pytest.approx(7200, abs=5)
            finally:
                await client.close()

    asyncio.run(asyncio.wait_for(play(), 20))
