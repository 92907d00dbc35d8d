"""GeneratingPolicies from request to object, and everything that synchronising means for them (rows GP-01 to GP-41)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controllers.kube import Forbidden
from controllers.kube.kinds import (
    CEL_EXCEPTIONS,
    CEL_POLICIES,
    CLUSTER_POLICY_REPORTS,
    CONFIG_MAPS,
    SECRETS,
)
from controllers.loops.generate.watching import PolicyWatch, SyncWatch
from controllers.loops.policy_status import PolicyStatus
from controllers.loops.requests.consumer import Consumer
from controllers.loops.requests.work import Worker

from .staging import LISTED, Scene, cluster_policy, config_map, matching, namespace, scene

KINDS = tuple(replace(kind, verbs=LISTED) for kind in (*CEL_POLICIES, CEL_EXCEPTIONS))
QUOTA = '{"apiVersion": dyn("v1"), "kind": dyn("ConfigMap"), "metadata": dyn({"name": "quota"}), "data": dyn({"cpu": "4"})}'
MAKE = f"generator.Apply(object.metadata.name, [{QUOTA}])"
COPY = 'generator.Apply(object.metadata.name, [resource.Get("v1", "secrets", "platform", "pull")])'
PREFIX = "generate.kyverno.io/"
_GPOL = [kind.kind for kind in CEL_POLICIES].index("GeneratingPolicy")


def gpol(expression: str = MAKE, *, resource: str = "namespaces", ns: str = "", sync: bool = True, operations: Any = ("CREATE", "UPDATE"), evaluation: Any = None, **spec: Any) -> dict[str, Any]:  # fmt: skip
    """Return a GeneratingPolicy `quotas`, or with a namespace a NamespacedGeneratingPolicy."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": [resource]}  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedGeneratingPolicy" if ns else "GeneratingPolicy",
        "metadata": {"name": "quotas", **({"namespace": ns} if ns else {})},
        "spec": {
            "evaluation": {"synchronize": {"enabled": sync}, **(evaluation or {})},
            "matchConstraints": {"resourceRules": [rule]},
            "generate": [{"expression": expression}],
            **spec,
        },
    }


def secret(name: str = "pull", ns: str = "platform", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": ns}, "data": data}  # fmt: skip


def leading(made: Scene) -> Worker:
    worker = Worker(made.context, made.sink.pending)
    sync = SyncWatch(made.context, worker.generator)
    made.start(Consumer(made.context, worker).run())
    made.start(sync.run())
    made.start(PolicyWatch(made.context, worker.generator, sync).run())
    return worker


def play(story: Any, *objects: dict[str, Any]) -> None:
    async def run() -> None:
        async with scene(*objects, kinds=KINDS) as made:
            leading(made)
            await made.rest()
            await story(made)

    asyncio.run(run())


def trigger_of(made: Scene, name: str = "dev") -> dict[str, Any]:
    return made.stored(made.client.kind_of(namespace(name)), name)


def test_a_request_makes_the_object_with_upstreams_labels_and_the_work_is_forgotten():
    async def story(made):
        await made.request(namespace("dev"))
        [request] = made.requests
        assert request["spec"]["requestType"] == "cel-generate"
        assert request["spec"]["policy"] == "quotas"
        assert request["metadata"]["labels"][f"{PREFIX}policy-name"] == "quotas"
        assert request["spec"]["ruleContext"][0]["rule"] == "quotas"
        await made.rest()
        found = made.stored(CONFIG_MAPS, "quota", "dev")
        assert found["data"] == {"cpu": "4"}
        assert found["metadata"]["labels"] == {
            "app.kubernetes.io/managed-by": "kyverno",
            f"{PREFIX}policy-name": "quotas",
            f"{PREFIX}trigger-group": "",
            f"{PREFIX}trigger-kind": "Namespace",
            f"{PREFIX}trigger-name": "dev",
            f"{PREFIX}trigger-namespace": "",
            f"{PREFIX}trigger-uid": trigger_of(made)["metadata"]["uid"],
            f"{PREFIX}trigger-version": "v1",
        }
        assert made.requests == []

    play(story, gpol())


@pytest.mark.parametrize(("sync", "value"), [(True, "4"), (False, "100")])
def test_an_edited_object_is_put_right_only_when_synchronised(sync, value):
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        found = made.stored(CONFIG_MAPS, "quota", "dev")
        made.client.put({**found, "data": {"cpu": "100"}})
        await made.rest()
        now = made.stored(CONFIG_MAPS, "quota", "dev")
        assert now["data"] == {"cpu": value}
        assert now["metadata"]["uid"] == found["metadata"]["uid"]

    play(story, gpol(sync=sync))


def test_an_object_whose_labels_somebody_took_off_gets_them_back():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        found = made.stored(CONFIG_MAPS, "quota", "dev")
        bare = {key: one for key, one in found["metadata"].items() if key != "labels"}
        made.client.put({**found, "metadata": bare, "data": {"cpu": "100"}})
        await made.rest()
        now = made.stored(CONFIG_MAPS, "quota", "dev")
        assert now["metadata"].get("labels") == found["metadata"]["labels"]
        assert now["data"] == {"cpu": "4"}

    play(story, gpol())


@pytest.mark.parametrize("sync", [True, False])
def test_a_deleted_object_is_made_again_only_when_synchronised(sync):
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        made.take(made.stored(CONFIG_MAPS, "quota", "dev"))
        await made.rest()
        assert bool(made.stored(CONFIG_MAPS, "quota", "dev")) is sync

    play(story, gpol(sync=sync))


@pytest.mark.parametrize("sync", [True, False])
def test_what_a_policy_made_is_brought_up_to_date_with_its_trigger(sync):
    text = QUOTA.replace('"4"', 'object.metadata.labels["cpu"]')

    async def story(made):
        await made.request(namespace("dev", cpu="1"))
        await made.rest()
        trigger = trigger_of(made)
        newer = {**trigger, "metadata": {**trigger["metadata"], "labels": {"cpu": "2"}}}
        await made.request(newer, "UPDATE")
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "2"}

    play(story, gpol(f"generator.Apply(object.metadata.name, [{text}])", sync=sync))


def test_an_object_of_somebody_else_is_left_alone_and_not_adopted():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev")["data"] == {"cpu": "mine"}
        assert "labels" not in made.stored(CONFIG_MAPS, "quota", "dev")["metadata"]

    play(story, gpol(), config_map("quota", "dev", {"cpu": "mine"}))


@pytest.mark.parametrize("sync", [True, False])
def test_objects_go_with_their_trigger_only_when_synchronised(sync):
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        await made.request(namespace("dev"), "DELETE")
        await made.rest()
        assert bool(made.stored(CONFIG_MAPS, "quota", "dev")) is not sync

    play(story, gpol(sync=sync))


def test_objects_go_when_their_trigger_is_met_no_more():
    conditions = [{"name": "n", "expression": "object.metadata.labels.tier == 'gold'"}]

    async def story(made):
        await made.request(namespace("dev", tier="gold"))
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev")
        trigger = trigger_of(made)
        newer = {**trigger, "metadata": {**trigger["metadata"], "labels": {"tier": "tin"}}}
        await made.request(newer, "UPDATE")
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev") is None

    play(story, gpol(matchConditions=conditions))


def test_a_policy_that_is_only_about_new_objects_keeps_what_it_made_when_they_change():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        await made.request(trigger_of(made), "UPDATE", oldObject=trigger_of(made))
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "dev")

    play(story, gpol(operations=["CREATE"]))


def test_a_changed_policy_updates_in_place_and_takes_away_what_it_makes_no_more():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        before = made.stored(CONFIG_MAPS, "quota", "dev")
        made.put(gpol(MAKE.replace('"4"', '"8"')))
        await made.rest(1)
        after = made.stored(CONFIG_MAPS, "quota", "dev")
        assert after["data"] == {"cpu": "8"}
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        made.put(gpol(MAKE.replace("ConfigMap", "Secret")))
        await made.rest(1)
        assert made.stored(CONFIG_MAPS, "quota", "dev") is None
        assert made.stored(SECRETS, "quota", "dev")

    play(story, gpol())


def test_nothing_is_deleted_or_made_again_as_hours_go_by():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        before = made.stored(CONFIG_MAPS, "quota", "dev")["metadata"]
        for _ in range(3):
            await made.rest(3600)
        assert made.stored(CONFIG_MAPS, "quota", "dev")["metadata"] == before

    play(story, gpol())


@pytest.mark.parametrize(
    ("expression", "spec", "stays"),
    [
        (MAKE, {}, False),
        (MAKE, {"evaluation": {"orphanDownstreamOnPolicyDelete": {"enabled": True}}}, True),
        (MAKE, {"sync": False}, True),
        (COPY, {}, True),
    ],
)
def test_with_a_deleted_policy_goes_what_it_made_of_its_own_and_copies_stay(
    expression, spec, stays
):
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        kind, name = (SECRETS, "pull") if expression is COPY else (CONFIG_MAPS, "quota")
        assert made.stored(kind, name, "dev")
        made.take(gpol())
        await made.rest(1)
        assert bool(made.stored(kind, name, "dev")) is stays

    play(story, gpol(expression, **spec), secret(a="Yg=="))


def test_what_is_no_longer_synchronised_stays_when_the_policy_goes():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        made.put(gpol(sync=False))
        await made.rest(1)
        made.take(gpol())
        await made.rest(1)
        assert made.stored(CONFIG_MAPS, "quota", "dev")

    play(story, gpol())


def test_a_copy_follows_its_source_and_goes_with_it():
    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        source, copy = (made.stored(SECRETS, "pull", ns) for ns in ("platform", "dev"))
        assert copy["metadata"]["labels"][f"{PREFIX}source-uid"] == source["metadata"]["uid"]
        made.client.put({**source, "data": {"a": "Yw=="}})
        await made.rest()
        assert made.stored(SECRETS, "pull", "dev")["data"] == {"a": "Yw=="}
        assert "labels" not in source["metadata"]
        made.take(made.stored(SECRETS, "pull", "platform"))
        await made.rest(1)
        assert made.stored(SECRETS, "pull", "dev") is None

    play(story, gpol(COPY), secret(a="Yg=="))


def test_existing_triggers_are_taken_up_when_the_policy_says_so():
    async def story(made):
        await made.rest(1)
        assert made.stored(CONFIG_MAPS, "quota", "old")

    play(story, namespace("old"), gpol(evaluation={"generateExisting": {"enabled": True}}))


def test_a_policy_of_a_namespace_makes_keeps_and_clears_away_what_is_in_it():
    policy = gpol(f"generator.apply([{QUOTA}])", resource="secrets", ns="shop")

    async def story(made):
        await made.request(secret("other", "elsewhere"))
        await made.request(secret("trigger", "shop"))
        await made.rest()
        [found] = made.stored(CONFIG_MAPS)
        assert found["metadata"]["namespace"] == "shop"
        assert found["metadata"]["labels"][f"{PREFIX}policy-namespace"] == "shop"
        await made.request(secret("trigger", "shop"), "DELETE")
        await made.rest()
        assert made.stored(CONFIG_MAPS) == []
        await made.request(secret("trigger", "shop"))
        await made.rest()
        made.take(policy)
        await made.rest(1)
        assert made.stored(CONFIG_MAPS) == []

    play(story, policy)


def test_policies_of_one_name_and_different_kinds_keep_their_objects_apart():
    classic = {
        "name": "quotas", "match": matching("Namespace"),
        "generate": {
            "apiVersion": "v1", "kind": "ConfigMap", "name": "classic", "synchronize": True,
            "namespace": "{{ request.object.metadata.name }}", "data": {"data": {"a": "b"}},
        },
    }  # fmt: skip

    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        assert len(made.stored(CONFIG_MAPS)) == 2
        made.take(gpol())
        await made.rest(1)
        assert [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)] == ["classic"]
        made.take(cluster_policy("quotas", classic))
        await made.rest(1)
        assert made.stored(CONFIG_MAPS) == []

    play(story, gpol(), cluster_policy("quotas", classic))


def test_what_a_policy_may_not_make_is_seen_in_report_event_and_status_until_it_works():
    async def run() -> None:
        kinds = (*KINDS, replace(CLUSTER_POLICY_REPORTS, verbs=LISTED))
        policy = gpol(MAKE.replace("ConfigMap", "Secret"))
        async with scene(policy, kinds=kinds) as made:
            worker = leading(made)
            made.start(PolicyStatus(made.context, failures=worker.generator.failures).run())
            refusals = [Forbidden("not allowed", status=403)] * 3
            for one in refusals:
                made.client.fail("create", one, resource="secrets")
            await made.request(namespace("dev"))
            await made.rest()
            assert _condition(made)["message"] == "not carried out for Namespace: not allowed"
            messages = {one["message"] for one in made.events}
            assert messages == {"policy quotas/quotas error: not allowed"}
            await made.rest(30)
            [report] = made.stored(CLUSTER_POLICY_REPORTS)
            [row] = report["results"]
            assert (row["source"], row["rule"]) == ("KyvernoGeneratingPolicy", "quotas")
            assert row["result"] == "pass"
            assert row["properties"] == {
                "generated-resources": "/v1, Kind=Secret Name=quota Namespace=dev",
                "process": "admission review",
            }
            assert made.stored(SECRETS, "quota", "dev")
            assert _condition(made) is None

    asyncio.run(run())


def test_a_policy_that_is_made_anew_is_not_blamed_for_what_another_one_of_its_name_failed_in():
    async def run() -> None:
        policy = gpol(MAKE.replace("ConfigMap", "Secret"))
        async with scene(policy, kinds=KINDS) as made:
            worker = leading(made)
            made.start(PolicyStatus(made.context, failures=worker.generator.failures).run())
            refused = Forbidden("not allowed", status=403)
            made.client.fail("create", refused, times=50, resource="secrets")
            await made.request(namespace("dev"))
            await made.rest()
            assert _condition(made) is not None
            made.take(policy)
            made.put(policy)
            await made.rest()
            assert _condition(made) is None

    asyncio.run(run())


def _condition(made: Scene) -> Any:
    [policy] = made.client.stored(CEL_POLICIES[_GPOL])
    found = policy["status"]["conditionStatus"]["conditions"]
    return next((one for one in found if one["type"] == "GenerationSucceeded"), None)


def test_an_exempted_trigger_keeps_what_was_made_for_it():
    exception = {
        "apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "ops"},
        "spec": {"policyRefs": [{"name": "quotas", "kind": "GeneratingPolicy"}], "reportResult": "pass"},
    }  # fmt: skip

    async def story(made):
        await made.request(namespace("dev"))
        await made.rest()
        made.put(exception)
        await made.request(namespace("dev"), "UPDATE")
        await made.rest(1)
        assert made.stored(CONFIG_MAPS, "quota", "dev")
        await made.request(namespace("new"))
        await made.rest()
        assert made.stored(CONFIG_MAPS, "quota", "new") is None

    play(story, gpol())
