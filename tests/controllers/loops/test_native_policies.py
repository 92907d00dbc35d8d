"""Native policies that stand for ours: made, kept, taken away, and what status, routes and reports say of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube import Kind
from controllers.kube.kinds import CEL_EXCEPTIONS, CLUSTER_POLICIES, POLICY_REPORTS
from controllers.loops.native import NativePolicies, NativeStates, ReportedNatives
from controllers.loops.policy_status import PolicyStatus
from controllers.loops.reports.scan import BackgroundScan
from controllers.loops.reports.sweeping import ReportSweep
from controllers.runtime.process import Configured
from controllers.store.policies import content_hash
from engine.native import MUTATING, VALIDATING
from tests.controllers.kube.fake import VALIDATING_POLICIES

from .staging import Scene, cluster_policy, config_map, hold_lists_of, matching, scene

GROUP = "admissionregistration.k8s.io"
VAP = Kind(GROUP, "v1", "validatingadmissionpolicies", VALIDATING, False)
VAPB = Kind(GROUP, "v1", "validatingadmissionpolicybindings", f"{VALIDATING}Binding", False)
MAP = Kind(GROUP, "v1", "mutatingadmissionpolicies", MUTATING, False)
MAPB = Kind(GROUP, "v1", "mutatingadmissionpolicybindings", f"{MUTATING}Binding", False)
MPOL = Kind("policies.kyverno.io", "v1", "mutatingpolicies", "MutatingPolicy", False)
KINDS = (VAP, VAPB, MAP, MAPB, CLUSTER_POLICIES, VALIDATING_POLICIES, MPOL, CEL_EXCEPTIONS)
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
CHECK = [{"expression": "has(object.metadata.labels)", "message": "labels are needed"}]


def vpol(*, enabled: bool = True, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "ValidatingPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "autogen": {"validatingAdmissionPolicy": {"enabled": enabled}},
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": CHECK,
            **spec,
        },
    }


def exception() -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "shop"},
        "spec": {
            "policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}],
            "matchConditions": [{"name": "c", "expression": "object.metadata.name == 'x'"}],
            "expiresAt": "2026-11-21T11:00:00Z",
        },
    }


class Staged:
    """A scene with the loops of native policies and of status, and what our webhooks ask for."""

    def __init__(self, made: Scene, switches: tuple[str, ...] = (VALIDATING,)) -> None:
        self.made = made
        self.configured = Configured()
        states = NativeStates()
        made.start(NativePolicies(made.context, states, self.configured, switches).run())
        made.start(PolicyStatus(made.context, self.configured, natives=states).run())

    async def follow(self) -> None:
        """Let time pass; then webhooks ask for what the cache says, as the watch has brought it."""
        await self.made.rest(3)
        for kind in (VALIDATING_POLICIES, CLUSTER_POLICIES, MPOL):
            for obj in self.made.stored(kind):
                self.made.put(obj)
        snapshot = self.made.context.snapshot
        asked = {
            key: content_hash(one.policy.raw)
            for key, one in snapshot.judged.items()
            if one.rules or not snapshot.is_native(key)
        }
        self.configured.set(asked)
        await self.made.rest(3)

    def names(self) -> list[str]:
        found = [self.made.stored(kind) for kind in (VAP, VAPB, MAP, MAPB)]
        return [obj["metadata"]["name"] for objects in found for obj in objects]


def play(story: Any, *objects: dict[str, Any], switches: tuple[str, ...] = (VALIDATING,)) -> None:
    async def go() -> None:
        async with scene(*objects, kinds=KINDS) as made:
            staged = Staged(made, switches)
            await staged.follow()
            await story(staged)

    asyncio.run(go())


def status_of(staged: Staged, kind: Kind = VALIDATING_POLICIES) -> dict[str, Any]:
    [policy] = staged.made.stored(kind)
    return policy["status"]


def test_a_policy_that_asks_for_it_is_judged_by_the_api_server_and_no_more_by_us() -> None:
    async def story(staged: Staged) -> None:
        assert staged.names() == ["vpol-p", "vpol-p-binding"]
        status = status_of(staged)
        assert status["generated"] is True
        assert status["conditionStatus"]["ready"] is True
        assert status["conditionStatus"]["message"] == ""
        routes = staged.made.context.snapshot.routes
        assert not any(one.blocking.policies or one.audit.policies for one in routes.values())

    play(story, vpol())


def test_we_judge_until_the_api_server_has_had_time_to_take_a_native_policy_up() -> None:
    async def go() -> None:
        async with scene(vpol(), kinds=KINDS) as made:
            staged = Staged(made)
            await made.rest(1)
            assert staged.names() == ["vpol-p", "vpol-p-binding"]
            assert status_of(staged)["generated"] is False
            await made.rest(2)
            assert status_of(staged)["generated"] is True

    asyncio.run(go())


def test_a_native_policy_goes_only_when_our_webhooks_ask_for_the_policy_again() -> None:
    async def story(staged: Staged) -> None:
        made = staged.made
        [policy] = made.stored(VALIDATING_POLICIES)
        made.put({**policy, "spec": vpol(enabled=False)["spec"]})
        await made.rest(3)
        assert status_of(staged)["generated"] is False
        assert staged.names() == ["vpol-p", "vpol-p-binding"]
        await staged.follow()
        assert staged.names() == []
        message = status_of(staged)["conditionStatus"]["message"]
        assert message == "skip generating ValidatingAdmissionPolicy: not enabled."

    play(story, vpol())


def test_what_somebody_changes_in_a_native_policy_of_ours_is_put_back() -> None:
    async def story(staged: Staged) -> None:
        [found] = staged.made.stored(VAP)
        wanted = found["spec"]
        staged.made.put({**found, "spec": {**wanted, "validations": [{"expression": "true"}]}})
        await staged.made.rest(3)
        [found] = staged.made.stored(VAP)
        assert found["spec"] == wanted

    play(story, vpol())


def test_what_was_not_made_from_the_policy_is_never_touched() -> None:
    foreign = {
        "apiVersion": f"{GROUP}/v1",
        "kind": VALIDATING,
        "metadata": {"name": "vpol-p", "labels": {"app.kubernetes.io/managed-by": "kyverno"}},
        "spec": {"validations": [{"expression": "true"}]},
    }
    guard = {**foreign, "metadata": {"name": "kpolicy-grants"}}

    async def story(staged: Staged) -> None:
        found = {one["metadata"]["name"]: one["spec"] for one in staged.made.stored(VAP)}
        assert found == {"vpol-p": foreign["spec"], "kpolicy-grants": foreign["spec"]}
        assert status_of(staged)["generated"] is False
        assert "was not made from the policy" in status_of(staged)["conditionStatus"]["message"]
        [policy] = staged.made.stored(VALIDATING_POLICIES)
        staged.made.take(policy)
        await staged.follow()
        assert len(staged.made.stored(VAP)) == 2

    play(story, foreign, guard, vpol())


def test_the_native_policy_of_a_policy_that_is_deleted_goes_with_it() -> None:
    async def story(staged: Staged) -> None:
        [policy] = staged.made.stored(VALIDATING_POLICIES)
        staged.made.take(policy)
        await staged.follow()
        assert staged.names() == []

    play(story, vpol())


def test_an_exception_that_ends_brings_a_policy_back_to_us_until_it_has_ended() -> None:
    async def story(staged: Staged) -> None:
        staged.made.put(exception())
        await staged.follow()
        assert staged.names() == []
        assert status_of(staged)["generated"] is False
        await staged.made.rest(3600)
        await staged.follow()
        assert staged.names() == ["vpol-p", "vpol-p-binding"]

    play(story, vpol())


def test_without_the_rights_nothing_is_made_and_the_status_says_so() -> None:
    async def go() -> None:
        async with scene(vpol(), kinds=KINDS) as made:
            made.client.reviews["SelfSubjectAccessReview"] = lambda spec: {
                "allowed": spec["resourceAttributes"]["resource"] != VAPB.plural
            }
            staged = Staged(made)
            await staged.follow()
            assert staged.names() == []
            message = status_of(staged)["conditionStatus"]["message"]
            wanted = "insufficient permissions to generate ValidatingAdmissionPolicyBindings"
            assert message == wanted

    asyncio.run(go())


def test_the_switch_is_for_validating_ones_and_a_mutating_policy_decides_for_itself() -> None:
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}
    spec = {
        "autogen": {"mutatingAdmissionPolicy": {"enabled": True}},
        "matchConstraints": {"resourceRules": [RULE]},
        "mutations": [mutation],
    }
    mpol = {**vpol(), "kind": "MutatingPolicy", "spec": spec}

    async def story(staged: Staged) -> None:
        assert staged.names() == ["mpol-p", "mpol-p-binding"]
        assert status_of(staged)["conditionStatus"]["message"] == ""

    play(story, vpol(), mpol, switches=())


def test_rules_that_autogen_adds_stay_with_us_where_the_written_one_is_native() -> None:
    rule = {
        "name": "r",
        "match": matching("Pod"),
        "validate": {"failureAction": "Enforce", "cel": {"generate": True, "expressions": CHECK}},
    }

    async def story(staged: Staged) -> None:
        assert staged.names() == ["cpol-p", "cpol-p-binding"]
        told = status_of(staged, CLUSTER_POLICIES)["validatingadmissionpolicy"]
        assert told == {"generated": True, "message": ""}
        judged = staged.made.context.snapshot.judged["p"]
        names = [one.rule.name for one in judged.rules]
        assert "r" not in names
        assert "autogen-r" in names

    play(story, cluster_policy("p", rule))


def reported(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": VALIDATING,
        "metadata": {"name": name, "labels": labels},
        "spec": {"matchConstraints": {"resourceRules": [RULE]}, "validations": CHECK},
    }


BINDING = {
    "apiVersion": f"{GROUP}/v1",
    "kind": f"{VALIDATING}Binding",
    "metadata": {"name": "b"},
    "spec": {"policyName": "asked", "validationActions": ["Audit"]},
}


def start_reports(made: Scene) -> None:
    natives = ReportedNatives(made.context, {VALIDATING})
    made.start(natives.run())
    made.start(BackgroundScan(made.context, natives).run())
    made.start(ReportSweep(made.context, natives).run())


@pytest.mark.parametrize("kind", [VAP, VAPB], ids=lambda one: one.kind)
def test_reports_about_native_policies_stay_when_another_replica_leads(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        asked = reported("asked", **{"reports.kyverno.io/enabled": "true"})
        async with scene(asked, BINDING, config_map("a"), kinds=KINDS) as made:
            start_reports(made)
            await made.rest(5)
            before = made.stored(POLICY_REPORTS)
            assert [row["result"] for one in before for row in one["results"]] == ["fail"]
            for task in made.tasks:
                task.cancel()
            made.tasks.clear()
            await made.rest()
            seen = hold_lists_of(made, kind, monkeypatch)
            start_reports(made)
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == before
            seen.set()
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == before

    asyncio.run(go())


def test_native_policies_are_reported_about_under_their_own_source_with_their_binding() -> None:
    async def go() -> None:
        objects = (
            reported("asked", **{"reports.kyverno.io/enabled": "true"}),
            reported("silent"),
            BINDING,
            config_map("a"),
            config_map("c", team="x"),
        )
        async with scene(*objects, kinds=KINDS) as made:
            start_reports(made)
            await made.rest(5)
            rows = [row for one in made.stored(POLICY_REPORTS) for row in one["results"]]
            assert [(row["policy"], row["rule"], row["result"]) for row in rows] == [
                ("asked", "asked", "fail"),
                ("asked", "asked", "pass"),
            ]
            assert {row["source"] for row in rows} == {VALIDATING}
            assert rows[0]["message"] == "labels are needed"
            assert rows[0]["properties"] == {"binding": "b", "process": "background scan"}
            events = [one for one in made.events if one["regarding" if "regarding" in one else "involvedObject"]["kind"] == VALIDATING]  # fmt: skip
            assert [one["reason"] for one in events] == ["PolicyViolation"]
            made.client.take(VAP, "asked", "")
            await made.rest(5)
            assert made.stored(POLICY_REPORTS) == []

    asyncio.run(go())


def test_a_rule_for_every_kind_is_judged_natively_for_ephemeral_containers_too():
    async def story(staged: Staged) -> None:
        [made] = staged.made.stored(VAP)
        [rule] = made["spec"]["matchConstraints"]["resourceRules"]
        assert rule["resources"] == ["*", "pods/ephemeralcontainers"]
        assert (rule["apiGroups"], rule["apiVersions"]) == (["*"], ["*"])

    cel = {"generate": True, "expressions": [{"expression": "has(object.metadata.labels)"}]}
    rule = {
        "name": "r",
        "match": matching("*"),
        "validate": {"failureAction": "Enforce", "cel": cel},
    }
    play(story, cluster_policy("p", rule))
