"""Status of policies, and the loops of a process put together as a replica runs them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from controllers import loops
from controllers.kube.kinds import CLUSTER_POLICIES, CONFIG_MAPS, POLICY_REPORTS
from controllers.loops.policy_status import PolicyStatus
from controllers.runtime.options import Options
from controllers.runtime.process import Configured, Runtime
from controllers.runtime.queues import BackgroundQueue
from controllers.store.policies import content_hash

from .staging import Scene, cluster_policy, config_map, matching, namespace, scene
from .test_reports import needs


def status(made: Scene, name: str = "ask-team") -> dict[str, Any]:
    return made.stored(CLUSTER_POLICIES, name)["status"]


def broken(name: str = "ask-team") -> dict[str, Any]:
    rule = {"name": "r", "match": matching("Pod"), "preconditions": [{"key": "a", "operator": "Nope", "value": "b"}], "validate": {"deny": {}}}  # fmt: skip
    return cluster_policy(name, rule)


def ready(made: Scene, name: str = "ask-team") -> tuple[str, str]:
    [condition] = status(made, name)["conditions"]
    return condition["status"], condition["message"]


def test_a_policy_in_force_says_so_with_the_rules_that_autogen_adds():
    async def play():
        async with scene(needs("team", "Pod")) as made:
            made.start(PolicyStatus(made.context).run())
            await made.rest()
            found = status(made)
            assert found["ready"] is True
            assert found["conditions"] == [{
                "type": "Ready", "status": "True", "reason": "Succeeded", "message": "Ready",
                "lastTransitionTime": "2026-11-21T10:18:00Z",
            }]  # fmt: skip
            names = [one["name"] for one in found["autogen"]["rules"]]
            assert names == ["autogen-needs-team", "autogen-cronjob-needs-team"]
            assert found["rulecount"] == {"validate": 1, "generate": 0, "mutate": 0, "verifyimages": 0}  # fmt: skip
            spec = made.stored(CLUSTER_POLICIES, "ask-team")["spec"]
            assert len(spec["rules"]) == 1
            writes = [one for one in made.client.calls if one.verb in ("patch", "update")]
            await made.rest(600)
            after = [one for one in made.client.calls if one.verb in ("patch", "update")]
            assert len(writes) == len(after) == 1

    asyncio.run(play())


def test_rules_that_autogen_no_longer_adds_leave_the_status():
    async def play():
        async with scene(needs("team", "Pod")) as made:
            made.start(PolicyStatus(made.context).run())
            await made.rest(60)
            old = made.stored(CLUSTER_POLICIES, "ask-team")
            made.put({**old, "spec": needs("team")["spec"]})
            await made.rest()
            assert status(made)["autogen"] == {}
            assert status(made)["conditions"][0]["lastTransitionTime"] == "2026-11-21T10:18:00Z"

    asyncio.run(play())


def test_a_policy_is_ready_only_when_the_webhooks_ask_for_it_as_it_stands():
    async def play():
        configured = Configured()
        async with scene(needs("team")) as made:
            made.start(PolicyStatus(made.context, configured).run())
            await made.rest()
            assert ready(made) == ("False", "Not Ready")
            old = made.stored(CLUSTER_POLICIES, "ask-team")
            configured.set({"ask-team": content_hash(old)})
            await made.rest()
            assert ready(made) == ("True", "Ready")
            made.put({**old, "spec": needs("owner")["spec"]})
            await made.rest()
            assert ready(made) == ("False", "Not Ready")

    asyncio.run(play())


def test_a_policy_that_does_not_compile_says_why():
    async def play():
        async with scene(broken()) as made:
            made.start(PolicyStatus(made.context).run())
            await made.rest()
            [condition] = status(made)["conditions"]
            assert (condition["status"], condition["reason"]) == ("False", "Failed")
            assert "`Nope` is not known" in condition["message"]
            made.put(needs("team"))
            await made.rest()
            assert ready(made) == ("True", "Ready")

    asyncio.run(play())


@asynccontextmanager
async def replica(made: Scene, **options: Any):
    """Yield the loops of a process on a scene, running; the leader's part is started by the test."""
    given = made.context
    runtime = Runtime(
        client=made.client, clock=made.clock, cache=made.cache, metrics=given.metrics,
        resolver=given.resolver, informers=given.informers, background_queue=BackgroundQueue(given.metrics),
        key=given.key, options=Options(**{"observe_only": True, **options}),
    )  # fmt: skip
    found = loops.start(runtime)
    made.sink = found.sink
    running = asyncio.ensure_future(found.run())
    try:
        yield found
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def quotas() -> dict[str, Any]:
    block = {
        "apiVersion": "v1", "kind": "ConfigMap", "name": "quota", "namespace": "{{ request.object.metadata.name }}",
        "synchronize": True, "data": {"data": {"cpu": "4"}},
    }  # fmt: skip
    return cluster_policy("quotas", {"name": "make", "match": matching("Namespace"), "generate": block})  # fmt: skip


def test_the_loops_of_a_process_do_all_their_work_together():
    async def play():
        label = {"cleanup.kyverno.io/ttl": "1h"}
        objects = (quotas(), needs("team"), config_map("a", **label))
        async with scene(*objects) as made, replica(made) as found:
            leading = asyncio.ensure_future(found.lead())
            await made.request(namespace("dev"))
            await made.rest(10)
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            assert len(made.stored(POLICY_REPORTS)) == 2
            assert ready(made) == ("True", "Ready")
            await made.rest(3700)
            assert made.stored(CONFIG_MAPS, "a", "shop") is None
            page = made.context.metrics.exposition().decode()
            for name in (
                'kyverno_ttl_controller_info{resource_group="",resource_resource="configmaps"',
                'kyverno_controller_reconcile_total{controller_name="background-scan"}',
                'kyverno_updaterequest_total{request_type="generate",status="completed"} 1.0',
            ):
                assert name in page
            await ended(leading)

    asyncio.run(play())


def test_who_leads_again_takes_up_what_was_left():
    async def play():
        async with scene(quotas()) as made, replica(made) as found:
            await made.rest(1)
            of_all = list(made.cache.on_change)
            leading = asyncio.ensure_future(found.lead())
            await made.rest(10)
            await ended(leading)
            await made.request(namespace("dev"))
            await made.rest(10)
            assert made.stored(CONFIG_MAPS) == []
            leading = asyncio.ensure_future(found.lead())
            await made.rest(10)
            assert made.stored(CONFIG_MAPS, "quota", "dev")
            assert len(made.cache.on_change) > len(of_all)
            await ended(leading)
            assert made.cache.on_change == of_all

    asyncio.run(play())
