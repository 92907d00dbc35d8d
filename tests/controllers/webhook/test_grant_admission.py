"""Admission of Grants: limits in the engine's words, names that are pinned to who asks, requests that stay as they are."""

from __future__ import annotations

import asyncio
from dataclasses import replace as varied
from datetime import timedelta
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery, Forbidden
from controllers.kube.kinds import PODS, Kind
from controllers.webhook.caller import Caller, current_caller
from controllers.webhook.grants import GrantValidator
from engine.codes.requests import CodeRequest, approval_of, request_id, request_key
from engine.grants.blocks import Block, block_id, block_key
from engine.record import replace
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

from .staging import NOW, body

POLICY = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "default"},
    "spec": {"approvers": [{"users": ["bob"]}], "maxDuration": "4h", "limits": {"openPerUser": 1}},
}  # fmt: skip
KEY = b"k" * 32
ADA = {"username": "ada", "groups": ["dev", "system:authenticated"]}
BOB = {"username": "bob", "groups": ["ops", "system:authenticated"]}


def grant(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": name, "namespace": "shop", "uid": f"u-{name}"},
        "spec": {"requester": "ada", "requesterGroups": ["dev"], "policy": "no-root", "rules": ["r"],
                 "target": {"kind": "Deployment", "name": "web"}, "duration": "2h", "reason": "image is rebuilt on Monday", **spec},
    }  # fmt: skip


def ask(obj: Any, old: Any = None, *, user: Any = ADA, client: FakeClient | None = None) -> Any:
    async def known(there: FakeClient) -> Discovery:
        discovery = Discovery(there)
        await discovery.refresh()
        return discovery

    async def go() -> Any:
        there = client or FakeClient(POLICY)
        validator = GrantValidator(there, ManualClock(NOW), KEY, await known(there))
        fields = {"operation": "UPDATE" if old else "CREATE", "oldObject": old, "userInfo": user}
        return orjson.loads(await validator.review("", body(obj, **fields), 5.0))["response"]

    return asyncio.run(go())


def text(response: Any) -> str:
    return str((response.get("status") or {}).get("message", ""))


def decided(*decisions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return grant(decisions=list(decisions), **spec)


def test_a_request_within_the_limits_is_let_through():
    assert ask(grant())["allowed"]


def test_a_request_beyond_a_limit_is_refused_with_the_next_step():
    response = ask(grant(duration="9h"))
    assert text(response) == "refused: duration 9h exceeds maximum 4h of grantpolicy/default; try --for 4h"  # fmt: skip


def test_a_request_that_no_grant_policy_covers_is_refused():
    assert "no grant policy lets `ada` ask" in text(ask(grant(), client=FakeClient()))


def test_open_grants_of_the_requester_count_in_every_namespace():
    other = grant("other")
    other["metadata"]["namespace"] = "elsewhere"
    other["status"] = {"state": "active"}
    assert "has 1 open grants" in text(ask(grant(), client=FakeClient(POLICY, other)))


BLOCK = Block("no-root", ("r", "s"), "Deployment", "web", "shop")


def test_a_request_by_the_id_of_a_denial_is_let_through():
    assert ask(grant(block=block_id(BLOCK, block_key(KEY))))["allowed"]


@pytest.mark.parametrize(
    "block",
    [
        block_id(BLOCK, b"guessed"),
        block_id(BLOCK, b""),
        block_id(BLOCK, block_key(KEY)).rpartition(".")[0],
        block_id(BLOCK, block_key(KEY)).rpartition(".")[0] + ".",
        block_id(replace(BLOCK, name="other"), block_key(KEY)).rpartition(".")[0] + "." + block_id(BLOCK, block_key(KEY)).rpartition(".")[2],
        "kb1.x", "x", ".", "kb1..", "\ud800.\ud800".encode("utf-8", "replace").decode(), "k" * 5000,
    ],
)  # fmt: skip
def test_the_id_of_a_denial_that_nobody_signed_leads_to_no_request(block: str):
    assert "spec.block is no id of a denial in this cluster" in text(ask(grant(block=block)))


@pytest.mark.parametrize(
    "told",
    [replace(BLOCK, policy="other"), replace(BLOCK, rules=("s",)), replace(BLOCK, kind="Pod"), replace(BLOCK, name="db"), replace(BLOCK, namespace="prod")],
)  # fmt: skip
def test_a_request_by_a_denial_of_something_else_is_refused(told: Block):
    answer = ask(grant(block=block_id(told, block_key(KEY))))
    assert "the denial of spec.block was about something else" in text(answer)


def test_a_request_for_all_rules_that_a_denial_names_is_let_through():
    assert ask(grant(rules=["s", "r"], block=block_id(BLOCK, block_key(KEY))))["allowed"]


def test_a_request_for_all_rules_is_not_what_a_denial_told_of():
    answer = ask(grant(block=block_id(BLOCK, block_key(KEY)), rules=[]))
    assert "was about something else" in text(answer)


def _pods(count: int, **labels: str) -> list[dict[str, Any]]:
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"web-{number}", "namespace": "shop", "labels": labels}}
        for number in range(count)
    ]  # fmt: skip


WIDE = {**POLICY, "spec": {**POLICY["spec"], "wildcards": True}}
FEW = {**WIDE, "spec": {**WIDE["spec"], "limits": {"objects": 3}}}
ANY = {**WIDE, "spec": {**WIDE["spec"], "limits": {"objects": 0}}}


@pytest.mark.parametrize(
    ("policy", "pods", "target", "allowed"),
    [
        (WIDE, _pods(50), {"kind": "Pod", "name": "web-*"}, True),
        (WIDE, _pods(51), {"kind": "Pod", "name": "web-*"}, False),
        (WIDE, _pods(51), {"kind": "Pod", "name": "web-1"}, True),
        (WIDE, _pods(51), {"kind": "Pod", "name": "db-*"}, True),
        (WIDE, _pods(51), {"kind": "*", "name": "web-?"}, True),
        (FEW, _pods(4), {"kind": "Pod", "name": "*"}, False),
        (FEW, _pods(4, tier="a"), {"kind": "Pod", "selector": {"matchLabels": {"tier": "a"}}}, False),
        (FEW, _pods(4, tier="b"), {"kind": "Pod", "selector": {"matchLabels": {"tier": "a"}}}, True),
        (FEW, _pods(4, tier="a"), {"kind": "Pod", "selector": {"matchLabels": {"t*": "*"}}}, False),
        (FEW, _pods(4, tier="a"), {"kind": "Pod", "selector": {"matchLabels": {"tier": "?"}}}, False),
        (FEW, _pods(4), {"kind": "v1/Pod", "name": "web-*"}, False),
        (FEW, _pods(4), {"kind": "Pod/exec", "name": "web-*"}, False),
        (FEW, _pods(4), {"kind": "*/*", "name": "web-*"}, False),
        (ANY, _pods(60), {"kind": "Pod", "name": "*"}, True),
    ],
)  # fmt: skip
def test_a_wide_request_reaches_no_more_objects_than_it_may(policy, pods, target, allowed):
    answer = ask(grant(target=target), client=FakeClient(policy, *pods, kinds=[PODS]))
    assert answer["allowed"] is allowed, text(answer)
    assert allowed or "it reaches more than" in text(answer)


def _kinds(count: int, **words: Any) -> list[Kind]:
    """Return so many kinds, of which each has its own name."""
    return [Kind("example.org", "v1", f"things{number}", f"Thing{number}", **words) for number in range(count)]  # fmt: skip


def _things(kind: Kind, count: int, namespace: str = "shop") -> list[dict[str, Any]]:
    return [
        {"apiVersion": "example.org/v1", "kind": kind.kind, "metadata": {"name": f"t-{number}", "namespace": namespace}}
        for number in range(count)
    ]  # fmt: skip


EVERY = {"kind": "example.org/*/*", "name": "*"}
ONE, OTHER = _kinds(2)


@pytest.mark.parametrize(
    ("kinds", "things", "allowed"),
    [
        ((ONE, OTHER), [*_things(ONE, 2), *_things(OTHER, 1)], True),
        ((ONE, OTHER), [*_things(ONE, 2), *_things(OTHER, 2)], False),
        ((ONE, OTHER), [*_things(ONE, 4), *_things(OTHER, 1)], False),
        ((ONE, OTHER), [*_things(ONE, 3), *_things(OTHER, 9, "elsewhere")], True),
        (_kinds(20), [], True),
        (_kinds(21), [], False),
        ((ONE, varied(OTHER, verbs=("get",))), [*_things(ONE, 1), *_things(OTHER, 9)], True),
        ((ONE, varied(OTHER, verbs=("get", "list"))), _things(OTHER, 9), False),
        ((ONE, varied(OTHER, namespaced=False)), [*_things(ONE, 1), *_things(OTHER, 9, "")], True),
    ],
)
def test_objects_of_all_kinds_that_a_wide_request_reaches_count_together(kinds, things, allowed):
    answer = ask(grant(target=EVERY), client=FakeClient(FEW, *things, kinds=list(kinds)))
    assert answer["allowed"] is allowed, text(answer)
    assert allowed or "it reaches more than 3 objects" in text(answer)


@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": {}}, {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}],
)
def test_an_emergency_by_labels_is_refused_where_wildcards_are(selector: dict[str, Any]):
    narrow = {**POLICY, "spec": {**POLICY["spec"], "emergency": {"maxDuration": "4h"}}}
    asked = grant(target={"kind": "Pod", "selector": selector}, emergency=True)
    answer = ask(asked, client=FakeClient(narrow, kinds=[PODS]))
    assert "allows no wildcards" in text(answer)


def test_a_wide_request_whose_objects_cannot_be_counted_is_refused():
    client = FakeClient(WIDE, kinds=[PODS])
    client.fail("list", Forbidden("no", status=403), resource="pods")
    answer = ask(grant(target={"kind": "Pod", "name": "*"}), client=client)
    assert "cannot be counted" in text(answer)


def test_limits_that_cannot_be_read_refuse():
    client = FakeClient(POLICY)
    client.fail("list", Forbidden("no", status=403), resource="grantpolicies")
    assert not ask(grant(), client=client)["allowed"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"requester": "bob"}, "spec.requester must be who creates the grant"),
        ({"requesterGroups": ["ops"]}, "must be groups of who creates the grant"),
        ({"decisions": [{"by": "ada", "verdict": "approve"}]}, "a new grant has no decisions"),
        ({"duration": "soon"}, "a length of time"),
    ],
)
def test_a_request_says_nothing_about_others(change: dict[str, Any], words: str):
    assert words in text(ask(grant(**change))) or not ask(grant(**change))["allowed"]


def test_an_approval_by_another_person_in_their_own_name_is_let_through():
    assert ask(decided({"by": "bob", "verdict": "approve", "groups": ["ops"]}), grant(), user=BOB)["allowed"]  # fmt: skip


@pytest.mark.parametrize(
    ("decisions", "user", "words"),
    [
        ([{"by": "ada", "verdict": "approve"}], ADA, "nobody approves an own request"),
        ([{"by": "bob", "verdict": "approve"}], ADA, "in one's own name"),
        ([{"by": "bob", "verdict": "approve", "groups": ["root"]}], BOB, "only groups of who makes it"),
        ([{"by": "bob", "verdict": "approve"}, {"by": "bob", "verdict": "deny"}], BOB, "one decision at a time"),
        ([{"by": "system:serviceaccount:x:y", "verdict": "approve"}], {"username": "system:serviceaccount:x:y"}, "a service account cannot approve"),
    ],
)  # fmt: skip
def test_nobody_decides_for_somebody_else_or_for_themselves(decisions, user, words):
    assert words in text(ask(decided(*decisions), grant(), user=user))


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        ({"by": "bob", "verdict": "approve"}, "does not count"),
        ({"by": "bob", "verdict": "deny"}, "does not count"),
        ({"by": "bob", "verdict": "approve", "groups": ["ops"]}, ""),
    ],
)
def test_a_decision_that_does_not_name_the_group_by_which_it_would_count_is_warned_of(
    decision: dict[str, Any], said: str
):
    policy = {**POLICY, "spec": {**POLICY["spec"], "approvers": [{"groups": ["ops"]}]}}
    pending = {"status": {"state": "pending", "grantPolicy": "default"}}
    client = FakeClient(policy)
    answer = ask(decided(decision) | pending, grant() | pending, user=BOB, client=client)
    assert answer["allowed"]
    assert [said in one for one in answer.get("warnings") or ()] == ([True] if said else [])


def test_decisions_stay_as_they_were_made():
    before = decided({"by": "bob", "verdict": "deny"})
    for after in (grant(), decided({"by": "bob", "verdict": "approve"})):
        assert "cannot be changed or taken back" in text(ask(after, before, user=BOB))


@pytest.mark.parametrize("change", [{"duration": "4h"}, {"rules": ["*"]}, {"target": {"kind": "Pod"}}, {"policy": "x"}])  # fmt: skip
def test_a_request_cannot_be_changed(change):
    assert "a request cannot be changed" in text(ask(grant(**change), grant(), user=BOB))


def test_limits_are_not_asked_again_when_somebody_decides():
    late = grant(duration="9h")
    assert ask(decided({"by": "bob", "verdict": "deny"}, duration="9h"), late, user=BOB)["allowed"]


@pytest.mark.parametrize(
    "spec", [{"maxDuration": "soon"}, {"ticket": {"pattern": "("}}, {"approvers": [{"count": 1}]}]
)
def test_a_grant_policy_that_cannot_be_meant_is_refused(spec: dict[str, Any]):
    made = {**POLICY, "spec": spec}
    assert not ask(made)["allowed"]


def test_a_deletion_is_nobodys_request():
    response = ask(None, grant())
    assert response["allowed"]


CODES = {**POLICY, "spec": {**POLICY["spec"], "codes": {"mode": "acknowledge"}}}
AGREED = {**POLICY, "spec": {**POLICY["spec"], "codes": {"mode": "approve"}}}


def code(**spec: Any) -> dict[str, Any]:
    binding = {
        "policy": "no-root",
        "rules": ["r"],
        "object": {"kind": "Pod", "namespace": "shop", "name": "web"},
    }
    given = {
        "user": "ada",
        "issuedBy": "bob",
        "expiresAt": (NOW + timedelta(hours=1)).isoformat(),
        "verifier": "v",
        "binding": binding,
    }
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode",
        "metadata": {"name": "code-a", "namespace": "kyverno", "creationTimestamp": NOW.isoformat()}, "spec": {**given, **spec},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "changes", "user", "words"),
    [
        (CODES, {}, BOB, ""),
        (CODES, {"expiresAt": "2099-01-01T00:00:00Z"}, BOB, "the maximum of grantpolicy/default"),
        (CODES, {"issuedBy": "eve"}, {"username": "eve", "groups": []}, "on no level of approvers"),
        (CODES, {}, ADA, "spec.issuedBy must be who issues the code"),
        (CODES, {"issuedByGroups": ["leads"]}, BOB, "must be groups of who issues the code"),
        (CODES, {"user": "bob"}, BOB, "nobody issues a code for oneself"),
        (POLICY, {}, BOB, "has one-time codes off"),
        (AGREED, {}, BOB, "kubectl kpolicy otp approve ID"),
        (AGREED, {"verifier": "approved"}, BOB, "spec.request is no id of a denial in this cluster"),
        (CODES, {"expiresAt": "soon"}, BOB, "spec.expiresAt is `soon`"),
    ],
)  # fmt: skip
def test_a_code_by_hand_is_judged_when_it_is_issued(policy, changes, user, words: str):
    answer = ask(code(**changes), user=user, client=FakeClient(policy))
    assert words in text(answer)
    assert answer["allowed"] is (words == "")


def test_a_code_cannot_be_changed_while_the_api_server_s_guards_are_gone():
    changed = code(expiresAt="2026-12-31T00:00:00Z")
    assert "cannot be changed" in text(ask(changed, code(), user=BOB, client=FakeClient(CODES)))


def test_an_agreement_says_what_the_denial_asked_for_and_no_more():
    asked = CodeRequest("ada", "no-root", ("r",), "Pod", "shop", "web", "d" * 24)
    signed = request_id(asked, request_key(KEY))
    agreed = approval_of(signed, asked, "bob", ("ops",), NOW + timedelta(hours=1), "", "kyverno")
    client = FakeClient(AGREED)

    def judged(**changes: Any) -> Any:
        return ask({**agreed, "spec": {**agreed["spec"], **changes}}, user=BOB, client=client)

    assert judged()["allowed"], text(judged())
    other = {**agreed["spec"]["binding"], "rules": ["r", "s"]}
    for changes in ({"user": "eve"}, {"binding": other}):
        assert "was about something else" in text(judged(**changes))
    assert "is no id of a denial" in text(judged(request=request_id(asked, b"guessed")))
    assert "the maximum of" in text(judged(expiresAt="2099-01-01T00:00:00Z"))


def test_what_is_being_deleted_is_judged_until_it_is_gone():
    going = {"deletionTimestamp": "2026-11-21T10:00:00Z", "finalizers": ["example.org/hold"]}

    def held(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "metadata": {**obj["metadata"], **going}}

    freed = held(grant())
    freed["metadata"] = {**freed["metadata"], "finalizers": []}
    assert ask(freed, held(grant()))["allowed"]
    assert "cannot be changed" in text(ask(held(grant(duration="9h")), held(grant())))
    self_made = decided({"by": "ada", "verdict": "approve"})
    assert "nobody approves an own request" in text(ask(held(self_made), held(grant())))
    empty = {**POLICY, "spec": {**POLICY["spec"], "approvers": [{}]}}
    assert "names nobody" in text(ask(held(empty), held(POLICY), client=FakeClient()))
    assert ask(held(empty), held(empty), client=FakeClient())["allowed"]
    assert "names nobody" in text(ask(empty, empty, client=FakeClient()))


@pytest.mark.parametrize("level", [{"users": ["bob"]}, {"groups": ["leads"]}])
def test_a_level_of_approvers_names_users_or_groups(level: dict[str, Any]):
    made = {**POLICY, "spec": {**POLICY["spec"], "approvers": [level]}}

    assert ask(made, client=FakeClient())["allowed"]


@pytest.mark.parametrize(
    ("codes", "caller", "allowed"),
    [
        ({"mode": "off"}, Caller.NOBODY, True),
        ({"mode": "acknowledge"}, Caller.NOBODY, False),
        ({"mode": "acknowledge"}, Caller.CERTIFICATE, True),
        ({"mode": "approve"}, Caller.NOBODY, False),
        ({"mode": "approve", "strict": True}, Caller.NOBODY, True),
    ],
)
def test_codes_need_an_api_server_that_proves_to_be_one_or_claims(
    codes: dict[str, Any], caller: Caller, allowed: bool
):
    made = {**POLICY, "spec": {**POLICY["spec"], "codes": {**codes, "duration": "10m"}}}
    token = current_caller.set(caller)
    try:
        answer = ask(made, client=FakeClient())
    finally:
        current_caller.reset(token)

    assert answer["allowed"] is allowed
    assert allowed or "one-time codes need an API server that proves to be one" in text(answer)


def test_what_judges_grants_shows_no_key():
    assert repr(GrantValidator(FakeClient(), ManualClock(NOW), KEY)) == "<GrantValidator>"


# Names that nothing has.

RULES = {
    "apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "no-root"},
    "spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"deny": {}}}]},
}  # fmt: skip
IN_A_HURRY = {**POLICY, "spec": {**POLICY["spec"], "emergency": {"maxDuration": "4h"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}


def pod(name: str) -> dict[str, str]:
    return {"kind": "Pod", "name": name}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, []),
        ({"policy": "no-roots"}, ["there is no policy `no-roots`"]),
        ({"rules": ["q"]}, ["policy `no-root` has no rule `q`; it has r"]),
        ({"target": pod("wbe")}, ["there is no Pod `wbe` in namespace shop yet"]),
    ],
)
def test_a_request_for_what_is_not_there_is_warned_of(asked: dict[str, Any], said: list[str]):
    there = FakeClient(POLICY, RULES, POD, kinds=[PODS])
    answer = ask(grant(**{"target": pod("web"), **asked}), client=there)
    assert answer["allowed"]
    assert [one.split(", autogen")[0] for one in answer.get("warnings", [])] == said


@pytest.mark.parametrize("asked", [{"policy": "no-roots"}, {"rules": ["q"]}])
def test_an_emergency_for_a_rule_that_is_not_there_is_refused(asked: dict[str, Any]):
    there = FakeClient(IN_A_HURRY, RULES, POD, kinds=[PODS])
    assert ask(grant(target=pod("web"), emergency=True), client=there)["allowed"]
    answer = ask(grant(target=pod("web"), emergency=True, **asked), client=there)
    assert "nobody looks at an emergency before it is active" in text(answer)


def test_who_may_not_read_an_object_does_not_learn_whether_it_is_there():
    there = FakeClient(POLICY, RULES, POD, kinds=[PODS])
    questions: list[Any] = []
    there.reviews["SubjectAccessReview"] = lambda spec: questions.append(spec) or {"allowed": False}
    answers = [ask(grant(target=pod(name)), client=there) for name in ("web", "wbe")]
    assert answers[0].keys() == answers[1].keys() == {"uid", "allowed"}
    assert questions[1]["user"] == "ada"
    assert questions[1]["resourceAttributes"] == {
        "verb": "get", "group": "", "version": "v1", "resource": "pods", "name": "wbe", "namespace": "shop",
    }  # fmt: skip


def test_what_cannot_be_read_is_not_called_missing():
    there = FakeClient(IN_A_HURRY, kinds=[PODS])
    there.fail("get", Forbidden("no", status=403), times=9)
    answer = ask(grant(target=pod("web"), emergency=True), client=there)
    assert answer["allowed"]
    assert "warnings" not in answer
