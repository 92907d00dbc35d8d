"""What one leader judged, the next one does not judge anew; whatever changed meanwhile, it does."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from controllers.kube import Forbidden, KubeError
from controllers.kube.kinds import CONFIG_MAPS, POLICY_REPORTS
from controllers.loops.reports import resuming
from controllers.loops.reports.scan import KEEP, BackgroundScan

from .staging import Scene, cluster_policy, config_map, matching, namespace, scene

MANY = 200


def needs(label: str, **resources: Any) -> dict[str, Any]:
    check = {
        "name": f"needs-{label}",
        "match": matching("ConfigMap", **resources),
        "validate": {"message": "m", "pattern": {"metadata": {"labels": {label: "?*"}}}},
    }
    return cluster_policy(f"ask-{label}", check)


OBJECTS = (namespace("shop", team="x"), *(config_map(f"c{number:03d}") for number in range(MANY)))


@asynccontextmanager
async def leading(made: Scene, *, chance: float = 0.5):
    """Lead for a while; the loop ends as that of a process that is killed."""
    scan = BackgroundScan(made.context, chance=lambda: chance)
    task = asyncio.ensure_future(scan.run())
    try:
        yield scan
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def judged_by_the_next(made: Scene, change: Any = None, **leads: Any) -> int:
    """Return how many objects a leader judges in its first seconds, after one that judged all and what changed since."""
    async with leading(made) as first:
        await made.rest(5)
        await made.rest(KEEP)
        assert first.judged >= MANY
    if change is not None:
        await change(made)
    async with leading(made, **leads) as second:
        await made.rest(5)
        return second.judged


def played(change: Any = None, *objects: dict[str, Any], **leads: Any) -> int:
    async def play() -> int:
        async with scene(needs("team"), *objects, *OBJECTS) as made:
            return await judged_by_the_next(made, change, **leads)

    return asyncio.run(play())


def test_a_restart_judges_nothing_again():
    assert played() == 0


def test_where_there_is_no_report_at_all_none_is_looked_for_before_it_is_made():
    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            async with leading(made):
                await made.rest(5)
            verbs = [call.verb for call in made.client.calls if call.resource == "policyreports"]
            assert len(made.stored(POLICY_REPORTS)) == verbs.count("create") == MANY
            assert "get" not in verbs

    asyncio.run(play())


def test_what_changed_or_came_while_nobody_led_is_judged_and_nothing_else():
    async def change(made: Scene) -> None:
        made.put(config_map("c007", team="x"))
        made.put(config_map("new"))

    assert played(change) == 2


def test_what_changed_after_it_was_last_written_down_is_judged():
    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            async with leading(made) as first:
                await made.rest(5)
                await made.rest(KEEP)
                made.put(config_map("c007", team="x"))
                await made.rest(5)
                assert first.judged == MANY + 1
            async with leading(made) as second:
                await made.rest(5)
                assert second.judged == 1

    asyncio.run(play())


async def _policy(made: Scene) -> None:
    made.put(needs("team", namespaces=["shop"]))


async def _another_policy(made: Scene) -> None:
    made.put(needs("owner"))


async def _exception(made: Scene) -> None:
    spec = {
        "match": matching("ConfigMap", names=["c003"]),
        "exceptions": [{"policyName": "ask-team", "ruleNames": ["needs-team"]}],
    }
    head = {"apiVersion": "kyverno.io/v2", "kind": "PolicyException"}
    made.put({**head, "metadata": {"name": "e", "namespace": "shop"}, "spec": spec})


async def _labels(made: Scene) -> None:
    made.put(namespace("shop", team="y"))


async def _reports_are_gone(made: Scene) -> None:
    for report in made.stored(POLICY_REPORTS)[: MANY // 5]:
        made.take(report)


async def _another_version(made: Scene) -> None:
    _written(made, lambda text: text.replace('"kinds"', '"others"'))


async def _garbage(made: Scene) -> None:
    _written(made, lambda _: '{"kinds": {"x": [1]}, "namespaces": [], "reports": {}}')


async def _gone(made: Scene) -> None:
    made.take(made.stored(CONFIG_MAPS, resuming.NAME, "kyverno"))


def _written(made: Scene, changed: Any) -> None:
    memory = made.stored(CONFIG_MAPS, resuming.NAME, "kyverno")
    made.put({**memory, "data": {"judged": changed(memory["data"]["judged"])}})


@pytest.mark.parametrize(
    "change",
    [
        _policy, _another_policy, _exception, _labels, _reports_are_gone, _another_version, _garbage, _gone,
    ],
)  # fmt: skip
def test_everything_is_judged_where_what_decides_is_another(change):
    assert played(change) >= MANY


def test_objects_of_other_namespaces_are_left_alone_when_labels_of_one_change():
    assert played(_labels, namespace("quiet"), config_map("far", "quiet")) == MANY


def test_the_interval_ends_for_one_object_after_the_other():
    assert played(chance=0.0) == 0

    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            await judged_by_the_next(made)
            async with leading(made, chance=0.9) as third:
                await made.rest(5)
                assert third.judged == 0
                await made.rest(900)
                assert third.judged == MANY

    asyncio.run(play())


def test_a_policy_that_goes_and_comes_again_judges_everything_again():
    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            assert await judged_by_the_next(made) == 0
            async with leading(made) as third:
                await made.rest(5)
                made.take(needs("team"))
                await made.rest(5)
                made.put(needs("team"))
                await made.rest(5)
                assert third.judged == MANY

    asyncio.run(play())


def test_what_could_not_be_reported_is_left_to_the_next_leader():
    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            down = KubeError("down", status=500)
            made.client.fail("create", down, times=10 * MANY, resource="policyreports")
            assert await judged_by_the_next(made) >= MANY

    asyncio.run(play())


def test_without_the_right_to_remember_every_leader_begins_anew():
    async def forbidden(made: Scene) -> None:
        made.client.fail("get", Forbidden("no", status=403), resource="configmaps")

    assert played(forbidden) == MANY


def test_what_is_written_down_names_no_object_that_was_judged():
    async def play():
        async with scene(needs("team"), *OBJECTS) as made:
            await judged_by_the_next(made)
            text = made.stored(CONFIG_MAPS, resuming.NAME, "kyverno")["data"]["judged"]
            found = orjson.loads(text)
            assert [row[2] for row in found["kinds"].values()] == [[]]
            assert len(text) < 300

    asyncio.run(play())
