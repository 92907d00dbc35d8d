"""DeletingPolicies in the loop: when they are due, what goes, what stays, and what is written down (rows DP-01 to DP-07)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controllers.kube import Forbidden
from controllers.kube.kinds import CEL_EXCEPTIONS, CONFIG_MAPS, DELETING_POLICIES, NAMESPACES
from controllers.loops.cleanup import policies
from controllers.loops.cleanup.policies import CleanupLoop
from controllers.runtime import evaluating

from .staging import LISTED, Scene, config_map, namespace, scene

MAPS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
KINDS = tuple(replace(kind, verbs=LISTED) for kind in (*DELETING_POLICIES, CEL_EXCEPTIONS))
HOUR = 3600
OF_CLUSTER, OF_NAMESPACE = DELETING_POLICIES


def deleting(*conditions: str, ns: str = "", rule: Any = MAPS, annotations: Any = None, **spec: Any) -> dict[str, Any]:  # fmt: skip
    metadata: dict[str, Any] = {"name": "tidy", "annotations": annotations or {}}
    if ns:
        metadata["namespace"] = ns
    named = [{"name": f"c{n}", "expression": one} for n, one in enumerate(conditions)]
    return {
        "apiVersion": "policies.kyverno.io/v1beta1",
        "kind": "NamespacedDeletingPolicy" if ns else "DeletingPolicy",
        "metadata": metadata,
        "spec": {"schedule": "0 * * * *", "matchConstraints": {"resourceRules": [rule]}, "conditions": named, **spec},
    }  # fmt: skip


def exception(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException",
        "metadata": {"name": "keep", "namespace": "shop", "uid": "u-keep"},
        "spec": {"policyRefs": [{"name": "tidy", "kind": "DeletingPolicy"}], **spec},
    }  # fmt: skip


def names(made: Scene) -> list[str]:
    return [one["metadata"]["name"] for one in made.stored(CONFIG_MAPS)]


def run(play: Any, *objects: Any) -> None:
    async def within() -> None:
        async with scene(*objects, kinds=KINDS) as made:
            made.start(CleanupLoop(made.context, DELETING_POLICIES).run())
            await made.rest()
            await play(made)

    asyncio.run(within())


def test_what_is_due_goes_and_the_policy_says_when_it_ran():
    async def play(made: Scene) -> None:
        await made.rest(41 * 60)
        assert names(made) == ["a", "b"]
        await made.rest(2 * 60)
        assert names(made) == ["b"]
        [policy] = made.stored(OF_CLUSTER)
        assert policy["status"] == {"lastExecutionTime": policy["status"]["lastExecutionTime"]}
        assert policy["status"]["lastExecutionTime"].startswith("2026-11-21T11:00:")
        [event] = made.events
        assert event["message"] == "successfully deleted the target resource ConfigMap/shop/a"
        assert (event["reason"], event["action"]) == ("PolicyApplied", "Resource Cleaned Up")
        assert event["reportingComponent"] == "kyverno-cleanup"
        about = event["involvedObject"]
        assert (about["apiVersion"], about["kind"]) == ("policies.kyverno.io/v1beta1", "DeletingPolicy")  # fmt: skip
        labels = ("tidy", "DeletingPolicy", "-", "ConfigMap", "shop", "Background")
        assert made.context.metrics.value("kyverno_deleting_controller_deletedobjects", labels) == 1

    run(
        play,
        deleting("object.metadata.name == 'a'", deletionPropagationPolicy="Background"),
        config_map("a"),
        config_map("b"),
    )


def test_a_policy_of_a_namespace_deletes_there_only_and_nothing_of_the_cluster():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["b"]
        assert made.stored(OF_NAMESPACE)[0]["status"]["lastExecutionTime"]
        assert len(made.stored(NAMESPACES)) == 2

    everything = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "namespaces"]}  # fmt: skip
    run(
        play,
        deleting(ns="shop", rule=everything),
        namespace("shop"),
        namespace("ops"),
        config_map("a"),
        config_map("b", "ops"),
    )


@pytest.mark.parametrize(
    "rule",
    [
        {**MAPS, "resources": ["*"]},
        {**MAPS, "apiGroups": ["*"]},
        {**MAPS, "apiVersions": ["*"]},
        {**MAPS, "resources": ["configmaps/status"]},
        {**MAPS, "resources": ["nothings"]},
    ],
)
def test_a_wildcard_or_a_subresource_deletes_nothing(rule):
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["a"]
        assert made.stored(OF_CLUSTER)[0]["status"]["lastExecutionTime"]

    run(play, deleting(rule=rule), config_map("a"))


def test_an_exception_protects_what_it_matches_until_it_ends():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["a"]
        await made.rest(HOUR)
        assert names(made) == []

    condition = [{"name": "c", "expression": "object.metadata.name == 'a'"}]
    kept = exception(matchConditions=condition, expiresAt="2026-11-21T11:30:00Z")
    run(play, kept, deleting(), config_map("a"), config_map("b"))


@pytest.mark.parametrize(
    ("annotations", "at_one", "at_three"),
    [
        ({"kpolicy.io/cleanup-pause": "ben; freeze"}, ["a"], ["a"]),
        ({"kpolicy.io/cleanup-after": "2026-11-21T12:30:00Z ben"}, ["a"], []),
        ({"kpolicy.io/cleanup-after": "tomorrow ben"}, ["a"], ["a"]),
        ({"kpolicy.io/cleanup-skip": "2026-11-21T11:00:00Z ben"}, ["a"], []),
    ],
)
def test_people_hold_it_back_as_any_clean_up(annotations, at_one, at_three):
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == at_one
        await made.rest(2 * HOUR)
        assert names(made) == at_three

    run(play, deleting(annotations=annotations), config_map("a"))


def test_objects_that_are_held_or_filtered_stay():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["filtered", "held"]

    held = config_map("held")
    held["metadata"]["annotations"] = {"kpolicy.io/cleanup-pause": "ben"}
    run(play, deleting(), config_map("a"), config_map("filtered", "kube-system"), held)


def test_an_error_of_a_condition_keeps_its_object_and_no_other():
    async def play(made: Scene) -> None:
        await made.rest(HOUR)
        assert names(made) == ["odd"]
        assert "status" not in made.stored(OF_CLUSTER)[0]

    run(play, deleting("int(object.data.n) > 0"), config_map("a", data={"n": "1"}), config_map("odd", data={"n": "x"}))  # fmt: skip


def test_a_kind_that_may_not_be_listed_stays_and_the_run_counts():
    async def play(made: Scene) -> None:
        made.client.fail("list", Forbidden("configmaps is forbidden", status=403), times=50)
        await made.rest(HOUR)
        assert names(made) == ["a"]
        assert any("failed to delete the target resource" in one["message"] for one in made.events)

    run(play, deleting(), config_map("a"))


def test_the_instant_of_the_last_run_survives_a_new_leader():
    async def play(made: Scene) -> None:
        await made.rest(30 * 60)
        assert names(made) == ["a"]

    policy = {**deleting(), "status": {"lastExecutionTime": "2026-11-21T10:00:00Z"}}
    policy["metadata"]["creationTimestamp"] = "2026-11-20T10:00:00Z"
    run(play, policy, config_map("a"))


def test_a_run_that_was_due_while_nobody_led_is_made_up_for():
    async def play(made: Scene) -> None:
        await made.rest(60)
        assert names(made) == []

    policy = {**deleting(), "status": {"lastExecutionTime": "2026-11-21T08:00:00Z"}}
    run(play, policy, config_map("a"))


def test_a_condition_that_takes_too_long_keeps_its_object_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(evaluating, "READING_SLICE", 2)
    monkeypatch.setattr(policies, "PROCESS", evaluating.BoundedEvaluator())
    ten = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    loops = "".join(f"{ten}.all({name}, " for name in "abcdef")
    slow = deleting(f"{loops}true{')' * 6}", ns="shop")

    async def play(made: Scene) -> None:
        await made.rest(45 * 60)
        assert names(made) == ["a"]
        labels = ("tidy", "NamespacedDeletingPolicy", "shop", "ConfigMap", "shop", "-")
        assert made.context.metrics.value("kyverno_deleting_controller_errors", labels) > 0

    run(play, slow, config_map("a"))


def test_more_objects_than_are_judged_in_one_go_are_all_judged() -> None:
    many = [config_map(f"map-{number:03}") for number in range(120)]

    async def play(made: Scene) -> None:
        await made.rest(45 * 60)
        assert names(made) == ["map-119"]

    run(play, deleting("object.metadata.name != 'map-119'"), *many)
