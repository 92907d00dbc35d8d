"""What the audit trail hears of from webhooks: who deletes, changes and holds back what; never a refusal, nothing on dry runs."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery, Unreachable
from controllers.kube.accounts import Accounts, Job, account_user
from controllers.kube.kinds import AUDIT_NOTES
from controllers.store.audit import entry_of, is_ours, note_key
from controllers.webhook.audit_events import NOT_NOTED, AuditRecorder
from controllers.webhook.caller import Caller, current_caller
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

from .staging import NOW, body

KEY = b"k" * 32
OWN = {job: account_user("kyverno", job) for job in Job}
EVE = {"username": "eve", "groups": ["dev"]}


def obj(kind: str, version: str = "kpolicy.io/v1alpha1", **fields: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7"}
    made = {
        "apiVersion": version,
        "kind": kind,
        "metadata": {**metadata, **fields.pop("metadata", {})},
    }
    return {**made, **fields}


PLURALS = {"Grant": "grants", "GrantPolicy": "grantpolicies", "PolicyException": "policyexceptions", "CodeUse": "codeuses", "OneTimeCode": "onetimecodes", "AuditSegment": "auditsegments", "CleanupPolicy": "cleanuppolicies", "Pod": "pods", "ClusterPolicy": "clusterpolicies", "ValidatingPolicy": "validatingpolicies"}  # fmt: skip
GRANT = obj("Grant", spec={"policy": "team", "rules": ["r"]}, status={"state": "active"})
EXCEPTION = obj("PolicyException", "kyverno.io/v2", spec={"exceptions": [{"policyName": "team", "ruleNames": ["r", "s"]}]})  # fmt: skip


@pytest.fixture(autouse=True)
def _by_certificate():
    token = current_caller.set(Caller.CERTIFICATE)
    yield
    current_caller.reset(token)


class Desk:
    def __init__(self) -> None:
        self.client = FakeClient(clock=ManualClock(NOW))
        self.audit_recorder = AuditRecorder(
            self.client, self.client.clock, "kyverno", KEY, Accounts.one(self.client).jobs_of
        )

    def ask(self, operation: str, new: Any, old: Any = None, user: Any = EVE, **fields: Any) -> Any:
        shown = new or old
        group, _, version = shown["apiVersion"].rpartition("/")
        resource = {"group": group, "version": version, "resource": PLURALS[shown["kind"]]}
        sent = body(new, oldObject=old, operation=operation, userInfo=user, resource=resource, **fields)  # fmt: skip
        answer = orjson.loads(asyncio.run(self.audit_recorder.review("", sent, 5.0)))["response"]
        assert answer["allowed"] is True
        return answer

    def told(self) -> list[tuple[str, str, str, str]]:
        specs = [one["spec"] for one in self.client.stored(AUDIT_NOTES)]
        return [(one["verb"], one["actor"], one["object"]["kind"], one["reason"]) for one in specs]


@pytest.mark.parametrize(
    ("gone", "reason"),
    [(GRANT, "it was active"), (obj("GrantPolicy"), ""), (EXCEPTION, ""), (obj("CodeUse", status={"state": "Confirmed"}), "it was Confirmed"), (obj("OneTimeCode"), ""), (obj("AuditSegment"), "")],
)  # fmt: skip
def test_a_deletion_is_noted_with_who_did_it(gone: Any, reason: str):
    validator = Desk()
    validator.ask("DELETE", None, gone)
    assert validator.told() == [("delete", "eve", gone["kind"], reason)]


def test_a_request_that_is_run_again_leaves_one_note():
    validator = Desk()
    for _ in range(3):
        answer = validator.ask("DELETE", None, GRANT)
        assert "warnings" not in answer
    assert len(validator.told()) == 1


def test_a_deletion_that_is_asked_for_again_later_leaves_another_note():
    validator = Desk()
    validator.ask("DELETE", None, GRANT)
    asyncio.run(validator.client.clock.advance(20))
    validator.ask("DELETE", None, GRANT)
    first, second = (entry_of(one, "failed") for one in validator.client.stored(AUDIT_NOTES))
    assert first["id"] != second["id"]
    done, same = (entry_of(one, "ok") for one in validator.client.stored(AUDIT_NOTES))
    assert done["id"] == same["id"] != first["id"]


def test_who_asks_again_for_what_is_being_deleted_has_not_deleted_it():
    validator = Desk()
    going = {"deletionTimestamp": "2026-11-21T10:00:00Z", "finalizers": ["example.org/hold"]}
    validator.ask("DELETE", None, {**GRANT, "metadata": {**GRANT["metadata"], **going}})
    assert validator.told() == []


def test_a_dry_run_leaves_no_note():
    validator = Desk()
    validator.ask("DELETE", None, GRANT, dryRun=True)
    assert validator.told() == []


@pytest.mark.parametrize(
    ("new", "old", "verb"),
    [
        (EXCEPTION, None, "except"),
        ({**EXCEPTION, "spec": {}}, EXCEPTION, "change"),
        (obj("PolicyException", "policies.kyverno.io/v1"), None, "except"),
        (obj("GrantPolicy", spec={"maxDuration": "8h"}), None, "create"),
        (obj("GrantPolicy", spec={"maxDuration": "8d"}), obj("GrantPolicy", spec={"maxDuration": "8h"}), "change"),
        (obj("CleanupPolicy", "kyverno.io/v2", metadata={"annotations": {"kpolicy.io/cleanup-pause": "x eve: audit"}}), obj("CleanupPolicy", "kyverno.io/v2"), "pause"),
        (obj("Pod", "v1", metadata={"annotations": {"kpolicy.io/cleanup-after": "2027-01-01T00:00:00Z eve: later"}}), obj("Pod", "v1"), "postpone"),
        (obj("Pod", "v1", metadata={"annotations": {"kpolicy.io/cleanup-skip": "x"}}), obj("Pod", "v1"), "skip"),
        (obj("Pod", "v1"), obj("Pod", "v1", metadata={"annotations": {"kpolicy.io/cleanup-skip": "x"}}), "resume"),
    ],
)  # fmt: skip
def test_changes_of_who_may_do_what_and_of_clean_ups_are_noted(new: Any, old: Any, verb: str):
    validator = Desk()
    validator.ask("UPDATE" if old else "CREATE", new, old)
    [told] = validator.told()
    assert told[:3] == (verb, "eve", new["kind"])


def test_the_reason_of_a_postponement_is_in_the_note():
    validator = Desk()
    value = "2027-01-01T00:00:00Z eve: the migration runs"
    validator.ask("UPDATE", obj("Pod", "v1", metadata={"annotations": {"kpolicy.io/cleanup-after": value}}), obj("Pod", "v1"))  # fmt: skip
    assert validator.told()[0][3] == value


def test_a_run_by_hand_and_the_reason_of_a_resumption_are_in_the_note():
    validator = Desk()
    plain = obj("CleanupPolicy", "kyverno.io/v2")
    ran = {"kpolicy.io/cleanup-run": "2026-11-21T10:18:00Z eve: quota is full"}
    validator.ask(
        "UPDATE", obj("CleanupPolicy", "kyverno.io/v2", metadata={"annotations": ran}), plain
    )
    paused = obj("CleanupPolicy", "kyverno.io/v2", metadata={"annotations": {"kpolicy.io/cleanup-pause": "true eve: wait"}})  # fmt: skip
    resumed = obj("CleanupPolicy", "kyverno.io/v2", metadata={"annotations": {"kpolicy.io/cleanup-reason": "done"}, "resourceVersion": "8"})  # fmt: skip
    validator.ask("UPDATE", resumed, paused)
    assert sorted((told[0], told[3]) for told in validator.told()) == [("resume", "done"), ("run", "2026-11-21T10:18:00Z eve: quota is full")]  # fmt: skip


def test_the_same_change_made_again_later_is_another_note():
    validator = Desk()
    for version in ("7", "9"):
        old = obj("GrantPolicy", spec={"maxDuration": "8h"}, metadata={"resourceVersion": version})
        validator.ask("UPDATE", obj("GrantPolicy", spec={"maxDuration": "8d"}), old)
    assert len(validator.told()) == 2


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (GRANT, None),
        ({**EXCEPTION, "status": {"a": 1}}, EXCEPTION),
        (obj("Pod", "v1"), None),
        (obj("Pod", "v1"), obj("Pod", "v1")),
    ],
)
def test_what_other_records_tell_or_what_changes_nothing_is_not_noted(new: Any, old: Any):
    validator = Desk()
    validator.ask("UPDATE" if old else "CREATE", new, old)
    assert validator.told() == []


def test_a_pod_that_is_deleted_is_nobody_s_business_here():
    validator = Desk()
    validator.ask("DELETE", None, obj("Pod", "v1"))
    assert validator.told() == []


def _ending(text: str, **more: str) -> dict[str, Any]:
    return {**EXCEPTION, "metadata": {**EXCEPTION["metadata"], "annotations": {"kpolicy.io/expires-at": text, **more}}}  # fmt: skip


GRANTED = {"kpolicy.io/grant": "shop/web"}
OVER, LATER = "2026-11-21T10:17:59Z", "2026-11-21T10:18:01Z"


@pytest.mark.parametrize(
    ("job", "gone", "verb"),
    [
        (Job.CLEANUP, _ending(OVER), "expired"),
        (Job.CLEANUP, _ending(LATER), "delete"),
        (Job.CLEANUP, EXCEPTION, "delete"),
        (Job.CLEANUP, _ending(OVER, **GRANTED), ""),
        (Job.CLEANUP, _ending(LATER, **GRANTED), ""),
        (Job.CLEANUP, GRANT, "delete"),
        (Job.GRANTS, _ending(LATER, **GRANTED), ""),
        (Job.GRANTS, _ending(LATER), "delete"),
        (Job.GRANTS, GRANT, ""),
        (Job.GRANTS, obj("CodeUse"), ""),
        (Job.BACKGROUND, _ending(OVER, **GRANTED), "delete"),
        (Job.BACKGROUND, GRANT, "delete"),
        (Job.ADMISSION, EXCEPTION, "delete"),
    ],
)
def test_a_deletion_by_an_account_of_ours_is_noted_unless_records_of_that_account_tell_of_it(job: Job, gone: Any, verb: str):  # fmt: skip
    validator = Desk()
    validator.ask("DELETE", None, gone, user={"username": OWN[job]})
    assert validator.told() == (
        [(verb, OWN[job], gone["kind"], validator.told()[0][3])] if verb else []
    )


def test_the_end_of_an_exception_by_its_label_is_one():
    validator = Desk()
    metadata = {**EXCEPTION["metadata"], "labels": {"cleanup.kyverno.io/ttl": "1h"}}
    for uid, created in (("a", "2026-11-21T09:00:00Z"), ("b", "2026-11-21T10:00:00Z")):
        gone = {**EXCEPTION, "metadata": {**metadata, "uid": uid, "creationTimestamp": created}}
        validator.ask("DELETE", None, gone, user={"username": OWN[Job.CLEANUP]})
    assert sorted(told[0] for told in validator.told()) == ["delete", "expired"]


@pytest.mark.parametrize("job", list(Job))
@pytest.mark.parametrize("old", [None, {**EXCEPTION, "spec": {}}])
def test_an_exception_that_an_account_of_ours_writes_is_noted(job: Job, old: Any):
    validator = Desk()
    validator.ask("UPDATE" if old else "CREATE", EXCEPTION, old, user={"username": OWN[job]})
    [told] = validator.told()
    assert told[1] == OWN[job]


@pytest.mark.parametrize("job", list(Job))
def test_only_the_grants_account_s_own_exceptions_are_told_by_their_grants(job: Job):
    validator = Desk()
    validator.ask("CREATE", _ending(LATER, **GRANTED), user={"username": OWN[job]})
    assert len(validator.told()) == (job is not Job.GRANTS)


def test_when_a_note_cannot_be_written_the_request_is_let_through_with_a_warning():
    validator = Desk()
    validator.client.fail("create", Unreachable("gone"))
    assert validator.ask("DELETE", None, GRANT)["warnings"] == [NOT_NOTED]


def test_a_note_is_signed_in_every_part():
    validator = Desk()
    validator.ask("DELETE", None, EXCEPTION)
    [note] = validator.client.stored(AUDIT_NOTES)
    key = note_key(KEY)
    assert is_ours(note, key)
    assert not is_ours(note, note_key(b"another"))
    for name, value in note["spec"].items():
        assert not is_ours({**note, "spec": {**note["spec"], name: [value, 1]}}, key), name
    assert not is_ours({**note, "metadata": {**note["metadata"], "name": "other"}}, key)
    assert entry_of(note, "ok")["policy"] == "team/r,s"


class UnprovenDesk(Desk):
    """A validator on a cluster that holds some objects, asked by somebody who proved nothing."""

    def __init__(self, *objects: Any) -> None:
        super().__init__()
        for one in objects:
            self.client.put(one)
        discovery = Discovery(self.client)
        asyncio.run(discovery.refresh())
        self.audit_recorder = AuditRecorder(
            self.client,
            self.client.clock,
            "kyverno",
            KEY,
            Accounts.one(self.client).jobs_of,
            discovery,
        )

    def ask(self, *given: Any, **named: Any) -> Any:
        token = current_caller.set(Caller.PATH)
        try:
            return super().ask(*given, **named)
        finally:
            current_caller.reset(token)

    def shown(self) -> list[tuple[str, bool, str]]:
        specs = [one["spec"] for one in self.client.stored(AUDIT_NOTES)]
        return [(one["verb"], one["unproven"], one["shown"]["how"]) for one in specs]


WIDER = {**EXCEPTION, "spec": {"exceptions": []}}


def test_what_nobody_proved_is_noted_only_as_far_as_the_cluster_is_as_it_says():
    validator = UnprovenDesk(EXCEPTION)
    validator.ask("DELETE", None, GRANT)
    validator.ask("UPDATE", EXCEPTION, WIDER)
    validator.ask("UPDATE", EXCEPTION, EXCEPTION)
    validator.ask("CREATE", EXCEPTION)
    other = {**EXCEPTION, "metadata": {**EXCEPTION["metadata"], "uid": "other"}}
    validator.ask("DELETE", None, other)
    assert validator.told() == []
    validator.ask("UPDATE", WIDER, EXCEPTION)
    validator.ask("DELETE", None, EXCEPTION)
    validator.ask("CREATE", other)
    assert sorted(validator.shown()) == [("change", True, "changed"), ("delete", True, "gone"), ("except", True, "made")]  # fmt: skip


def test_the_reason_of_an_unproven_deletion_is_what_the_cluster_shows():
    validator = UnprovenDesk({**GRANT, "status": {"state": "revoked"}})
    validator.ask("DELETE", None, GRANT)
    assert validator.told() == [("delete", "eve", "Grant", "it was revoked")]


def test_a_kind_that_the_server_does_not_have_is_looked_for_nowhere():
    validator = UnprovenDesk()
    before = len(validator.client.calls)
    strange = obj("PolicyException", "kyverno.io/v2", metadata={"name": "../../secrets"})
    validator.ask("DELETE", None, {**strange, "kind": "PolicyException"}, kind={"group": "x", "version": "y", "kind": "../z"})  # fmt: skip
    assert [call.verb for call in validator.client.calls[before:]] == []


def cluster_policy(action: str = "Enforce", rule: str = "check-team", **fields: Any) -> dict[str, Any]:  # fmt: skip
    spec = {"rules": [{"name": rule, "validate": {"failureAction": action, "message": "m"}}], **fields}  # fmt: skip
    return obj("ClusterPolicy", "kyverno.io/v1", spec=spec, metadata={"namespace": ""})


def test_a_policy_that_is_weakened_is_told_with_who_did_it_and_the_difference():
    validator = Desk()
    validator.ask("UPDATE", cluster_policy("Audit"), cluster_policy())
    [(verb, actor, kind, reason)] = validator.told()
    assert (verb, actor, kind) == ("change", "eve", "ClusterPolicy")
    assert reason == "spec.rules[check-team].validate.failureAction: Enforce → Audit"


def test_a_rule_that_is_taken_away_and_one_that_comes_are_told():
    validator = Desk()
    validator.ask("UPDATE", cluster_policy(rule="none"), cluster_policy())
    [(_, _, _, reason)] = validator.told()
    assert "spec.rules[check-team].validate.failureAction: removed Enforce" in reason
    assert "spec.rules[none].name: added none" in reason


@pytest.mark.parametrize("kind", [("ClusterPolicy", "kyverno.io/v1"), ("ValidatingPolicy", "policies.kyverno.io/v1"), ("CleanupPolicy", "kyverno.io/v2")])  # fmt: skip
def test_policies_of_every_kind_are_told_when_they_come_and_go(kind: tuple[str, str]):
    validator, policy = Desk(), obj(*kind, spec={"a": 1})
    validator.ask("CREATE", policy)
    validator.ask("DELETE", None, policy)
    assert sorted(verb for verb, *_ in validator.told()) == ["create", "delete"]


def test_a_change_of_the_status_or_of_what_kubectl_keeps_is_no_change_of_a_policy():
    validator = Desk()
    validator.ask("UPDATE", {**cluster_policy(), "status": {"ready": True}}, cluster_policy())
    assert validator.told() == []


def test_what_a_rule_holds_of_secrets_is_not_repeated():
    old = cluster_policy(generate={"data": {"stringData": {"password": "hunter1"}}})
    new = cluster_policy(generate={"data": {"stringData": {"password": "hunter2"}}})
    validator = Desk()
    validator.ask("UPDATE", new, old)
    [(_, _, _, reason)] = validator.told()
    assert reason == "spec.generate.data.stringData.password: changed"


def test_many_differences_are_counted():
    old, new = (cluster_policy(**{f"x{number}": value for number in range(40)}) for value in (1, 2))
    validator = Desk()
    validator.ask("UPDATE", new, old)
    [(_, _, _, reason)] = validator.told()
    assert reason.endswith("; and 28 more")
    assert len(reason) < 1024


def test_another_change_after_one_that_was_refused_is_told_too():
    validator = Desk()
    validator.ask("UPDATE", cluster_policy(failurePolicy="Ignore"), cluster_policy())
    validator.ask("UPDATE", cluster_policy("Audit"), cluster_policy())
    told = [reason for *_, reason in validator.told()]
    assert "spec.rules[check-team].validate.failureAction: Enforce → Audit" in told


@pytest.mark.parametrize("old", [None, cluster_policy()])
def test_a_hold_on_a_clean_up_hides_no_change_of_a_policy(old: Any):
    new = cluster_policy("Audit")
    new["metadata"]["annotations"] = {"kpolicy.io/cleanup-pause": "x"}
    validator = Desk()
    validator.ask("UPDATE" if old else "CREATE", new, old)
    [(verb, _, _, reason)] = validator.told()
    assert verb == ("change" if old else "create")
    assert not old or "failureAction: Enforce → Audit" in reason


def test_a_long_reason_or_a_long_path_hides_no_difference():
    old = cluster_policy(**{"a" * 2000: 1})
    new = cluster_policy("Audit", **{"a" * 2000: 2})
    new["metadata"]["annotations"] = {"kpolicy.io/reason": "why not " * 200}
    validator = Desk()
    validator.ask("UPDATE", new, old)
    [(_, _, _, reason)] = validator.told()
    assert "failureAction: Enforce → Audit" in reason
    assert len(reason) < 1024


def test_a_label_by_which_a_policy_is_reported_on_no_more_is_told():
    new = cluster_policy()
    new["metadata"]["labels"] = {"reports.kyverno.io/disabled": "true"}
    validator = Desk()
    validator.ask("UPDATE", new, cluster_policy())
    [(verb, _, _, reason)] = validator.told()
    assert verb == "change"
    assert "labels.reports.kyverno.io/disabled: added true" in reason
