"""Objects of the cluster as values: Events, reports, UpdateRequests, status, bindings, exceptions; texts are upstream's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from controllers.kube.kinds import CLASSIC_REPORTS, object_reference
from controllers.manifests.crds import others
from controllers.runtime.cluster_cache import Bindings
from controllers.store import events, reports, update_requests
from controllers.store.namespaces import Namespaces
from controllers.store.policies import (
    ExceptionRules,
    content_hash,
    exception_key,
    match_conditions,
    policy_key,
    read_exception,
    read_policy,
    same_status,
    status_of,
    timeout_of,
)
from engine.model import Policy, Review, RuleResult, RuleType, Status, UserInfo, review_of

AT = datetime(2026, 11, 21, 10, 18, 2, tzinfo=UTC)


def policy(name: str = "p", *, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, namespace: str = "", **spec: Any) -> Policy:  # fmt: skip
    rule = {"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"message": "m", "pattern": {"spec": {"a": "?*"}}}}  # fmt: skip
    metadata: dict[str, Any] = {"name": name, "uid": "u-p", "annotations": annotations or {}, "labels": labels or {}}  # fmt: skip
    if namespace:
        metadata["namespace"] = namespace
    kind = "Policy" if namespace else "ClusterPolicy"
    return read_policy({"apiVersion": "kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": {"rules": [rule], **spec}})  # fmt: skip


def pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", **metadata}}  # fmt: skip


def result(status: Status = Status.FAIL, message: str = "no", *, key: str = "p", type_: RuleType = RuleType.VALIDATION, **fields: Any) -> RuleResult:  # fmt: skip
    return RuleResult(key, "r", type_, status, message, **fields)


def notes(results: list[RuleResult], review: Review | None = None, *, blocked: bool = False, successes: bool = False, exceptions: Any = ()) -> list[events.Note]:  # fmt: skip
    known = {one.key: one for one in exceptions}
    return list(events.notes_of(review or review_of(pod()), results, {"p": policy()}, known, blocked=blocked, successes=successes))  # fmt: skip


def test_a_blocked_object_makes_an_event_on_the_policy_only() -> None:
    (note,) = notes([result()], blocked=True)

    assert note.message == "Pod shop/web: [r] fail (blocked); no"
    assert (note.about["kind"], note.reason, note.action, note.type) == ("ClusterPolicy", "PolicyViolation", "Resource Blocked", "Warning")  # fmt: skip


def test_an_audited_object_makes_events_on_policy_and_object() -> None:
    on_policy, on_object = notes([result()])

    assert on_policy.message == "Pod shop/web: [r] fail; no"
    assert on_object.message == "policy p/r fail: no"
    assert on_object.about == {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "shop", "uid": "u-1"}  # fmt: skip


def test_errors_have_a_reason_of_their_own() -> None:
    assert {note.reason for note in notes([result(Status.ERROR)])} == {"PolicyError"}


def test_passes_are_told_when_asked_for_and_only_whole_ones() -> None:
    assert notes([result(Status.PASS)]) == []
    (told,) = notes([result(Status.PASS)], successes=True)
    assert (told.message, told.reason, told.type) == ("Pod shop/web: pass", "PolicyApplied", "Normal")  # fmt: skip
    (told,) = notes([result(Status.PASS, type_=RuleType.MUTATION)], successes=True)
    assert told.message == "Pod shop/web is successfully mutated"
    assert all(note.reason == "PolicyViolation" for note in notes([result(Status.PASS), result()], successes=True))  # fmt: skip
    assert notes([result(Status.SKIP)], successes=True) == []


def exception(**annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": "x", "namespace": "shop", "annotations": annotations},
        "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}},
    }  # fmt: skip


def test_an_exception_that_was_used_is_told_on_both() -> None:
    skipped = result(Status.SKIP, exceptions=("shop/x",))
    on_policy, on_exception = notes([skipped], exceptions=[read_exception(exception())])

    assert on_policy.message == "resource Pod/shop/web was skipped from rule r due to policy exceptions shop/x"  # fmt: skip
    assert on_exception.message == "resource Pod/shop/web was skipped from policy rule p/r"
    assert on_exception.about["kind"] == "PolicyException"


def test_an_object_without_a_name_gets_no_event() -> None:
    review = review_of(pod(name=None, generateName="web-"))

    assert [note.about["kind"] for note in notes([result()], review)] == ["ClusterPolicy"]


def test_events_of_the_background_say_what_was_done() -> None:
    made = list(events.made(policy(), "r", [pod()]))
    assert made[0].message == "resource generated"
    assert made[1].message == "Created Pod web as a result of applying policy p/r"
    assert events.changed(policy()).message == "resource mutated"
    assert events.failed({}, "p", "r", "boom", "x").message == "policy p/r error: boom"
    assert events.cleaned_up({}, pod()).message == "successfully cleaned up the target resource Pod/shop/web"  # fmt: skip
    assert events.cleaned_up({}, pod(), "no").message == "failed to clean up the target resource Pod/shop/web: no"  # fmt: skip


def test_rows_carry_what_dashboards_read() -> None:
    scored = policy(annotations={"policies.kyverno.io/category": "c", "policies.kyverno.io/severity": "high"})  # fmt: skip
    (row,) = reports.rows_of([result(exceptions=("shop/x",))], {"p": scored}, AT)

    assert row == {
        "source": "kyverno",
        "policy": "p",
        "rule": "r",
        "message": "no",
        "result": "fail",
        "scored": True,
        "timestamp": {"seconds": int(AT.timestamp()), "nanos": 0},
        "category": "c",
        "severity": "high",
        "properties": {"process": "background scan", "exceptions": "x"},
    }


@pytest.mark.parametrize(
    ("written", "said"),
    [("critical", "critical"), ("info", "info"), ("High", "high"), ("urgent", ""), ("", "")],
)
def test_every_severity_of_a_policy_makes_a_row_that_the_server_takes(
    written: str, said: str
) -> None:
    given = policy(annotations={"policies.kyverno.io/severity": written})
    (row,) = reports.rows_of([result()], {"p": given}, AT)

    assert row.get("severity", "") == said
    severity = others.REPORT["results"].items.fields["severity"]
    assert said in (*severity.enum, "")


def test_a_policy_that_is_not_scored_only_warns() -> None:
    lenient = policy(annotations={"policies.kyverno.io/scored": "false"})

    assert [row["result"] for row in reports.rows_of([result(), result(Status.PASS)], {"p": lenient}, AT)] == ["warn", "pass"]  # fmt: skip


def test_what_is_not_reported_has_no_row() -> None:
    hidden = policy(labels={"reports.kyverno.io/disabled": ""})

    assert reports.rows_of([result()], {"p": hidden}, AT) == []
    assert reports.rows_of([result(key="gone")], {"p": policy()}, AT) == []
    assert reports.rows_of([result(message=reports.NOTHING_TO_CHANGE, type_=RuleType.MUTATION)], {"p": policy()}, AT) == []  # fmt: skip


def test_a_report_is_named_after_its_object_and_goes_with_it() -> None:
    rows = reports.rows_of([result()], {"p": policy()}, AT)
    report = reports.report_of(pod(), rows, CLASSIC_REPORTS)

    assert (report["kind"], report["metadata"]["name"], report["metadata"]["namespace"]) == ("PolicyReport", "u-1", "shop")  # fmt: skip
    assert report["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u-1"}]  # fmt: skip
    assert report["summary"] == {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0}
    wide = reports.report_of(pod(namespace=None), rows, CLASSIC_REPORTS)
    assert wide["kind"] == "ClusterPolicyReport"
    assert "namespace" not in wide["metadata"]


def test_a_report_never_outgrows_its_bounds() -> None:
    rows = [{"policy": str(number), "rule": "r", "result": "fail"} for number in range(reports.MOST_ROWS + 3)]  # fmt: skip
    report = reports.report_of(pod(), rows, CLASSIC_REPORTS)

    assert len(report["results"]) == reports.MOST_ROWS
    assert report["metadata"]["annotations"] == {reports.TRUNCATED: "3 results are left out"}


def test_work_is_written_down_so_that_the_same_work_is_one_request_and_reads_back() -> None:
    request = {"uid": "r-1", "operation": "CREATE", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": pod(), "namespace": "shop"}  # fmt: skip
    user = UserInfo(username="jane", groups=("dev",), roles=("shop:dev",))
    trigger = object_reference(pod())
    update = update_requests.UpdateRequest("generate", "p", (update_requests.RuleWork("r", trigger),), request, user)  # fmt: skip
    written = update_requests.document(update, "kyverno")

    assert written["metadata"]["name"] == update_requests.document(update, "kyverno")["metadata"]["name"]  # fmt: skip
    assert written["metadata"]["labels"]["generate.kyverno.io/policy-name"] == "p"
    back = update_requests.read_update_request(written)
    assert (back.type, back.policy, back.work, back.user) == ("generate", "p", update.work, user)
    review = update_requests.review_of_update(back, None, {"a": "b"})
    assert (review.kind, review.operation, review.name, review.namespace_labels) == ("Pod", "CREATE", "web", {"a": "b"})  # fmt: skip


def test_a_request_for_a_subresource_is_about_the_kind_that_rules_name() -> None:
    request = {
        "uid": "u",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Binding"},
        "subResource": "binding",
        "name": "p",
        "namespace": "n",
        "object": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}},
    }
    trigger = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "n"}
    work = (update_requests.RuleWork("r", trigger),)
    update = update_requests.UpdateRequest(update_requests.MUTATE, "p", work, request)

    review = update_requests.review_of_update(update, None, {})

    assert (review.group, review.version, review.kind) == ("", "v1", "Pod")
    assert review.subresource == "binding"
    assert review.object is not None
    assert review.object["kind"] == "Binding"


def test_a_request_too_large_to_store_keeps_who_what_and_where() -> None:
    large = {**pod(), "spec": {"x": "y" * update_requests.LARGEST}}
    request = {"uid": "r-1", "operation": "CREATE", "object": large}
    update = update_requests.UpdateRequest("mutate", "p", (update_requests.RuleWork("r"),), request)
    kept = update_requests.document(update, "kyverno")["spec"]["context"]["admissionRequestInfo"]

    assert kept["admissionRequest"] == {"uid": "r-1", "operation": "CREATE"}


@pytest.mark.parametrize("stored", [{}, {"spec": None}, {"spec": {"context": 7, "ruleContext": [None]}}, {"metadata": {}, "status": "x"}])  # fmt: skip
def test_requests_written_by_others_do_no_harm(stored: dict[str, Any]) -> None:
    update_requests.read_update_request(stored)


def test_the_status_of_a_policy_tells_rules_and_readiness() -> None:
    ready = status_of(policy(), "", "now")
    failed = status_of(policy(), "boom", "now")

    assert ready["conditions"][0]["message"] == "Ready"
    assert ready["rulecount"] == {"validate": 1, "generate": 0, "mutate": 0, "verifyimages": 0}
    assert [rule["name"] for rule in ready["autogen"]["rules"]] == [
        "autogen-r",
        "autogen-cronjob-r",
    ]
    assert all(rule["skipBackgroundRequests"] is True for rule in ready["autogen"]["rules"])
    assert failed["conditions"][0] == {"type": "Ready", "status": "False", "reason": "Failed", "message": "boom", "lastTransitionTime": "now"}  # fmt: skip
    assert same_status(ready, status_of(policy(), "", "later"))
    assert not same_status(ready, failed)


def test_policies_are_known_by_content_and_key() -> None:
    plain = policy().raw
    touched = {**plain, "status": {"ready": True}, "metadata": {**plain["metadata"], "resourceVersion": "9", "generation": 3}}  # fmt: skip

    assert content_hash(plain) == content_hash(touched)
    assert content_hash(plain) != content_hash(policy(background=False).raw)
    assert policy_key(policy(namespace="shop").raw) == "shop/p"
    assert policy_key(plain) == "p"


def test_webhook_settings_of_a_policy() -> None:
    asked = policy(webhookConfiguration={"timeoutSeconds": 7, "matchConditions": [{"name": "a", "expression": "true"}]})  # fmt: skip

    assert timeout_of(asked) == 7
    assert timeout_of(policy(webhookTimeoutSeconds=3)) == 3
    assert timeout_of(policy()) is None
    assert [one["name"] for one in match_conditions(asked)] == ["a"]
    assert match_conditions(policy(webhookConfiguration=None)) == ()


def binding(name: str, role: str, *subjects: dict[str, str], namespace: str = "", kind: str = "ClusterRole") -> dict[str, Any]:  # fmt: skip
    return {"metadata": {"name": name, "namespace": namespace}, "roleRef": {"kind": kind, "name": role}, "subjects": list(subjects)}  # fmt: skip


def test_roles_reach_users_groups_and_service_accounts() -> None:
    found = Bindings()
    found.put(binding("a", "edit", {"kind": "User", "name": "jane"}, {"kind": "Group", "name": "dev"}))  # fmt: skip
    found.put(binding("b", "own", {"kind": "ServiceAccount", "name": "bot"}, namespace="shop", kind="Role"))  # fmt: skip

    assert found.roles("jane", ()) == ((), ("edit",))
    assert found.roles("x", ("dev",)) == ((), ("edit",))
    assert found.roles("system:serviceaccount:shop:bot", ()) == (("shop:own",), ())
    assert found.roles("dev", ("jane",)) == ((), ())


def test_a_changed_binding_gives_what_it_says_now_and_no_more() -> None:
    found = Bindings()
    found.put(binding("a", "edit", {"kind": "User", "name": "jane"}))
    found.put(binding("a", "edit", {"kind": "User", "name": "joe"}))
    assert found.roles("jane", ()) == ((), ())
    assert found.roles("joe", ()) == ((), ("edit",))
    found.remove(binding("a", "edit"))
    assert found.roles("joe", ()) == ((), ())
    found.remove(binding("never", "x"))


def test_exceptions_count_by_flag_and_namespace() -> None:
    assert ExceptionRules().counts("any")
    assert ExceptionRules(namespace="a").warning("b") == "PolicyException resource namespace must match the defined namespace."  # fmt: skip
    assert ExceptionRules(namespace="").warning("b") == "The exceptionNamespace flag is not set"
    assert ExceptionRules(enabled=False).warning("b").startswith("PolicyException resources would not be processed")  # fmt: skip
    assert exception_key(exception()) == "shop/x"


def test_a_namespace_that_is_not_known_is_not_one_without_labels() -> None:
    found = Namespaces()
    found.put({"metadata": {"name": "bare"}})

    assert found.labels("bare") == {}
    assert found.labels("unknown") is None


def test_the_uid_of_a_namespace_is_the_one_that_was_seen_last() -> None:
    found = Namespaces()
    assert found.uid("shop") == ""
    for uid in ("1", "2"):
        found.put({"metadata": {"name": "shop", "uid": uid}})
        assert found.uid("shop") == uid
    found.remove({"metadata": {"name": "shop"}})
    assert (found.uid("shop"), found.labels("shop")) == ("", None)
