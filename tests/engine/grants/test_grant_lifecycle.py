"""Grants from the request to their end, at instants that the test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.autogen import expand
from engine.errors import PolicyError
from engine.grants import (
    FINAL,
    Circumstances,
    Facts,
    chosen_policy,
    exception_of,
    length_of,
    length_text,
    may_approve,
    next_status,
    parse_grant,
    parse_grant_policy,
    refusals,
    standing,
)
from engine.grants.approvals import cannot_decide
from engine.grants.lifecycle import (
    DECIDABLE,
    OPEN,
    SETTLING,
    ending,
    exhaustion_of,
    status_of,
    warnings_of,
)
from engine.lang import duration
from engine.parse import parse_policy
from engine.record import replace

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def grant(*decisions, status=None, **spec):
    return parse_grant(
        {
            "apiVersion": "kpolicy.io/v1alpha1",
            "kind": "Grant",
            "metadata": {"name": "g", "namespace": "shop", "uid": "u-1", "creationTimestamp": "2026-03-02T12:00:00Z"},
            "spec": {
                "requester": "ada",
                "policy": "no-root",
                "rules": ["run-as-non-root"],
                "target": {"kind": "Deployment", "name": "web"},
                "duration": "4h",
                "reason": "the image is rebuilt on Monday",
                **spec,
                "decisions": list(decisions),
            },
            "status": status or {},
        }
    )  # fmt: skip


def policy(name="default", **spec):
    spec = {"approvers": [{"groups": ["leads"], "users": ["bob", "cyd"]}], **spec}
    return parse_grant_policy({"metadata": {"name": name}, "spec": spec})


def vote(by, verdict="approve", *groups):
    return {"by": by, "verdict": verdict, "groups": list(groups)}


def run(*decisions, at=NOW, rules=None, facts=None, **spec):
    """Return the status at an instant, of a grant that was last looked at when it was made."""
    rules = rules or policy()
    first = next_status(grant(**spec), rules, Facts(NOW))
    asked = grant(*decisions, status=first.fields(), **spec)
    return next_status(asked, rules, Facts(at, **(facts or {})))


def test_a_request_waits_for_its_approvers_until_the_time_of_its_policy():
    status = run()

    assert status.state == "pending"
    assert status.approval_ends_at == NOW + timedelta(days=1)


def test_a_request_that_nobody_decides_times_out_at_that_very_instant():
    assert run(at=NOW + timedelta(hours=23, minutes=59)).state == "pending"
    assert run(at=NOW + timedelta(days=1)).state == "timed-out"
    assert run(at=NOW + timedelta(days=9)).ended_at == NOW + timedelta(days=1)


def test_an_approval_that_comes_too_late_counts_for_nothing():
    assert run(vote("bob"), at=NOW + timedelta(days=1)).state == "timed-out"


def test_an_approved_grant_runs_from_the_approval_for_the_time_asked():
    status = run(vote("bob"), at=NOW + HOUR)

    assert status.state == "active"
    assert (status.starts_at, status.expires_at) == (NOW + HOUR, NOW + 5 * HOUR)


@pytest.mark.parametrize(
    "tightened",
    [
        {"maxDuration": "1h"},
        {"policies": ["another"]},
        {"namespaces": ["elsewhere"]},
        {"requesters": {"users": ["eve"]}},
    ],
)
def test_a_request_that_its_policy_would_not_let_any_more_is_not_granted(tightened):
    waiting = grant(vote("bob"), status=run().fields())

    assert next_status(waiting, policy(), Facts(NOW + HOUR)).state == "active"
    denied = next_status(waiting, policy(**tightened), Facts(NOW + HOUR))
    assert (denied.state, denied.ended_by) == ("denied", "kpolicy")
    assert "refused:" in denied.message
    active = grant(vote("bob"), status=run(vote("bob")).fields())
    assert next_status(active, policy(**tightened), Facts(NOW + HOUR)).state == "active"


@pytest.mark.parametrize("state", ["pending", "scheduled", "active"])
@pytest.mark.parametrize(
    ("verdict", "by"), [("deny", "bob"), ("withdraw", "ada"), ("drop", "ada"), ("revoke", "bob")]
)
def test_a_decision_may_be_made_where_it_ends_the_grant(state: str, verdict: str, by: str):
    start = {"startAt": "2026-03-02T15:00:00Z"} if state == "scheduled" else {}
    before = run(*(() if state == "pending" else (vote("bob"),)), **start)
    assert before.state == state
    decided = grant(vote(by, verdict), status=before.fields(), **start)
    has_ended = next_status(decided, policy(), Facts(NOW)).is_final

    assert (state in DECIDABLE[verdict]) is has_ended
    if ending(state, is_own=by == "ada") == verdict:
        assert has_ended


def test_a_start_in_the_future_is_waited_for():
    later = {"startAt": "2026-03-02T15:00:00Z"}

    assert run(vote("bob"), **later).state == "scheduled"
    assert run(vote("bob"), **later).expires_at == NOW + 7 * HOUR
    started = grant(vote("bob"), status=run(vote("bob"), **later).fields(), **later)
    assert next_status(started, policy(), Facts(NOW + 3 * HOUR)).state == "active"


def test_an_active_grant_ends_at_its_instant_and_not_before():
    active = grant(vote("bob"), status=run(vote("bob")).fields())

    assert next_status(active, None, Facts(NOW + 4 * HOUR - timedelta(seconds=1))).state == "active"
    ended = next_status(active, None, Facts(NOW + 4 * HOUR))
    assert (ended.state, ended.ended_at) == ("expired", NOW + 4 * HOUR)


def test_an_end_is_where_it_was_even_when_the_controller_slept_through_it():
    active = grant(vote("bob"), status=run(vote("bob")).fields())

    assert next_status(active, None, Facts(NOW + timedelta(days=3))).ended_at == NOW + 4 * HOUR


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        (vote("ada", "drop"), "dropped"),
        (vote("bob", "revoke"), "revoked"),
        (vote("ada", "revoke"), "active"),
        (vote("bob", "drop"), "active"),
    ],
    ids=["own drop", "revoked by another", "own revoke is none", "another cannot drop"],
)
def test_who_may_end_an_active_grant(decision, state):
    active = grant(vote("bob"), decision, status=run(vote("bob")).fields())

    assert next_status(active, policy(), Facts(NOW + HOUR)).state == state


def test_only_the_requester_withdraws():
    assert run(vote("ada", "withdraw")).state == "withdrawn"
    assert run(vote("bob", "withdraw")).state == "pending"


def test_uses_and_idleness_end_a_grant_early():
    active = grant(vote("bob"), status=run(vote("bob")).fields(), uses=2, idle="1h")

    assert next_status(active, policy(), Facts(NOW, uses=1)).state == "active"
    assert next_status(active, policy(), Facts(NOW, uses=2)).state == "exhausted"
    assert next_status(active, policy(), Facts(NOW, uses=1, last_used_at=NOW)).state == "active"
    used = Facts(NOW, uses=2, last_used_at=NOW)
    assert next_status(active, policy(), used).state == "active"
    assert next_status(active, policy(), replace(used, now=NOW + SETTLING)).state == "exhausted"
    assert next_status(active, policy(), Facts(NOW + HOUR)).state == "idle-expired"
    used = Facts(NOW + HOUR, uses=1, last_used_at=NOW + HOUR / 2)
    assert next_status(active, policy(), used).state == "active"


@pytest.mark.parametrize("final", sorted(FINAL))
def test_a_final_state_is_final(final):
    over = grant(vote("bob"), vote("ada", "drop"), status={"state": final})

    for at in (NOW, NOW + 100 * HOUR):
        assert next_status(over, policy(), Facts(at)).state == final


def test_a_refused_request_is_denied_with_the_reasons():
    asked = grant(duration="8h")
    why = refusals(asked, policy(maxDuration="4h"), Circumstances(NOW))
    status = next_status(asked, policy(), Facts(NOW, refusals=why))

    assert status.state == "denied"
    assert status.message == (
        "refused: duration 8h exceeds maximum 4h of grantpolicy/default; try --for 4h"
    )


def test_an_emergency_needs_no_approver_but_a_policy_that_has_the_path():
    path = policy(emergency={"maxDuration": "1h"})

    assert run(rules=path, emergency=True, duration="1h").state == "active"
    assert "no emergency path" in str(
        refusals(grant(emergency=True), policy(), Circumstances(NOW))[0]
    )
    assert "emergency maximum 1h" in str(
        refusals(grant(emergency=True, duration="2h"), path, Circumstances(NOW))[0]
    )


def test_nobody_approves_an_own_request_in_any_group():
    assert run(vote("ada", "approve", "leads")).state == "pending"
    assert not may_approve("ada", frozenset({"leads"}), grant(), policy())


def test_service_accounts_never_approve():
    robot = "system:serviceaccount:ci:bot"

    assert run(vote(robot, "approve", "leads")).state == "pending"


def test_strangers_neither_approve_nor_deny():
    assert run(vote("eve")).state == "pending"
    assert run(vote("eve", "deny")).state == "pending"
    assert run(vote("bob", "deny")).state == "denied"


def test_several_approvals_are_by_several_people():
    two = policy(approvers=[{"users": ["bob", "cyd"], "count": 2}])

    assert standing(grant(vote("bob"), vote("bob")), two).missing == (1,)
    assert standing(grant(vote("bob"), vote("cyd")), two).is_approved


def test_one_person_counts_on_one_level_and_is_placed_where_needed():
    levels = policy(approvers=[{"users": ["bob", "cyd"]}, {"users": ["bob"]}])

    assert standing(grant(vote("bob")), levels).missing in ((1, 0), (0, 1))
    assert standing(grant(vote("bob"), vote("cyd")), levels).is_approved
    assert standing(grant(vote("cyd"), vote("bob")), levels).is_approved


def test_a_policy_without_approvers_grants_at_once():
    assert run(rules=policy(approvers=[])).state == "active"


@pytest.mark.parametrize(
    ("spec", "rules", "text"),
    [
        ({"reason": "short"}, {}, "the reason has 5 characters, grantpolicy/default asks for 10"),
        ({}, {"ticket": {"pattern": "OPS-[0-9]+"}}, "ticket `` is not of the form `OPS-[0-9]+`"),
        ({"ticket": "OPS-1x"}, {"ticket": {"pattern": "OPS-[0-9]+"}}, "ticket `OPS-1x` is not"),
        ({"target": {"kind": "Pod", "name": "web-*"}}, {}, "allows no wildcards"),
        ({"target": {"kind": "Pod"}}, {}, "allows no wildcards"),
        ({"rules": ["*"]}, {}, "allows no wildcards"),
        ({}, {"limits": {"uses": 3}}, "unlimited uses exceed the 3"),
        ({"uses": 4}, {"limits": {"uses": 3}}, "4 uses exceed the 3"),
    ],
)
def test_each_limit_names_itself(spec, rules, text):
    found = refusals(grant(**spec), policy(**rules), Circumstances(NOW))

    assert len(found) == 1
    assert text in found[0].message
    assert found[0].help


@pytest.mark.parametrize(
    ("start", "emergency", "text"),
    [
        ("2026-03-02T14:00:00Z", True, "an emergency begins at once"),
        ("9999-12-31T23:59:59Z", False, "begins more than"),
        ("9999-12-31T23:59:59Z", True, "an emergency begins at once"),
        ("2028-03-02T12:00:00Z", False, "begins more than"),
        ("2027-03-02T12:00:00Z", False, ""),
        ("0001-01-01T00:00:00Z", True, ""),
        ("2026-03-02T12:00:30Z", True, ""),
    ],
)
def test_what_is_agreed_to_begins_while_people_remember_it_and_an_emergency_begins_at_once(
    start, emergency, text
):
    asked = grant(startAt=start, emergency=emergency, duration="30m")
    path = policy(emergency={"maxDuration": "30m"})
    found = " ".join(one.message for one in refusals(asked, path, Circumstances(NOW)))
    assert text in found if text else not found


@pytest.mark.parametrize(
    "wide",
    [
        {"target": {"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}}},
        {"target": {"kind": "Pod", "selector": {"matchLabels": {}}}},
        {"target": {"kind": "Pod", "selector": {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}}},
        {"target": {"kind": "Pod", "selector": {}}},
        {"target": {"kind": "Pod", "name": "web", "selector": {}}},
        {"target": {"kind": "Pod", "name": ""}},
        {"target": {"kind": "Pod", "name": "  "}},
        {"target": {"kind": "Pod", "name": "web-?"}},
        {"target": {"kind": "*", "name": "web"}},
        {"target": {"kind": "apps/*/Deployment", "name": "web"}},
        {"target": {"kind": "*/*", "name": "web"}},
        {"target": {"kind": "Pod/*", "name": "web"}},
        {"target": {"kind": "", "name": "web"}},
        {"rules": []},
        {"rules": ["run-as-non-root", "host-*"]},
        {"policy": "*"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_emergency", [False, True])
def test_a_policy_without_wildcards_lets_nobody_ask_for_more_than_named_objects_and_rules(
    wide, is_emergency: bool
):
    narrow = policy(policies=["*"], emergency={"maxDuration": "4h"})
    found = refusals(grant(emergency=is_emergency, **wide), narrow, Circumstances(NOW))

    assert [one for one in found if "allows no wildcards" in one.message], wide
    assert not refusals(grant(**wide), policy(wildcards=True), Circumstances(NOW))
    asked = next_status(grant(emergency=True, **wide), narrow, Facts(NOW, refusals=found))
    assert asked.state == "denied"


def test_open_grants_and_cool_down_are_limited():
    rules = policy(limits={"openPerUser": 2, "coolDown": "1h"})

    assert not refusals(grant(), rules, Circumstances(NOW, 1, NOW - HOUR))
    assert "has 2 open grants" in refusals(grant(), rules, Circumstances(NOW, 2))[0].message
    early = refusals(grant(), rules, Circumstances(NOW, 0, NOW - HOUR / 2))
    assert early[0].help == "ask again in 30m"


def test_the_first_policy_that_allows_is_chosen_and_else_the_nearest_refuses():
    short, long = policy("a-short", maxDuration="1h"), policy("b-long", maxDuration="8h")
    other = policy("0-other", namespaces=["bank"])

    assert chosen_policy(grant(), [long, short, other], Circumstances(NOW))[0] is long
    found, why = chosen_policy(grant(reason="x", duration="9h"), [short, long], Circumstances(NOW))
    assert (found, len(why)) == (short, 2)
    assert "no grant policy lets `ada`" in str(chosen_policy(grant(), [other], Circumstances(NOW))[1][0])  # fmt: skip


def test_requesters_are_named_or_in_a_group():
    rules = policy(requesters={"users": ["dan"], "groups": ["shop"]})

    assert chosen_policy(grant(), [rules], Circumstances(NOW))[0] is None
    assert chosen_policy(grant(requesterGroups=["shop"]), [rules], Circumstances(NOW))[0] is rules


@pytest.mark.parametrize("length", [1, 47, 48, 55, 56, 63])
@pytest.mark.parametrize("kind", ["Pod", "Deployment", "StatefulSet", "CronJob"])
def test_the_exception_names_the_rules_that_the_policy_has_for_the_kind(kind: str, length: int):
    rule = "x" * length
    match = {"any": [{"resources": {"kinds": ["Pod"]}}]}
    spec = {"rules": [{"name": rule, "match": match, "validate": {"pattern": {"spec": {"a": "1"}}}}]}  # fmt: skip
    written = {"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "no-root"}, "spec": spec}  # fmt: skip
    judging = {one.name for one in expand(parse_policy(written)) if any(kind == named.rpartition("/")[2] for named in one.match["any"][0]["resources"]["kinds"])}  # fmt: skip

    made = exception_of(grant(rules=[rule], target={"kind": kind, "name": "web"}), NOW + HOUR)

    assert set(made["spec"]["exceptions"][0]["ruleNames"]) == {rule} | judging


def test_the_exception_covers_that_rule_and_object_until_that_instant():
    made = exception_of(grant(), NOW + HOUR)

    assert made["metadata"]["annotations"]["kpolicy.io/expires-at"] == "2026-03-02T13:00:00Z"
    assert made["metadata"]["labels"]["cleanup.kyverno.io/ttl"] == "2026-03-02T130000Z"
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert made["spec"]["exceptions"] == [
        {"policyName": "no-root", "ruleNames": ["run-as-non-root", "autogen-run-as-non-root"]}
    ]
    assert made["spec"]["match"]["any"][0]["resources"] == {
        "kinds": ["Deployment"],
        "namespaces": ["shop"],
        "names": ["web"],
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [("duration", "soon"), ("duration", "-1h"), ("duration", ""), ("startAt", "tomorrow"), ("uses", -1), ("uses", "3"), ("idle", 5)],
)  # fmt: skip
def test_a_field_that_cannot_be_read_is_named(field, value):
    with pytest.raises(PolicyError, match=field):
        grant(**{field: value})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172_800), ("1d12h", 129_600), ("1w", 604_800), ("1w2d", 777_600), ("1.5d", 129_600),
        ("0s", 0), ("0", 0), ("", None), ("h", None), ("5", None), ("5x", None), ("d", None), ("-1h", None), ("-1d", None), ("1.2.3s", None),
        ("1" * 40 + "s", None), ("99999999w", None), ("soon", None), ("1 h", None),
    ],
)  # fmt: skip
def test_filters_and_grants_read_one_vocabulary_of_lengths_and_grants_want_more_than_nothing(
    text, seconds
):
    found = duration.length(text)

    assert (None if found is None else found.total_seconds()) == seconds
    assert length_of(text) == (found or None)


def test_go_has_no_days_so_policies_have_none():
    assert duration.parse("1d") is duration.parse("1w") is None


@given(st.integers(min_value=1, max_value=400 * 86_400))
def test_lengths_are_read_as_they_are_written(seconds):
    length = timedelta(seconds=seconds)

    assert length_of(length_text(length)) == length


@given(st.integers(0, 10**8), st.integers(1, 400 * 86_400))
def test_the_expiry_is_exact_for_any_start_and_length(offset, seconds):
    at = NOW + timedelta(seconds=offset)
    text = length_text(timedelta(seconds=seconds))
    asked = grant(vote("bob"), duration=text, status={"state": "pending"})
    status = next_status(asked, policy(maxDuration="400d"), Facts(at))

    assert status.expires_at == at + timedelta(seconds=seconds)


@given(
    st.lists(
        st.builds(
            vote,
            st.sampled_from(["ada", "bob", "cyd", "eve", "system:serviceaccount:a:b"]),
            st.sampled_from(["approve", "deny", "withdraw", "drop", "revoke", "dance"]),
            st.sampled_from(["leads", "staff"]),
        ),
        max_size=6,
    ),
    st.lists(st.integers(0, 40 * 3600), max_size=6),
)
def test_whatever_is_decided_whenever_states_only_go_forward(decisions, moments):
    order = {"draft": 0, "pending": 1, "scheduled": 2, "active": 3, **dict.fromkeys(FINAL, 4)}
    status, seen = {}, []
    for number, seconds in enumerate(sorted(moments)):
        asked = grant(*decisions[: number + 1], status=status)
        found = next_status(asked, policy(), Facts(NOW + timedelta(seconds=seconds)))
        status = found.fields()
        seen.append(found)

    assert [order[one.state] for one in seen] == sorted(order[one.state] for one in seen)
    assert len({one.expires_at for one in seen if one.expires_at}) <= 1
    assert all(one.state in FINAL | OPEN for one in seen)


def test_a_grant_that_waits_for_its_start_can_be_dropped_revoked_and_withdrawn():
    later = {"startAt": "2026-03-02T15:00:00Z"}
    first = run(vote("bob"), **later).fields()
    for by, verdict, state in (("ada", "drop", "dropped"), ("ada", "withdraw", "withdrawn"), ("bob", "revoke", "revoked")):  # fmt: skip
        asked = grant(vote("bob"), vote(by, verdict), status=first, **later)
        assert next_status(asked, policy(), Facts(NOW)).state == state


def test_people_are_warned_with_a_fifth_left_and_five_minutes_ahead():
    status = run(vote("bob"))

    assert warnings_of(status) == [NOW + timedelta(hours=3, minutes=12), NOW + timedelta(hours=3, minutes=55)]  # fmt: skip
    assert warnings_of(run()) == []


def test_nobody_is_warned_ahead_of_the_start():
    asked = run(vote("bob"), duration="5m")

    assert warnings_of(asked) == [NOW + timedelta(minutes=4)]


def test_what_ends_by_itself_is_ended_by_us_and_says_why():
    active = grant(vote("bob"), status=run(vote("bob")).fields())
    pending = grant(status=run().fields())

    assert next_status(active, None, Facts(NOW + 4 * HOUR)).ended_by == "kpolicy"
    late = next_status(pending, policy(), Facts(NOW + timedelta(days=1)))
    assert (late.ended_by, late.message) == ("kpolicy", "nobody decided in time")
    gone = next_status(pending, None, Facts(NOW))
    assert (gone.state, gone.ended_by, gone.message) == ("denied", "kpolicy", "its grant policy is gone")  # fmt: skip
    used = run(vote("bob"), uses=2)
    spent = grant(vote("bob"), status=used.fields(), uses=2)
    over = next_status(spent, policy(), Facts(NOW + HOUR, 2, NOW))
    assert (over.state, over.ended_by, over.message) == ("exhausted", "kpolicy", "used 2 times")


def test_who_may_not_decide_is_told_why_and_others_nothing():
    asked = grant(vote("bob"))
    nobody = frozenset()

    assert (
        cannot_decide("ada", frozenset({"leads"}), asked, policy(), "approve") == "an own request"
    )
    assert cannot_decide("ada", nobody, asked, None, "approve") == "an own request"
    assert (
        cannot_decide("eve", nobody, asked, policy(), "deny")
        == "no approver of grantpolicy/default"
    )
    assert cannot_decide("bob", nobody, asked, policy(), "approve") == "decided so already"
    assert cannot_decide("bob", nobody, asked, policy(), "deny") == ""
    assert cannot_decide("cyd", nobody, asked, policy(), "approve") == ""
    assert cannot_decide("eve", nobody, asked, None, "approve") == ""


@pytest.mark.parametrize("end", [None, "revoke"])
def test_a_status_is_read_as_it_was_written(end):
    active = grant(vote("bob"), status=run(vote("bob")).fields())
    decisions = [vote("bob"), {**vote("bob", end), "comment": "enough"}] if end else [vote("bob")]
    status = next_status(grant(*decisions, status=active.status), policy(), Facts(NOW + HOUR))

    assert status.state == ("revoked" if end else "active")
    assert status_of(grant(status=status.fields())) == status
    assert status_of(grant()).state == status_of(grant(status={"state": ""})).state == "draft"


def test_a_refused_request_is_denied_by_us():
    denied = next_status(grant(), None, Facts(NOW))

    assert (denied.state, denied.ended_by) == ("denied", "kpolicy")
    assert denied.message == "refused: no grant policy fits"


def test_a_grant_is_used_up_five_seconds_after_its_last_use_and_not_before():
    asked = grant(vote("bob"), uses=3)

    assert exhaustion_of(asked, Facts(NOW, 2, NOW)) is None
    assert exhaustion_of(asked, Facts(NOW, 3, NOW)) == NOW + timedelta(seconds=5)
    assert exhaustion_of(asked, Facts(NOW, 4, None)) == NOW
    assert exhaustion_of(grant(vote("bob")), Facts(NOW, 9, NOW)) is None


def test_a_grant_that_nobody_uses_ends_by_us():
    idle = {"idle": "1h"}
    active = grant(vote("bob"), status=run(vote("bob"), **idle).fields(), **idle)
    over = next_status(active, policy(), Facts(NOW + 2 * HOUR))

    assert (over.state, over.ended_by) == ("idle-expired", "kpolicy")
    assert over.message == "not used for too long"


def test_nobody_is_warned_of_a_grant_that_has_not_begun_or_has_no_end():
    begun = run(vote("bob"))

    assert warnings_of(begun) != []
    assert warnings_of(replace(begun, starts_at=None)) == []
    assert warnings_of(replace(begun, expires_at=None)) == []


def test_every_end_is_final_by_its_name():
    ends = "expired revoked dropped idle-expired exhausted denied withdrawn timed-out"

    assert frozenset(ends.split()) == FINAL
