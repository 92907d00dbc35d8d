"""Policies written in CEL in the loops: background scan, reports, Events, status, and exceptions that end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

from controllers.kube import Kind
from controllers.kube.kinds import CEL_EXCEPTIONS, CLUSTER_POLICY_REPORTS, POLICY_REPORTS
from controllers.loops.cleanup.exceptions import ExceptionSweep
from controllers.loops.policy_status import PolicyStatus
from controllers.loops.reports.scan import BackgroundScan
from controllers.loops.reports.sweeping import ReportSweep
from controllers.runtime.evaluating import evaluate_with
from controllers.runtime.figures import show_world
from controllers.runtime.process import Configured
from controllers.runtime.sink import Verdict
from controllers.store.policies import content_hash, policy_key
from engine.model import review_of
from tests.controllers.kube.fake import (
    NAMESPACED_VALIDATING_POLICIES,
    VALIDATING_POLICIES,
    FakeClient,
)

from .staging import (
    LISTED,
    NOW,
    Scene,
    cluster_policy,
    config_map,
    matching,
    namespace,
    request_of,
    scene,
)

KINDS = tuple(
    replace(kind, verbs=LISTED)
    for kind in (VALIDATING_POLICIES, NAMESPACED_VALIDATING_POLICIES, CEL_EXCEPTIONS)
)
ODD = Kind("example.org", "v1", "oxen", "Ox", verbs=LISTED)
LABELLED = "has(object.metadata.labels) && 'team' in object.metadata.labels"


def vpol(
    name: str = "team", resource: str = "configmaps", group: str = "", ns: str = "", labels: Any = None, **spec: Any
) -> dict[str, Any]:  # fmt: skip
    """Return a ValidatingPolicy, or with a namespace a NamespacedValidatingPolicy."""
    metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
    metadata["annotations"] = {"policies.kyverno.io/severity": "high"}
    if ns:
        metadata["namespace"] = ns
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedValidatingPolicy" if ns else "ValidatingPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": LABELLED, "message": "a team is needed"}],
            **spec,
        },
    }


def exception(name: str = "e", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": "ops"},
        "spec": {"policyRefs": [{"name": "team", "kind": "ValidatingPolicy"}], **spec},
    }


def play(story: Any, *objects: dict[str, Any], kinds: tuple[Kind, ...] = KINDS) -> None:
    """Run a test in a scene with scan and sweep."""

    async def go() -> None:
        async with scene(*objects, kinds=kinds) as made:
            made.start(BackgroundScan(made.context).run())
            made.start(ReportSweep(made.context).run())
            await made.rest(5)
            await story(made)

    asyncio.run(go())


def results(made: Scene, kind: Kind = POLICY_REPORTS) -> list[tuple[str, str]]:
    return [(row["policy"], row["result"]) for one in made.stored(kind) for row in one["results"]]


def test_the_scan_reports_under_the_source_of_upstream_and_without_a_rule():
    async def story(made: Scene) -> None:
        [report] = made.stored(POLICY_REPORTS)
        [row] = report["results"]
        assert {key: value for key, value in row.items() if key != "timestamp"} == {
            "source": "KyvernoValidatingPolicy",
            "policy": "team",
            "message": "a team is needed",
            "result": "fail",
            "scored": True,
            "severity": "high",
            "properties": {"cel.validationIndex": "0", "process": "background scan"},
        }
        assert report["summary"]["fail"] == 1

    play(story, vpol(), config_map("a"))


def test_a_failing_object_and_its_policy_get_one_event_each_and_nothing_is_written_twice():
    async def story(made: Scene) -> None:
        said = {event["involvedObject"]["kind"]: event["message"] for event in made.events}
        assert said == {
            "ConfigMap": "policy team fail: a team is needed",
            "ValidatingPolicy": "ConfigMap shop/a: fail; a team is needed",
        }
        assert [event["reason"] for event in made.events] == ["PolicyViolation"] * 2
        before = len(made.client.calls)
        await made.rest(1800)
        assert len(made.client.calls) == before

    play(story, vpol(), config_map("a"))


def test_a_namespaced_policy_judges_its_namespace_only():
    async def story(made: Scene) -> None:
        assert results(made) == [("shop/team", "fail")]

    play(story, vpol(ns="shop"), config_map("a"), config_map("b", "elsewhere"))


def test_objects_of_no_namespace_and_of_kinds_with_odd_plurals_are_judged():
    async def story(made: Scene) -> None:
        assert results(made, CLUSTER_POLICY_REPORTS) == [("names", "fail")]
        assert results(made) == [("oxen", "fail")]

    ox = {"apiVersion": "example.org/v1", "kind": "Ox", "metadata": {"name": "o", "namespace": "shop"}}  # fmt: skip
    policies = (vpol("names", "namespaces"), vpol("oxen", "oxen", "example.org"))
    play(story, *policies, namespace("dev"), ox, kinds=(*KINDS, ODD))


def test_policies_that_are_not_for_the_background_or_not_reported_leave_no_rows():
    async def story(made: Scene) -> None:
        assert results(made) == []

    quiet = {"reports.kyverno.io/disabled": ""}
    play(story, vpol(evaluation={"background": {"enabled": False}}), vpol("b", labels=quiet), config_map("a"))  # fmt: skip


def test_rows_go_with_their_policy_and_classic_ones_of_the_same_name_stay():
    rule = {"name": "r", "match": matching("ConfigMap"), "validate": {"message": "m", "pattern": {"kind": "?*"}}}  # fmt: skip

    async def story(made: Scene) -> None:
        assert results(made) == [("team", "fail"), ("team", "pass")]
        made.take(vpol())
        await made.rest(5)
        assert results(made) == [("team", "pass")]

    play(story, vpol(), cluster_policy("team", rule), config_map("a"))


def test_a_changed_policy_judges_again():
    async def story(made: Scene) -> None:
        assert results(made) == [("team", "fail")]
        made.put(vpol(validations=[{"expression": "true"}]))
        await made.rest(5)
        assert results(made) == [("team", "pass")]

    play(story, vpol(), config_map("a"))


def test_an_exception_turns_the_row_into_a_skip_until_it_ends_and_is_deleted():
    async def story(made: Scene) -> None:
        made.start(ExceptionSweep(made.context).run())
        [report] = made.stored(POLICY_REPORTS)
        assert results(made) == [("team", "skip")]
        assert report["results"][0]["properties"]["exceptions"] == "e"
        about = {event["involvedObject"]["kind"] for event in made.events}
        assert about == {"ValidatingPolicy", "PolicyException"}
        assert {one["involvedObject"]["apiVersion"] for one in made.events} == {
            "policies.kyverno.io/v1beta1"
        }
        await made.rest(30)
        assert len(made.stored(CEL_EXCEPTIONS)) == 1
        await made.rest(30)
        assert made.stored(CEL_EXCEPTIONS) == []
        made.cache.remove(CEL_EXCEPTIONS, exception())
        await made.rest(5)
        assert results(made) == [("team", "fail")]

    ends = (NOW + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    play(story, vpol(), exception(expiresAt=ends), config_map("a"))


def test_an_exception_whose_end_cannot_be_read_stays_for_people_to_see():
    async def story(made: Scene) -> None:
        made.start(ExceptionSweep(made.context).run())
        await made.rest(3600)
        assert len(made.stored(CEL_EXCEPTIONS)) == 1

    play(story, vpol(), exception(expiresAt="soon"))


def test_admission_writes_events_in_the_form_of_policies_without_rules():
    async def story(made: Scene) -> None:
        obj = config_map("b")
        review = replace(review_of(obj), request=request_of(obj))
        route = made.context.snapshot.routes["all"]
        inputs = made.context.inputs("x")
        found = await evaluate_with(made.context.resolver, route.blocking, review, inputs)
        verdict = Verdict(False, made.clock.now(), request_of(obj), is_proven=True)
        await made.sink.results(review, found.results, verdict)
        await made.rest(1)
        [event] = made.events
        assert event["involvedObject"]["kind"] == "ValidatingPolicy"
        assert event["message"] == "ConfigMap shop/b: fail (blocked); a team is needed"

    play(story, vpol())


def status_of(made: Scene, kind: Kind = VALIDATING_POLICIES, ns: str = "") -> dict[str, Any]:
    return made.stored(kind, "team", ns).get("status") or {}


def test_a_policy_is_ready_once_the_webhooks_ask_for_it_and_keeps_its_times():
    async def story(made: Scene) -> None:
        configured = Configured()
        made.start(PolicyStatus(made.context, configured).run())
        await made.rest(1)
        shown = status_of(made)["conditionStatus"]
        assert shown["ready"] is False
        stored = made.stored(VALIDATING_POLICIES, "team")
        configured.set({policy_key(stored): content_hash(stored)})
        await made.rest(60)
        shown = status_of(made)["conditionStatus"]
        assert (shown["ready"], shown["message"]) == (True, "")
        assert [(one["type"], one["status"]) for one in shown["conditions"]] == [
            ("WebhookConfigured", "True"),
            ("RBACPermissionsGranted", "True"),
        ]
        writes = [one for one in made.client.calls if one.verb == "patch"]
        await made.rest(600)
        assert writes == [one for one in made.client.calls if one.verb == "patch"]

    play(story, vpol())


def test_what_autogen_adds_is_shown_and_goes_with_the_pods():
    async def story(made: Scene) -> None:
        made.start(PolicyStatus(made.context).run())
        await made.rest(1)
        configs = status_of(made)["autogen"]["configs"]
        assert sorted(configs) == ["cronjobs", "defaults"]
        wanted = {"group": "apps", "version": "v1", "resource": "deployments", "kind": "Deployment"}
        assert wanted in configs["defaults"]["targets"]
        made.put({**vpol(), "status": status_of(made)})
        await made.rest(1)
        assert status_of(made)["autogen"] == {}

    play(story, vpol(resource="pods"))


def test_a_namespaced_policy_that_does_not_compile_says_why_it_is_not_ready():
    async def story(made: Scene) -> None:
        made.start(PolicyStatus(made.context).run())
        await made.rest(1)
        shown = status_of(made, NAMESPACED_VALIDATING_POLICIES, "shop")["conditionStatus"]
        assert shown["ready"] is False
        assert "`validations[0]` does not compile" in shown["message"]

    play(story, vpol(ns="shop", validations=[{"expression": "object.("}]))


def test_figures_show_policies_and_exceptions_of_cel():
    async def story(made: Scene) -> None:
        show_world(made.context.metrics, made.cache, made.clock)
        page = made.context.metrics.exposition().decode()
        assert 'kpolicy_exceptions_in_force{exception="ops/e"} 1' in page
        assert "kyverno_policy_rule_info_total{" in page

    play(story, vpol(), exception())


def conditions_of(made: Scene, **where: Any) -> dict[str, tuple[str, str, str]]:
    shown = status_of(made, **where)["conditionStatus"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in shown}


def refuse(made: Scene, *verbs: str) -> None:
    def decide(spec: Any) -> dict[str, Any]:
        return {"allowed": spec["resourceAttributes"]["verb"] not in verbs}

    made.client.reviews["SelfSubjectAccessReview"] = decide


def test_a_policy_says_which_rights_reports_about_it_lack_and_that_they_came():
    async def story(made: Scene) -> None:
        refuse(made, "list", "watch")
        made.start(PolicyStatus(made.context).run())
        await made.rest(1)
        missing = "list /v1, Resource=configmaps: ; watch /v1, Resource=configmaps: "
        told = f"Policy is not ready for reporting, missing permissions: {missing}."
        assert conditions_of(made)["RBACPermissionsGranted"] == ("False", "Failed", told)
        assert status_of(made)["conditionStatus"]["ready"] is False
        refuse(made)
        await made.rest(60)
        assert conditions_of(made)["RBACPermissionsGranted"] == ("True", "Succeeded", "Policy is ready for reporting.")  # fmt: skip
        assert status_of(made)["conditionStatus"]["ready"] is True

    play(story, vpol())


def test_an_exception_that_does_not_compile_is_told_by_the_policies_that_it_names():
    async def story(made: Scene) -> None:
        made.start(PolicyStatus(made.context).run())
        await made.rest(1)
        assert "ExceptionsCompiled" not in conditions_of(made)
        broken = exception(matchConditions=[{"name": "x", "expression": "object.("}])
        made.put(broken)
        await made.rest(1)
        status, reason, text = conditions_of(made)["ExceptionsCompiled"]
        assert (status, reason) == ("False", "Failed")
        assert text.startswith("exception ops/e covers nothing: ")
        assert status_of(made)["conditionStatus"]["ready"] is False
        assert made.stored(VALIDATING_POLICIES, "other")["status"]["conditionStatus"]["ready"]
        made.put(exception())
        await made.rest(1)
        assert status_of(made)["conditionStatus"]["ready"] is True

    play(story, vpol(), vpol("other"))


def test_rights_for_reports_are_asked_of_the_account_that_writes_them():
    async def story(made: Scene) -> None:
        other = FakeClient()
        other.reviews["SelfSubjectAccessReview"] = lambda _: {"allowed": False, "reason": "no such binding"}  # fmt: skip
        made.start(PolicyStatus(made.context, reporting=other).run())
        await made.rest(1)
        assert "get /v1, Resource=pods/status: no such binding; " in conditions_of(made)["RBACPermissionsGranted"][2]  # fmt: skip
        assert not [one for one in made.client.calls if one.verb == "review"]

    play(story, vpol(resource="pods/status"))


def test_a_policy_without_background_scans_needs_no_rights_for_reports():
    async def story(made: Scene) -> None:
        refuse(made, "get", "list", "watch")
        made.start(PolicyStatus(made.context).run())
        await made.rest(1)
        told = "Background scanning disabled; reporting permissions not required."
        assert conditions_of(made)["RBACPermissionsGranted"] == ("True", "Succeeded", told)

    play(story, vpol(evaluation={"background": {"enabled": False}}))


def test_a_policy_that_concerns_no_requests_says_nothing_of_webhooks():
    async def story(made: Scene) -> None:
        made.start(PolicyStatus(made.context, Configured()).run())
        await made.rest(1)
        assert list(conditions_of(made)) == ["RBACPermissionsGranted"]

    play(story, vpol(evaluation={"admission": {"enabled": False}}))


def test_a_policy_that_no_webhook_asks_for_says_so():
    async def story(made: Scene) -> None:
        made.start(PolicyStatus(made.context, Configured()).run())
        await made.rest(1)
        told = "Policy is not configured in the webhook."
        assert conditions_of(made)["WebhookConfigured"] == ("False", "Failed", told)

    play(story, vpol())
