import asyncio

import pytest

from controllers.kube import KubeError
from controllers.kube.workqueue import WorkQueue
from tests.clock import ManualClock, settle

from .apiserver import run


async def stopped(task):
    task.cancel()
    await asyncio.wait([task])


def test_a_key_is_worked_on_once_however_often_it_is_added():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())
        for key in ("a", "b", "a"):
            queue.add(key)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert len(queue) == 0

    run(scenario())


def test_a_key_added_while_it_is_worked_on_comes_again_afterwards():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())
        queue.add("a")
        key = await queue.get()
        queue.add("a")
        assert len(queue) == 0
        queue.done(key)
        assert await queue.get() == "a"

    run(scenario())


def test_a_delayed_key_waits_for_its_time_and_the_earlier_time_counts():
    async def scenario():
        clock = ManualClock()
        queue = WorkQueue(clock=clock)
        queue.add_after("a", 10)
        queue.add_after("a", 5)
        queue.add_after("a", 20)
        await clock.advance(4.9)
        assert len(queue) == 0
        await clock.advance(0.2)
        assert len(queue) == 1
        await clock.advance(30)
        assert (len(queue), queue.delayed) == (1, 0)

    run(scenario())


def test_pauses_double_per_key_until_they_are_forgotten():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())
        assert [queue.retry("a") for _ in range(4)] == [0.005, 0.01, 0.02, 0.04]
        assert queue.retry("b") == 0.005
        queue.forget("a")
        assert queue.retry("a") == 0.005
        for _ in range(40):
            last = queue.retry("c")
        assert last == 1000.0
        queue.close()
        assert queue.delayed == 0

    run(scenario())


def test_all_retries_together_are_bounded():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())
        pauses = [queue.retry(number) for number in range(120)]
        assert pauses[99] == 0.005
        assert pauses[119] == pytest.approx(2.0)
        queue.close()

    run(scenario())


def test_work_that_fails_is_tried_again_and_others_go_on():
    async def scenario():
        clock = ManualClock()
        queue = WorkQueue(clock=clock)
        done, errors = [], []

        async def work(key):
            if key == "bad" and not errors:
                raise KubeError("not now")
            done.append(key)

        task = asyncio.ensure_future(queue.run(work, on_error=lambda *what: errors.append(what)))
        queue.add("bad")
        queue.add("good")
        await queue.idle()
        assert (done, errors[0][0]) == (["good"], "bad")
        assert queue.failures("bad") == 1
        await clock.advance(1)
        await queue.idle()
        assert done == ["good", "bad"]
        assert queue.failures("bad") == 0
        await stopped(task)

    run(scenario())


def test_no_two_workers_have_one_key():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())
        running, most = set(), []

        async def work(key):
            assert key not in running
            running.add(key)
            most.append(len(running))
            queue.add(key) if len(most) < 10 else None
            await settle(3)
            running.discard(key)

        task = asyncio.ensure_future(queue.run(work, workers=3))
        for key in ("a", "b"):
            queue.add(key)
        await queue.idle()
        assert max(most) == 2
        await stopped(task)

    run(scenario())


def test_an_unexpected_error_without_a_listener_is_not_swallowed():
    async def scenario():
        queue = WorkQueue(clock=ManualClock())

        async def work(_):
            raise ValueError("a mistake")

        queue.add("a")
        with pytest.raises(ExceptionGroup):
            await queue.run(work)

    run(scenario())
