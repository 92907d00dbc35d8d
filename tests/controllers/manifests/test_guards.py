"""What the API server's own policies let people do to grants, exceptions, uses and the audit trail, judged by the CEL engine."""

from __future__ import annotations

from contextlib import suppress

import pytest

from controllers.kube.accounts import Job, account_user
from controllers.manifests.guards import guards
from engine.errors import EngineError
from engine.lang import cel

POLICIES = {obj["metadata"]["name"]: obj for obj in guards() if obj["kind"].endswith("Policy")}


def refused(name, user, obj, old=None, groups=()):
    """Return the messages of the checks that refuse, nothing where the policy does not concern the request."""
    spec = POLICIES[name]["spec"]
    bindings = {
        "object": obj,
        "oldObject": old,
        "request": {"userInfo": {"username": user, "groups": list(groups)}},
    }
    conditions = spec.get("matchConditions", ())
    if not all(cel.compile(one["expression"])(bindings) for one in conditions):
        return []
    return [
        check["message"]
        for check in spec["validations"]
        if cel.compile(check["expression"])(bindings) is not True
    ]


def grant(*decisions, **changes):
    spec = {
        "requester": "ada", "requesterGroups": ["shop"], "policy": "no-root", "rules": ["a"],
        "target": {"kind": "Pod", "name": "web"}, "duration": "1h", "reason": "because", **changes,
    }  # fmt: skip
    decided = {"decisions": list(decisions)} if decisions else {}
    return {"metadata": {}, "spec": {**spec, **decided}}


def vote(by, verdict="approve", **more):
    return {"by": by, "verdict": verdict, **more}


def test_a_grant_is_asked_for_in_one_s_own_name():
    assert refused("kpolicy-grants", "ada", grant(), groups=["shop", "all"]) == []
    assert refused("kpolicy-grants", "eve", grant(), groups=["shop"]) != []
    assert refused("kpolicy-grants", "ada", grant(), groups=["all"]) != []
    assert refused("kpolicy-grants", "ada", grant(vote("ada")), groups=["shop"]) != []


def test_somebody_else_approves():
    assert refused("kpolicy-grants", "bob", grant(vote("bob")), grant()) == []
    assert refused("kpolicy-grants", "ada", grant(vote("ada")), grant()) == [
        "nobody approves an own request"
    ]


@pytest.mark.parametrize("verdict", ["withdraw", "drop"])
def test_requesters_may_take_their_request_back(verdict):
    assert refused("kpolicy-grants", "ada", grant(vote("ada", verdict)), grant()) == []


def test_nobody_decides_in_another_name_or_with_groups_of_others():
    assert refused("kpolicy-grants", "ada", grant(vote("bob")), grant()) != []
    named = grant(vote("bob", groups=["leads"]))
    assert refused("kpolicy-grants", "bob", named, grant(), groups=["leads"]) == []
    assert refused("kpolicy-grants", "bob", named, grant(), groups=["shop"]) != []


def test_service_accounts_do_not_approve():
    robot = "system:serviceaccount:ci:bot"

    assert refused("kpolicy-grants", robot, grant(vote(robot)), grant()) == [
        "a service account cannot approve"
    ]


def test_decisions_are_added_one_at_a_time_and_stay():
    one, two = vote("bob"), vote("cyd", comment="fine")

    assert refused("kpolicy-grants", "cyd", grant(one, two), grant(one)) == []
    assert refused("kpolicy-grants", "cyd", grant(two), grant(one)) != []
    assert refused("kpolicy-grants", "cyd", grant(), grant(one)) != []
    assert refused("kpolicy-grants", "cyd", grant(two, vote("cyd", "deny")), grant()) != []


@pytest.mark.parametrize(
    "change",
    [
        {"duration": "9h"}, {"reason": "other"}, {"target": {"kind": "Pod", "name": "*"}}, {"policy": "other"}, {"rules": ["b"]},
        {"requester": "bob"}, {"ticket": "T-1"}, {"emergency": True}, {"uses": 3}, {"startAt": "2026-01-01T00:00:00Z"},
        {"idle": "1h"}, {"extends": "x"}, {"approvers": ["eve"]}, {"block": "b"}, {"requesterGroups": []},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_request_cannot_be_changed_by_anybody(change):
    for user in ("ada", "bob", "system:admin"):
        assert refused("kpolicy-grants", user, grant(**change), grant()) != []


def exception(expires, spec="x", grant_name="shop/g"):
    annotations = {"kpolicy.io/expires-at": expires} if expires else {}
    if grant_name:
        annotations["kpolicy.io/grant"] = grant_name
    return {"metadata": {"annotations": annotations}, "spec": {"exceptions": spec}}


def test_a_granted_exception_only_gets_shorter():
    name, old = "kpolicy-granted-exceptions", exception("2026-03-01T12:00:00Z")

    assert refused(name, "eve", exception("2026-03-01T12:00:00Z"), old) == []
    assert refused(name, "eve", exception("2026-03-01T11:00:00Z"), old) == []
    assert refused(name, "eve", exception("2026-03-01T12:00:01Z"), old) != []
    assert refused(name, "eve", exception(""), old) != []
    assert refused(name, "eve", exception("2026-03-01T12:00:00Z", spec="y"), old) != []
    assert refused(name, "eve", exception("2026-03-01T12:00:00Z", grant_name=""), old) != []


def test_a_granted_exception_keeps_its_owner_and_how_often_it_may_be_used():
    name, old = "kpolicy-granted-exceptions", exception("2026-03-01T12:00:00Z")
    old["metadata"]["ownerReferences"] = [{"kind": "Grant", "uid": "u1"}]
    old["metadata"]["annotations"]["kpolicy.io/uses"] = "1"

    def changed(owners=None, **annotations):
        made = {**old["metadata"], "annotations": {**old["metadata"]["annotations"], **annotations}}
        return {**old, "metadata": {**made, "ownerReferences": owners or made["ownerReferences"]}}

    assert refused(name, "eve", changed(), old) == []
    assert refused(name, "eve", changed(**{"kpolicy.io/uses": "2"}), old) != []
    assert refused(name, "eve", changed([{"kind": "Grant", "uid": "u2"}]), old) != []
    freed = {**old, "metadata": {"annotations": old["metadata"]["annotations"]}}
    assert refused(name, "eve", freed, old) != []
    assert refused(name, "system:serviceaccount:kube-system:generic-garbage-collector", freed, old) == []  # fmt: skip


def test_exceptions_without_a_grant_are_left_alone():
    old = exception("", grant_name="")

    assert refused("kpolicy-granted-exceptions", "eve", exception("", "y", ""), old) == []
    assert refused("kpolicy-granted-exceptions", "eve", {"metadata": {}}, {"metadata": {}}) == []


def test_the_record_of_a_use_stays_as_it_is():
    old = {"spec": {"user": "ada"}}

    assert refused("kpolicy-code-uses", "root", {"spec": {"user": "ada"}, "status": {}}, old) == []
    assert refused("kpolicy-code-uses", "root", {"spec": {"user": "eve"}}, old) != []


def test_audit_records_are_only_added_and_not_after_the_seal():
    name, one = "kpolicy-audit-segments", {"seq": 1}
    old = {"spec": {"records": [one]}}

    assert refused(name, "root", {"spec": {"records": [one, {"seq": 2}]}}, old) == []
    assert refused(name, "root", {"spec": {"records": [{"seq": 2}]}}, old) != []
    later = {"spec": {"records": [{"seq": 7}, {"seq": 8, "actor": "ada"}]}}
    grown = [*later["spec"]["records"], {"seq": 9}]
    assert refused(name, "root", {"spec": {"records": grown}}, later) == []
    for wrong in (grown[:1], grown[1:], grown[::-1], [grown[0], {"seq": 8, "actor": "eve"}], []):
        with suppress(EngineError):
            assert refused(name, "root", {"spec": {"records": wrong}}, later) != []
    sealed = {"spec": {"records": [one], "sealed": True, "mac": "m"}}
    assert refused(name, "root", {"spec": {**sealed["spec"], "records": [one, one]}}, sealed) != []


OURS = account_user("kyverno", Job.GRANTS)
ADMISSION = account_user("kyverno", Job.ADMISSION)
NEIGHBOURS = tuple(account_user("kyverno", job) for job in Job if job is not Job.GRANTS)
OTHERS = (
    "root",
    "system:admin",
    "system:serviceaccount:kyverno:default",
    "system:serviceaccount:kyverno-2:kpolicy-grants-controller",
    "system:serviceaccount:kyverno-2:x",
    "system:serviceaccount:ci:kyverno:x",
    *NEIGHBOURS,
)
COLLECTORS = (
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
)


def test_records_are_written_by_the_account_that_keeps_them_alone():
    name, use = "kpolicy-records", {"spec": {"user": "ada"}}

    for obj, old in ((use, None), (use, use)):
        assert refused(name, OURS, obj, old) == []
        for user in (*OTHERS, *COLLECTORS):
            assert refused(name, user, obj, old) == ["records are for the controllers to write"]
    for user in COLLECTORS:
        assert refused(name, user, None, use) == []
    for user in (OURS, *OTHERS):
        assert refused(name, user, None, use) != []


def test_uses_and_notes_are_made_at_admission_and_cleared_away_by_who_keeps_the_trail():
    name, use = "kpolicy-uses-and-notes", {"spec": {"user": "ada"}}

    makes = {user for user in (OURS, *OTHERS, *COLLECTORS) if not refused(name, user, use)}
    clears = {user for user in (OURS, *OTHERS, *COLLECTORS) if not refused(name, user, None, use)}
    changes = {user for user in (OURS, *OTHERS, *COLLECTORS) if not refused(name, user, use, use)}
    assert (makes, clears, changes) == ({ADMISSION}, {OURS, *COLLECTORS}, {OURS})


@pytest.mark.parametrize("user", OTHERS)
def test_an_exception_by_grant_is_made_by_the_grants_account_alone(user):
    name, made = "kpolicy-granted-exceptions", exception("2026-03-01T12:00:00Z")
    owned = {"metadata": {"ownerReferences": [{"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "uid": "u"}]}, "spec": {}}  # fmt: skip
    plain = {"metadata": {}, "spec": {}}

    for obj in (made, owned):
        assert refused(name, OURS, obj) == []
        assert refused(name, user, obj) == ["an exception by grant is made from its grant; ask for one"]  # fmt: skip
        assert refused(name, user, obj, plain) != []
        assert refused(name, user, obj, obj) == []
    assert refused(name, user, plain) == []


def state(text, expires=""):
    return {"spec": {}, "status": {"state": text, **({"expiresAt": expires} if expires else {})}}


def test_the_state_of_a_grant_is_the_controllers_and_its_end_comes_only_nearer():
    name, old = "kpolicy-grant-states", state("active", "2026-03-01T12:00:00Z")

    assert refused(name, OURS, old, state("pending")) == []
    assert refused(name, OURS, state("active", "2026-03-01T11:00:00Z"), old) == []
    assert refused(name, OURS, state("expired", "2026-03-01T12:00:00Z"), old) == []
    assert refused(name, OURS, state("active", "2026-03-01T12:00:01Z"), old) != []
    assert refused(name, OURS, state("active"), old) != []
    for user in OTHERS:
        assert refused(name, user, old, state("pending")) == [
            "the state of a grant is for the controllers to write"
        ]


@pytest.mark.parametrize("over", ["expired", "revoked", "denied", "withdrawn"])
def test_a_grant_that_is_over_stays_so(over):
    assert refused("kpolicy-grant-states", OURS, state("active"), state(over)) == [
        "a grant that is over stays so"
    ]
    assert refused("kpolicy-grant-states", OURS, state(over), state(over)) == []


def test_every_guard_is_bound_and_refuses_when_it_cannot_be_judged():
    bound = {obj["spec"]["policyName"] for obj in guards() if obj["kind"].endswith("Binding")}

    assert bound == set(POLICIES)
    assert {obj["spec"]["failurePolicy"] for obj in POLICIES.values()} == {"Fail"}


def code(user="ada", by="bob", ends="2026-03-02T12:15:00Z", **status):
    made = {"creationTimestamp": "2026-03-02T12:00:00Z"}
    return {"metadata": made, "spec": {"user": user, "issuedBy": by, "expiresAt": ends}, "status": status}  # fmt: skip


def test_a_code_is_issued_in_one_s_own_name_for_somebody_else():
    assert refused("kpolicy-codes", "bob", code()) == []
    assert refused("kpolicy-codes", "eve", code()) != []
    assert refused("kpolicy-codes", "bob", code("bob")) == ["nobody issues a code for oneself"]
    robot = "system:serviceaccount:ci:bot"
    assert refused("kpolicy-codes", robot, code(by=robot)) != []
    assert refused("kpolicy-codes", "bob", code("eve"), code()) != []


def test_a_code_ends_within_seven_days_of_when_it_was_made():
    assert refused("kpolicy-codes", "bob", code(ends="2026-03-09T12:00:00Z")) == []
    for late in ("2026-03-09T12:00:01Z", "2099-01-01T00:00:00Z"):
        assert refused("kpolicy-codes", "bob", code(ends=late)) == [
            "a code is good for seven days at most"
        ]
    with pytest.raises(EngineError):
        refused("kpolicy-codes", "bob", code(ends="for ever"))


def test_a_code_that_was_made_void_stays_void():
    for after, fine in (("void", True), ("issued", False), ("", False)):
        found = refused("kpolicy-code-states", OURS, code(state=after), code(state="void"))
        assert (found == []) is fine
    assert refused("kpolicy-code-states", "bob", code(state="void"), {"spec": {}}) == []


def test_a_code_is_made_void_in_one_s_own_name():
    name, by_bob = "kpolicy-code-states", code(state="void", voidedBy="bob")

    assert refused(name, "bob", by_bob, code()) == []
    for user in ("eve", OURS, "system:admin"):
        assert refused(name, user, by_bob, code()) == [
            "status.voidedBy must be who makes the code void"
        ]
        assert refused(name, user, by_bob, by_bob) == []
    assert refused(name, "eve", code(state="void", voidedBy="eve"), by_bob) != []
    assert refused(name, "bob", code(state="void"), by_bob) != []


def test_that_a_code_was_used_is_for_the_controllers_to_say():
    name, used = "kpolicy-code-states", code(state="used", usedBy="ada")

    assert refused(name, OURS, used, code()) == []
    assert refused(name, "bob", used, code()) != []
    assert refused(name, "bob", code(state="void", voidedBy="bob"), code(state="used")) != []
    assert refused(name, "bob", code(usedBy="eve"), code()) != []


def ending(annotation="", spec=""):
    made = {
        "metadata": {"annotations": {"kpolicy.io/expires-at": annotation}} if annotation else {}
    }
    return {**made, "spec": {"expiresAt": spec} if spec else {}}


@pytest.mark.parametrize("place", ["annotation", "spec"])
def test_the_end_of_every_exception_only_comes_nearer(place):
    def at(text):
        return ending(**{place: text})

    name, noon = "kpolicy-exception-ends", at("2026-03-01T12:00:00Z")
    assert refused(name, "eve", noon, noon) == []
    assert refused(name, "eve", at("2026-03-01T11:59:59Z"), noon) == []
    assert refused(name, "eve", noon, at("")) == []
    assert refused(name, "eve", at(""), at("")) == []
    assert refused(name, "eve", at("2026-03-01T12:00:01Z"), noon) != []
    assert refused(name, "eve", at("2026-03-01T12:30:00+01:00"), noon) == []
    assert refused(name, "eve", at(""), noon) != []


def labelled(value, name="cleanup.kyverno.io/ttl"):
    return {"metadata": {"labels": {name: value}} if value else {}}


@pytest.mark.parametrize(
    ("before", "after", "fine"),
    [
        ("1h", "1h", True), ("1h", "30m", True), ("1h", "90m", False), ("1h", "", False), ("1h", "2h", False),
        ("1h30m", "1h29m59s", True), ("", "5h", True), ("", "", True), ("10d", "9d", False), ("10d", "10d", True),
        ("2026-03-01", "2026-02-28", True), ("2026-03-01", "2026-03-02", False), ("2026-03-01", "1h", False),
        ("2026-03-01", "2026-02-31", False), ("2026-03-01", "2026-00-00", False), ("1h", "soon", False),
        ("2026-03-01T120000Z", "2026-02-01T120000Z", False), ("2026-03-01T120000Z", "2026-03-01T120000Z", True),
        ("1h", "-1h", False), ("soon", "1h", False),
    ],
)  # fmt: skip
def test_the_end_of_every_exception_by_its_label_only_comes_nearer(before, after, fine):
    told = []
    with suppress(EngineError):
        told = refused("kpolicy-exception-ends", "eve", labelled(after), labelled(before))
        assert (told == []) is fine
        return
    assert not fine


def test_other_labels_of_an_exception_are_anybody_s():
    assert refused("kpolicy-exception-ends", "eve", labelled("x", "team"), labelled("y", "team")) == []  # fmt: skip


@pytest.mark.parametrize("user", OTHERS)
def test_people_make_codes_void_and_say_nothing_else_about_them(user):
    name = "kpolicy-code-states"
    for after, before in (("issued", ""), ("used", "issued"), ("", "issued")):
        assert refused(name, OURS, code(state=after), code(state=before)) == []
        assert refused(name, user, code(state=after), code(state=before)) != []
    assert refused(name, user, code(state="void"), code(state="issued")) == []


def test_codes_are_claimed_in_one_s_own_name():
    claim = {"spec": {"user": "ada", "uses": ["use-a"]}}

    assert refused("kpolicy-code-claims", "ada", claim) == []
    assert refused("kpolicy-code-claims", "eve", claim) != []
    assert refused("kpolicy-code-claims", "ada", {"spec": {"user": "ada", "uses": []}}, claim) != []


WRITES = ["CREATE", "UPDATE"]
EXCEPTIONS = ("kyverno.io", "policies.kyverno.io")
CONCERNED = {
    "kpolicy-grants": (("kpolicy.io",), WRITES, ["grants"]),
    "kpolicy-grant-states": (("kpolicy.io",), ["UPDATE"], ["grants/status"]),
    "kpolicy-granted-exceptions": (EXCEPTIONS, WRITES, ["policyexceptions"]),
    "kpolicy-exception-ends": (EXCEPTIONS, ["UPDATE"], ["policyexceptions"]),
    "kpolicy-codes": (("kpolicy.io",), WRITES, ["onetimecodes"]),
    "kpolicy-code-claims": (("kpolicy.io",), WRITES, ["codeclaims"]),
    "kpolicy-code-states": (("kpolicy.io",), ["UPDATE"], ["onetimecodes/status"]),
    "kpolicy-code-uses": (("kpolicy.io",), ["UPDATE"], ["codeuses"]),
    "kpolicy-uses-and-notes": (("kpolicy.io",), [*WRITES, "DELETE"], ["codeuses", "auditnotes"]),
    "kpolicy-audit-segments": (("kpolicy.io",), ["UPDATE"], ["auditsegments"]),
    "kpolicy-records": (("kpolicy.io",), [*WRITES, "DELETE"], ["auditsegments", "codeuses/status"]),
    "kpolicy-ttl-labels": (("*",), WRITES, ["*/*"]),
    "kpolicy-generate-labels": (("*",), WRITES, ["*/*"]),
}


def test_each_guard_concerns_the_writes_that_it_is_for():
    found = {}
    for name, obj in POLICIES.items():
        [rule] = obj["spec"]["matchConstraints"]["resourceRules"]
        found[name] = (tuple(rule["apiGroups"]), rule["operations"], rule["resources"])
        assert obj["spec"]["failurePolicy"] == "Fail"

    assert found == CONCERNED
