"""Reports in a rush: they stand back, all of them come, and none is looked for that cannot be there."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.kube.kinds import POLICY_REPORTS
from controllers.kube.rush import PATIENCE
from controllers.kube.workqueue import Gathering
from controllers.loops.reports import pace
from controllers.loops.reports.pace import Pace
from controllers.loops.reports.scan import BackgroundScan
from tests.clock import ManualClock, settle

from .staging import Scene, cluster_policy, config_map, matching, scene


def needs(label: str, **spec: Any) -> dict[str, Any]:
    pattern = {"metadata": {"labels": {label: "?*"}}}
    rule = {"name": label, "match": matching("ConfigMap"), "validate": {"pattern": pattern}}
    return cluster_policy(f"needs-{label}", rule, **spec)


def asked_for_reports(made: Scene, verb: str) -> int:
    return sum(
        call.verb == verb and call.resource == POLICY_REPORTS.plural for call in made.client.calls
    )


async def scanning(made: Scene) -> BackgroundScan:
    scan = BackgroundScan(made.context)
    made.start(scan.run())
    await made.rest(5)
    return scan


async def pieces_in(seconds: float, *, created: float, each: float) -> int:
    """Return how many pieces of work, `each` so long, begin while so many objects are created a second."""
    clock = ManualClock()
    one, begun = Pace(clock), 0

    async def work() -> None:
        nonlocal begun
        while True:
            async with one.turn():
                begun += 1
                await clock.sleep(each)

    tasks = [asyncio.create_task(work()) for _ in range(2)]
    passed = 0.0
    while passed < seconds:
        one.rush.count()
        await clock.advance(1 / created)
        passed += 1 / created
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return begun


def test_few_new_objects_do_not_slow_reports_down():
    assert asyncio.run(pieces_in(10, created=5, each=0.05)) > 350


def test_a_rush_leaves_reports_their_share_of_the_time():
    begun = asyncio.run(pieces_in(PATIENCE - 5, created=50, each=0.05))
    assert 0.5 * begun * 0.05 <= pace.SHARE * (PATIENCE - 5) <= 2 * begun * 0.05


def test_a_rush_without_end_gets_its_reports_all_the_same():
    short = asyncio.run(pieces_in(PATIENCE, created=50, each=0.05))
    long = asyncio.run(pieces_in(PATIENCE + 20, created=50, each=0.05))
    assert (long - short) * 0.05 > 0.3 * 20


def test_however_much_there_is_to_judge_no_more_processor_time_is_taken_than_the_budget():
    async def spending(seconds: float) -> float:
        clock, spent = ManualClock(), 0.0
        one = Pace(clock, lambda: spent)

        async def work() -> None:
            nonlocal spent
            while True:
                async with one.turn():
                    spent += 0.1
                    await clock.sleep(0.001)

        task = asyncio.create_task(work())
        for _ in range(int(seconds * 10)):
            await clock.advance(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return spent

    spent = asyncio.run(spending(40))
    assert pace.SAVED < spent <= pace.SAVED + 41 * pace.BUDGET


def test_work_that_hangs_since_a_rush_keeps_nothing_waiting_once_the_rush_is_over():
    async def play():
        clock = ManualClock()
        one, begun = Pace(clock), 0

        async def hang() -> None:
            async with one.turn():
                await asyncio.Event().wait()

        async def work() -> None:
            nonlocal begun
            async with one.turn():
                begun += 1

        tasks = [asyncio.create_task(hang())]
        await clock.advance(1)
        one.rush.count(100)
        tasks += [asyncio.create_task(work()) for _ in range(10)]
        await clock.advance(1)
        assert begun == 0
        await clock.advance(10)
        assert begun == 10
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())


def test_hundreds_that_wait_for_the_budget_do_not_spend_it_by_looking_for_their_turn():
    async def play():
        clock, spent, looks = ManualClock(), 0.0, 0

        def look() -> float:
            nonlocal looks
            looks += 1
            return spent

        one = Pace(clock, look)
        begun = 0

        async def work() -> None:
            nonlocal begun, spent
            async with one.turn():
                begun += 1
                spent += 0.1

        spent += 2 * pace.SAVED
        waiting = [asyncio.create_task(work()) for _ in range(300)]
        await clock.advance(5)
        assert begun == 0
        assert looks <= 30
        await clock.advance(100)
        assert begun == 300
        await asyncio.gather(*waiting)

    asyncio.run(play())


def test_what_gathers_is_handed_on_once_when_it_first_was_due():
    async def play():
        clock, found = ManualClock(), []
        gathering: Gathering[str] = Gathering(clock, 2.0, lambda key: found.append((key, clock.monotonic())))  # fmt: skip
        task = asyncio.create_task(gathering.run())
        gathering.add("a")
        await clock.advance(1)
        gathering.add("a")
        gathering.add("b")
        await clock.advance(5)
        gathering.add("a")
        await clock.advance(5)
        await settle()
        task.cancel()
        assert found == [("a", 2.0), ("b", 3.0), ("a", 8.0)]

    asyncio.run(play())


def test_in_a_rush_few_are_judged_and_afterwards_all():
    async def play():
        async with scene(needs("team")) as made:
            scan = await scanning(made)
            for number in range(100):
                made.put(config_map(f"c{number}"))
                await made.rest(0.05)
            assert scan.judged <= 10
            await made.rest(30)
            assert scan.judged == 100
            assert len(made.stored(POLICY_REPORTS)) == 100

    asyncio.run(play())


def test_an_object_that_goes_in_a_rush_gets_no_report():
    async def play():
        async with scene(needs("team")) as made:
            await scanning(made)
            for number in range(60):
                made.put(config_map(f"c{number}"))
            await made.rest(2.5)
            there = len(made.stored(POLICY_REPORTS))
            for number in range(60):
                made.take(config_map(f"c{number}"))
            await made.rest(60)
            assert there <= len(made.stored(POLICY_REPORTS)) <= there + 2

    asyncio.run(play())


def test_the_report_of_a_new_object_is_made_without_looking_for_one():
    async def play():
        async with scene(needs("team")) as made:
            await scanning(made)
            made.put(config_map("a"))
            await made.rest(5)
            assert asked_for_reports(made, "get") == 0
            assert asked_for_reports(made, "create") == 1
            made.put(config_map("a", team="x"))
            await made.rest(5)
            assert asked_for_reports(made, "get") == 1
            [report] = made.stored(POLICY_REPORTS)
            assert [row["result"] for row in report["results"]] == ["pass"]

    asyncio.run(play())


def test_rows_that_somebody_wrote_before_stay_in_the_report_of_a_new_object():
    async def play():
        async with scene(needs("team"), needs("owner")) as made:
            await scanning(made)
            stored = made.put(config_map("a"))
            theirs = {
                "policy": "needs-owner",
                "rule": "owner",
                "result": "pass",
                "source": "kyverno",
            }
            made.put(
                {
                    "apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
                    "metadata": {"name": stored["metadata"]["uid"], "namespace": "shop"},
                    "results": [theirs],
                }
            )  # fmt: skip
            await made.rest(5)
            [report] = made.stored(POLICY_REPORTS)
            assert [row["policy"] for row in report["results"]] == ["needs-owner", "needs-team"]
            assert report["scope"]["name"] == "a"

    asyncio.run(play())


def test_rows_of_admission_stand_back_too_and_all_come():
    async def play():
        async with scene(needs("team", background=False)) as made:
            row = {"policy": "needs-team", "rule": "team", "result": "fail"}
            for number in range(100):
                stored = made.put(config_map(f"c{number}"))
                about = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": f"c{number}", "uid": stored["metadata"]["uid"]}  # fmt: skip
                made.sink.pending.add(about, [row], made.clock.now())
            await made.rest(1.5)
            assert len(made.stored(POLICY_REPORTS)) <= 2
            await made.rest(30)
            assert len(made.stored(POLICY_REPORTS)) == 100

    asyncio.run(play())
