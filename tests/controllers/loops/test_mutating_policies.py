"""MutatingPolicies in the cluster: existing objects changed for requests and for written policies, reports, own requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube.kinds import CEL_POLICIES, CONFIG_MAPS, PODS, POLICY_REPORTS
from controllers.loops.generate.watching import PolicyWatch, SyncWatch
from controllers.loops.reports.judging import Judges, judge, tell
from controllers.loops.reports.sending import reports_of
from controllers.loops.requests.consumer import Consumer
from controllers.loops.requests.work import Worker
from controllers.runtime.configuration import read_configuration
from controllers.webhook.triggers import for_own_requests
from engine.evaluate import PolicySet
from tests.controllers.kube.fake import WELL_KNOWN

from .staging import Scene, config_map, scene

KINDS = (*WELL_KNOWN, *CEL_POLICIES)
SEEN = "Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"


def rules(resource: str, *operations: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": [resource]}
    return {"resourceRules": [{**rule, "operations": list(operations or ("CREATE", "UPDATE"))}]}


def mpol(expression: str = SEEN, *, ns: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedMutatingPolicy" if ns else "MutatingPolicy",
        "metadata": {"name": "seen", **({"namespace": ns} if ns else {})},
        "spec": {
            "evaluation": {"mutateExisting": {"enabled": True}},
            "matchConstraints": rules("pods"),
            "targetMatchConstraints": rules("configmaps"),
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": expression},
                }
            ],
            **spec,
        },
    }


def pod(name: str, ns: str = "shop") -> dict[str, Any]:
    metadata = {"name": name, "namespace": ns}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}}


def play(story: Any, *objects: dict[str, Any]) -> None:
    async def run() -> None:
        async with scene(*objects, kinds=KINDS) as made:
            worker = Worker(made.context, made.sink.pending)
            made.start(made.sink.run())
            made.start(Consumer(made.context, worker).run())
            sync = SyncWatch(made.context, worker.generator)
            made.start(PolicyWatch(made.context, worker.generator, sync).run())
            await made.rest()
            await story(made)

    asyncio.run(run())


def labels(made: Scene, name: str, ns: str = "shop") -> dict[str, str]:
    return made.stored(CONFIG_MAPS, name, ns)["metadata"].get("labels") or {}


def rows(made: Scene) -> list[tuple[str, str, str]]:
    return [
        (report["scope"]["name"], row.get("rule", ""), row["result"])
        for report in made.stored(POLICY_REPORTS)
        for row in report["results"]
    ]


def test_a_request_changes_what_is_there_in_upstreams_words():
    async def story(made):
        made.put(config_map("late"))
        await made.request(pod("a"))
        [request] = made.requests
        assert request["spec"]["requestType"] == "cel-mutate"
        assert request["spec"]["policy"] == "seen"
        await made.rest(60)
        assert labels(made, "late") == {"seen": "yes"}
        assert made.requests == []

    play(story, mpol())


def test_a_written_policy_changes_what_is_there_without_any_trigger():
    async def story(made):
        made.put(mpol())
        await made.rest(60)
        assert labels(made, "a") == labels(made, "b", "other") == {"seen": "yes"}

    play(story, config_map("a"), config_map("b", "other"))


def test_targets_are_written_by_the_part_that_their_rule_names():
    async def story(made):
        await made.rest(60)
        stored = made.stored(PODS, "a", "shop")
        assert stored["status"] == {"phase": "Seen"}
        assert "labels" not in stored["metadata"]

    seen = "Object{metadata: Object.metadata{labels: {'seen': 'yes'}}, status: Object.status{phase: 'Seen'}}"
    policy = mpol(seen, matchConstraints=rules("configmaps"), targetMatchConstraints=rules("pods/status"))  # fmt: skip
    play(story, pod("a"), policy)


@pytest.mark.parametrize(
    ("about", "targets", "is_set_off"),
    [
        (rules("pods", "UPDATE"), rules("configmaps"), False),
        (rules("pods", "DELETE"), rules("configmaps"), False),
        (rules("pods", "*"), rules("configmaps"), True),
        (rules("configmaps", "UPDATE"), {}, True),
    ],
)
def test_writing_a_policy_about_changes_of_others_sets_nothing_off(about, targets, is_set_off):
    async def story(made):
        await made.rest(60)
        assert labels(made, "a") == ({"seen": "yes"} if is_set_off else {})

    play(story, config_map("a"), mpol(matchConstraints=about, targetMatchConstraints=targets))


def test_a_namespaced_policy_reaches_its_namespace_only():
    async def story(made):
        await made.rest(60)
        assert labels(made, "a") == {"seen": "yes"}
        assert labels(made, "b", "other") == {}

    play(story, config_map("a"), config_map("b", "other"), mpol(ns="shop"))


@pytest.mark.parametrize(
    ("targets", "is_changed"),
    [
        (rules("configmaps"), False),
        ({"expression": 'resource.get("v1", "configmaps", "shop", "a")'}, True),
    ],
)
def test_what_the_filters_keep_from_policies_is_changed_only_where_an_expression_gives_it(
    targets, is_changed
):
    async def story(made):
        data = {"resourceFilters": "[ConfigMap,shop,a]"}
        made.cache.configuration = read_configuration({"data": data})
        made.put(mpol(targetMatchConstraints=targets))
        await made.request(pod("p"))
        await made.rest(60)
        assert labels(made, "a") == ({"seen": "yes"} if is_changed else {})
        assert len(rows(made)) == int(is_changed)

    play(story, config_map("a"))


def test_targets_that_are_changed_skipped_and_broken_are_seen_in_their_reports():
    async def story(made):
        await made.rest(120)
        assert sorted(rows(made)) == [
            ("a", "", "pass"),
            ("b", "evaluation", "error"),
            ("c", "", "skip"),
        ]

    spared = [{"name": "not-c", "expression": "object.metadata.name != 'c'"}]
    copying = "Object{data: {'y': object.data.x}}"
    play(
        story,
        config_map("a", data={"x": "1"}),
        config_map("b", data={"z": "1"}),
        config_map("c", data={"x": "1"}),
        mpol(copying, targetMatchConditions=spared),
    )


def test_a_scan_tells_of_what_was_not_changed_and_says_upstreams_words():
    async def story(made):
        policy = made.context.snapshot.compiled["mpol:seen"]
        obj = made.stored(CONFIG_MAPS, "a", "shop")
        said = await judge(made.context, obj, Judges((policy,)))
        await tell(made.context, obj, said, {}, reports_of(made.context))
        [report] = made.stored(POLICY_REPORTS)
        [row] = report["results"]
        assert (row["source"], row["result"], row["message"]) == (
            "KyvernoMutatingPolicy", "fail", "mutation is not applied",
        )  # fmt: skip

    plain = {
        "evaluation": {},
        "matchConstraints": rules("configmaps"),
        "targetMatchConstraints": {},
    }
    play(story, config_map("a"), mpol(**plain))


def test_what_our_own_work_writes_is_changed_only_where_the_policy_says_so():
    async def story(made):
        policies = PolicySet(tuple(made.context.snapshot.compiled.values()))
        assert for_own_requests(policies).policies == ()
        made.put(mpol(evaluation={"skipBackgroundRequests": False}, targetMatchConstraints={}))
        policies = PolicySet(tuple(made.context.snapshot.compiled.values()))
        assert for_own_requests(policies) is policies

    play(story, mpol())
