"""Rows: what of a cluster's objects is shown, value by value."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from engine import vocabulary
from kubectl_kpolicy.actions.screens import LISTINGS, listing_named
from kubectl_kpolicy.cluster import (
    blocks,
    cleanup,
    codes,
    exceptions,
    grants,
    health,
    policies,
    pulse,
)
from kubectl_kpolicy.cluster.cache import ClusterCache, Trouble
from kubectl_kpolicy.cluster.details import described, rule_of
from kubectl_kpolicy.cluster.violations import LISTING as VIOLATIONS
from kubectl_kpolicy.cluster.violations import all_rows, is_failure
from kubectl_kpolicy.output.cells import cell_text, mark_of
from kubectl_kpolicy.output.rows import Row, sort_rows
from kubectl_kpolicy.session.identity import Identity
from tests.plugin.scene import (
    NOW,
    ago,
    exception,
    grant,
    hindered,
    objects,
    policy,
    report,
    result,
    world,
)


def by(rows: list[Row], **cells: object) -> Row:
    found = [row for row in rows if all(row.cells[name] == value for name, value in cells.items())]
    assert len(found) == 1, [row.cells for row in rows]
    return found[0]


def test_a_result_is_one_row_with_resource_policy_rule_and_instant() -> None:
    row = by(all_rows(world()), resource="Pod/debug-shell", policy="disallow-host-namespaces")

    assert row.cells["severity"] == "critical"
    assert row.cells["result"] == "fail"
    assert row.cells["namespace"] == "payments"
    assert row.cells["rule"] == "host-namespaces"
    assert row.moment("age") == NOW - timedelta(minutes=2)


def test_a_row_for_machines_has_the_resource_and_the_policy() -> None:
    obj = by(all_rows(world()), resource="Pod/debug-shell", severity="critical").object

    assert (obj["apiVersion"], obj["kind"]) == ("kpolicy.io/v1alpha1", "Violation")
    assert obj["resource"]["name"] == "debug-shell"
    assert obj["policy"] == "disallow-host-namespaces"
    assert obj["metadata"]["namespace"] == "payments"


def test_an_older_report_without_scope_names_objects_in_its_results() -> None:
    old = {
        "kind": "PolicyReport",
        "metadata": {"name": "polr-ns-a", "namespace": "a"},
        "results": [
            {"policy": "p", "rule": "r", "result": "fail",
             "resources": [{"kind": "Pod", "name": "x", "namespace": "a"}, {"kind": "Pod", "name": "y", "namespace": "a"}]}
        ],
    }  # fmt: skip

    rows = all_rows(world({"reports": [old]}))

    assert [row.cells["resource"] for row in rows] == ["Pod/x", "Pod/y"]


def test_keys_of_rows_differ_and_stay_when_a_result_changes() -> None:
    rows = all_rows(world())
    assert len({row.key for row in rows}) == len(rows)

    there = world({"reports": [report("Pod", "x", "a", result("p", "r", "fail", "high", "no"))]})
    before = all_rows(there)[0].key
    there.put("reports", report("Pod", "x", "a", result("p", "r", "pass", "high", "yes")))

    assert [(row.key, row.cells["result"]) for row in all_rows(there)] == [(before, "pass")]


def test_failures_are_fail_warn_and_error() -> None:
    assert sorted({row.text("result") for row in all_rows(world()) if is_failure(row)}) == [
        "error",
        "fail",
        "warn",
    ]


def test_violations_sort_by_severity_then_newest_first() -> None:
    rows = sort_rows(all_rows(world()), VIOLATIONS, VIOLATIONS.sort)

    assert [row.text("severity") for row in rows[:3]] == ["critical", "high", "high"]
    ages = [row.moment("age") for row in rows if row.text("severity") == "high"]
    assert ages == sorted(ages, reverse=True)


@pytest.mark.parametrize(
    "hostile", [None, [], "x", 3, {"results": "x"}, {"results": [None, 3, {"resources": 5}]}]
)
def test_reports_of_any_shape_are_read_without_an_error(hostile: object) -> None:
    obj = {"kind": "PolicyReport", "metadata": {"name": "x"}, "results": hostile}

    assert isinstance(all_rows(world({"reports": [obj]})), list)


def test_only_denied_requests_are_blocks() -> None:
    rows = blocks.block_rows(world(), NOW)

    assert sorted(row.text("resource") for row in rows) == ["Deployment/indexer", "Pod/debug-shell"]
    assert by(rows, resource="Pod/debug-shell").cells["count"] == 3
    assert by(rows, resource="Pod/debug-shell").cells["policy"] == "disallow-host-namespaces"


def test_a_policy_counts_its_results_and_exceptions() -> None:
    row = by(policies.policy_rows(world(), NOW), name="require-run-as-nonroot")

    assert (row.cells["fail"], row.cells["pass"], row.cells["exceptions"]) == (2, 0, 2)
    assert (row.cells["mode"], row.cells["ready"]) == ("enforce", "yes")


def test_the_mode_of_a_policy_is_mixed_where_rules_differ() -> None:
    obj = policy("p", "Enforce", "high", ["a", "b"])
    obj["spec"]["rules"][1]["validate"] = {"message": "m"}

    assert policies.mode(obj) == "mixed"
    assert policies.mode({"spec": {"rules": [{"mutate": {}}]}}) == "-"


def test_an_exception_shows_when_it_ends_and_what_is_wrong_with_it() -> None:
    rows = exceptions.exception_rows(world(), NOW)

    hotfix = by(rows, name="web-hotfix")
    assert hotfix.moment("left") == NOW + timedelta(minutes=12, seconds=41)
    assert (hotfix.cells["state"], hotfix.cells["drift"]) == ("active", "unused")
    old = by(rows, name="old-migration")
    assert (old.cells["state"], old.cells["drift"]) == ("expired", "expired, orphaned")
    legacy = by(rows, name="search-legacy")
    assert (legacy.cells["state"], legacy.cells["uses"]) == ("unlimited", 1)
    assert legacy.cells["drift"] == "no expiry"


@pytest.mark.parametrize(
    ("change", "concern"),
    [
        (lambda one: one["spec"]["exceptions"][0].update(ruleNames=["*"]), "over-broad"),
        (lambda one: one["spec"]["match"]["any"][0]["resources"].update(kinds=["*"]), "over-broad"),
        (lambda one: one["spec"].update(match={"any": [{"resources": {"kinds": ["Pod"]}}]}), "over-broad"),
        (lambda one: one["spec"]["exceptions"][0].update(policyName="gone"), "orphaned"),
        (lambda one: one["spec"]["exceptions"][0].update(ruleNames=["gone"]), "orphaned"),
        (lambda one: one.update(spec={"exceptions": 5}), "unreadable"),
    ],
)  # fmt: skip
def test_each_concern_about_an_exception_is_found(change, concern: str) -> None:
    one = exception(
        "e", "a", "require-labels", ["check-team"], ["web"], expires_at="2027-01-01T00:00:00Z"
    )
    there = {**objects(), "exceptions": [one]}
    assert concern not in by(exceptions.exception_rows(world(there), NOW), name="e").text("drift")

    change(one)

    assert concern in by(exceptions.exception_rows(world(there), NOW), name="e").text("drift")


@pytest.mark.parametrize("length", [10, 56, 63])
@pytest.mark.parametrize("prefix", ["", "autogen-", "autogen-cronjob-"])
def test_generated_rules_are_no_orphans(length: int, prefix: str) -> None:
    there = objects()
    (policy,) = (one for one in there["clusterpolicies"] if one["metadata"]["name"] == "require-labels")  # fmt: skip
    policy["spec"]["rules"][0]["name"] = "r" * length
    generated = (prefix + "r" * length)[:63]
    one = exception("e", "a", "require-labels", [generated], ["web"])

    row = by(exceptions.exception_rows(world({**there, "exceptions": [one]}), NOW), name="e")

    assert "orphaned" not in row.text("drift")
    assert rule_of(policy, generated) is policy["spec"]["rules"][0]


def test_nothing_is_orphaned_where_policies_cannot_be_read() -> None:
    there = hindered(Trouble.FORBIDDEN, "clusterpolicies")
    there.replace("exceptions", [exception("e", "a", "p", ["r"], ["web"])], NOW)

    assert "orphaned" not in by(exceptions.exception_rows(there, NOW), name="e").text("drift")


def test_an_exception_not_used_for_a_month_is_stale() -> None:
    event = {
        "kind": "Event", "metadata": {"name": "x"}, "reason": "PolicySkipped", "lastTimestamp": ago(days=40),
        "involvedObject": {"kind": "PolicyException", "namespace": "payments", "name": "web-hotfix"},
    }  # fmt: skip

    row = by(
        exceptions.exception_rows(world({**objects(), "uses": [event]}), NOW), name="web-hotfix"
    )

    assert row.cells["drift"] == "stale"


def test_an_exception_was_used_as_often_as_results_events_or_its_grant_tell_at_most() -> None:
    def used(source: str, count: int) -> dict:
        about = {"kind": "PolicyException", "namespace": "payments", "name": "grant-g"}
        return {
            "kind": "Event",
            "metadata": {"name": source},
            "reason": "PolicySkipped",
            "lastTimestamp": ago(minutes=count),
            "involvedObject": about,
            "reportingComponent": f"kyverno-{source}",
            "count": count,
        }

    def uses(**there: list) -> object:
        made = exception("grant-g", "payments", "p", ["r"], ["web"])
        found = exceptions.exception_rows(world({**objects(), "exceptions": [made], **there}), NOW)
        return by(found, name="grant-g").cells["uses"]

    counted = grant("g", "active", "ada", uses=5)
    assert uses() == 0
    assert uses(uses=[used("scan", 9)]) == 0
    assert uses(uses=[used("admission", 3), used("scan", 9)]) == 3
    assert uses(uses=[used("admission", 3)], grants=[counted]) == 5


def test_a_grant_counts_down_only_while_it_can_change() -> None:
    rows = grants.grant_rows(world(), NOW)

    assert by(rows, name="web-nonroot").moment("left") == NOW + timedelta(minutes=12, seconds=41)
    assert by(rows, name="yesterday").cells["left"] is None
    assert by(rows, name="web-nonroot").cells["approver"] == "bob"
    assert by(rows, name="web-nonroot").cells["rules"] == "require-run-as-nonroot/run-as-non-root"


def test_the_inbox_holds_pending_grants_with_what_speaks_against_them() -> None:
    (row,) = grants.inbox_rows(world(), NOW)

    assert row.cells["requester"] == "carol"
    assert row.cells["risk"] == "no ticket"
    assert row.cells["reach"] == "2 now"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        ("carol", "an own request"),
        ("erin", "no approver of grantpolicy/default"),
        ("bob", ""),
        ("dora", "decided so already"),
    ],
)
def test_the_inbox_tells_why_who_looks_cannot_decide(user: str, why: str) -> None:
    asked = grant("debug", "pending", "carol", grantPolicy="default", spec={"decisions": [{"by": "dora", "verdict": "approve"}]})  # fmt: skip
    asked["spec"]["reason"] = "reproduce the crash"
    policy = {"kind": "GrantPolicy", "metadata": {"name": "default"}, "spec": {"approvers": [{"users": ["bob", "dora"], "count": 2}]}}  # fmt: skip
    there = world({"grants": [asked], "grantpolicies": [policy]})

    assert grants.inbox_rows(there, NOW)[0].text("refused") == ""
    assert grants.waiting_for(there, NOW) == 1
    there.viewer = Identity(user)

    (row,) = grants.inbox_rows(there, NOW)
    assert row.text("refused") == why
    assert grants.waiting_for(there, NOW) == (0 if why else 1)


def test_a_grant_that_nobody_filled_still_shows() -> None:
    rows = grants.grant_rows(world({"grants": [{"kind": "Grant", "metadata": {"name": "x"}}]}), NOW)

    assert rows[0].cells["state"] == "draft"


def test_emergencies_and_wildcards_are_risks() -> None:
    wide = grant("w", "pending", "x", target="*", length="48h", spec={"emergency": True})

    (row,) = grants.inbox_rows(world({"grants": [wide]}), NOW)

    assert row.cells["risk"] == "emergency, wildcard, over a day"


def test_an_unused_code_of_a_journal_is_never_shown_whole() -> None:
    rows = [
        row for row in codes.code_rows(world(), NOW) if row.text("bound") == "journal platform/otp"
    ]

    assert [row.cells["state"] for row in rows] == ["unused", "used"]
    assert "ua8v92pg" not in repr(rows)
    assert rows[1].cells["usedby"] == "kubernetes-admin"
    assert rows[1].moment("usedat") == NOW - timedelta(hours=1)


def test_a_code_past_its_end_is_expired_whatever_its_object_says() -> None:
    there = objects()
    there["codes"][0]["spec"]["expiresAt"] = ago(seconds=1)

    assert by(codes.code_rows(world(there), NOW), name="otc-7f3a").cells["state"] == "expired"


def test_cleanup_shows_the_next_run_and_labels_that_cannot_be_read() -> None:
    rows = cleanup.cleanup_rows(world(), NOW)

    assert by(rows, by="ClusterCleanupPolicy/bare-pods").moment("due") == NOW
    assert by(rows, name="pi").moment("due") == NOW + timedelta(minutes=6)
    assert by(rows, name="broken").cells["state"] == "unreadable label"


def deleting(name: str, namespace: str = "", **metadata: str) -> dict[str, object]:
    place = {"namespace": namespace} if namespace else {}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "resourceNames": ["a"]}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedDeletingPolicy" if namespace else "DeletingPolicy",
        "metadata": {"name": name, "creationTimestamp": ago(minutes=30), **place, **metadata},
        "spec": {"schedule": "0 * * * *", "matchConstraints": {"resourceRules": [rule]}},
    }


def test_deleting_policies_are_timers_like_any_clean_up() -> None:
    there = objects()
    broken = {**deleting("broken"), "spec": {"schedule": "soon", "matchConstraints": {}}}
    there["celpolicies"] = [deleting("old"), deleting("own", "shop"), broken]
    rows = cleanup.cleanup_rows(world(there), NOW)

    old = by(rows, by="DeletingPolicy/old")
    assert (old.text("kind"), old.text("name"), old.text("action")) == ("pods", "a", "delete on `0 * * * *`")  # fmt: skip
    assert old.moment("due") == NOW
    assert by(rows, by="NamespacedDeletingPolicy/own").text("namespace") == "shop"
    assert "schedule" in by(rows, by="DeletingPolicy/broken").text("state")
    there["celpolicies"][0]["metadata"]["annotations"] = {vocabulary.CLEANUP_AFTER: "tomorrow"}
    assert by(cleanup.cleanup_rows(world(there), NOW), by="DeletingPolicy/old").text("state") == "postponed"  # fmt: skip


def test_what_is_left_of_a_clean_up_is_nothing_when_it_is_due() -> None:
    left = cleanup.LISTING.column("left")
    assert cell_text(left, NOW - timedelta(minutes=4), NOW) == "due"
    assert cell_text(grants.GRANTS.column("left"), NOW, NOW) == "ended"


def test_a_postponed_or_paused_cleanup_says_so() -> None:
    there = objects()
    there["ttl"][0]["metadata"]["annotations"] = {vocabulary.CLEANUP_AFTER: "2026-03-14T18:00:00Z"}
    there["clustercleanuppolicies"][0]["metadata"]["annotations"] = {
        vocabulary.CLEANUP_PAUSE: "true"
    }
    rows = cleanup.cleanup_rows(world(there), NOW)

    assert by(rows, name="pi").cells["state"] == "postponed"
    assert by(rows, name="pi").moment("due") == NOW + timedelta(hours=6)
    paused = by(rows, by="ClusterCleanupPolicy/bare-pods")
    assert (paused.text("state"), paused.moment("due")) == ("paused", NOW)


def test_nothing_is_counted_down_to_a_clean_up_that_waits_for_somebody_to_lift_its_hold() -> None:
    there = objects()
    there["ttl"][0]["metadata"]["annotations"] = {vocabulary.CLEANUP_SKIP: "ann: it is needed"}
    (policy,) = there["clustercleanuppolicies"]
    policy["metadata"]["annotations"] = {vocabulary.CLEANUP_PAUSE: "true"}
    rows = cleanup.cleanup_rows(world(there), NOW)
    (soon,) = (one for one in pulse.gauges(world(there), NOW) if one.id == "cleanup")

    assert by(rows, name="pi").moment("left") is None
    assert by(rows, by="ClusterCleanupPolicy/bare-pods").moment("left") is None
    assert soon.text == "0"
    policy["metadata"]["annotations"] = {vocabulary.CLEANUP_SKIP: NOW.isoformat()}
    skipped = by(cleanup.cleanup_rows(world(there), NOW), by="ClusterCleanupPolicy/bare-pods")
    assert (skipped.text("state"), skipped.moment("left")) == ("skip", NOW)


def test_health_names_what_is_missing_with_the_command_that_mends_it() -> None:
    found = {check.name: check for check in health.checks(hindered(Trouble.MISSING), NOW)}

    assert found["clusterpolicies.kyverno.io"].status == "fail"
    assert "install --crds-only" in found["grants.kpolicy.io"].fix
    assert "reports.openreports.io" not in found


def test_health_of_a_sound_cluster_names_the_policy_that_is_not_ready() -> None:
    found = {check.name: check for check in health.checks(world(), NOW)}

    assert found["engine"].status == "ok"
    assert found["policies"].detail == "not ready: restrict-image-registries"
    assert found["lease kpolicy"].status == "ok"


def test_health_names_what_an_annotation_keeps_from_being_cleaned_up_for_good() -> None:
    there = objects()
    there["ttl"][0]["metadata"]["annotations"] = {vocabulary.CLEANUP_PAUSE: "2026-03-14 bob: mine"}
    there["ttl"][1]["metadata"]["annotations"] = {vocabulary.CLEANUP_AFTER: "2026-03-20T00:00:00Z"}
    (held,) = [one for one in health.checks(world(there), NOW) if one.name == "holds"]

    assert (held.status, held.detail.rpartition(": ")[2]) == ("warn", "Job/pi")
    assert not [one for one in health.checks(world(), NOW) if one.name == "holds"]


def test_two_engines_at_once_are_a_failure() -> None:
    there = objects()
    there["validatingwebhooks"].append(
        {"kind": "V", "metadata": {"name": "kyverno-x"}, "webhooks": []}
    )

    assert {check.name: check.status for check in health.checks(world(there), NOW)}[
        "engine"
    ] == "fail"


def test_pulse_counts_what_its_doors_lead_to() -> None:
    from kubectl_kpolicy.filter import compile_filter

    there = world()
    for gauge in pulse.gauges(there, NOW):
        listing = LISTINGS[gauge.screen]
        rows = listing.rows(there, NOW)
        if listing.failures is not None and gauge.screen == "violations":
            rows = [row for row in rows if listing.failures(row)]
        kept = [row for row in rows if compile_filter(gauge.where, listing).keeps(row, NOW)]
        count = sum(row.cells["count"] for row in kept) if gauge.screen == "blocks" else len(kept)
        assert count == gauge.value, gauge


@pytest.mark.parametrize("there", [ClusterCache(), hindered(Trouble.FORBIDDEN), hindered(Trouble.UNREACHABLE)])  # fmt: skip
def test_pulse_has_no_number_and_no_all_clear_where_nothing_was_read(there: ClusterCache) -> None:
    found = pulse.gauges(there, NOW)

    assert {gauge.value for gauge in found} == {None}
    assert {gauge.text for gauge in found} == {"?"}
    assert "success" not in {gauge.role for gauge in found}
    assert all(gauge.knowledge.brief(NOW) for gauge in found)


def test_pulse_says_when_there_may_be_more_than_was_counted() -> None:
    def failures(there: ClusterCache) -> str:
        return next(gauge.text for gauge in pulse.gauges(there, NOW) if gauge.id == "failures")

    assert failures(world(without=("clusterreports",))) == "6+"
    assert failures(world({}, without=("clusterreports",))) == "?"


def test_a_policy_has_no_number_of_failures_where_reports_cannot_be_read() -> None:
    blind = world(without=("reports", "clusterreports", "exceptions"))
    seen = policies.policy_rows(world({**objects(), "reports": [], "clusterreports": []}), NOW)

    for row in policies.policy_rows(blind, NOW):
        assert [row.cells[name] for name in ("fail", "pass", "exceptions")] == [None] * 3
    assert {row.cells["fail"] for row in seen} == {0}


def test_pulse_says_how_old_its_numbers_are_once_the_server_is_away() -> None:
    there = world()
    there.hindered("reports", hindered(Trouble.UNREACHABLE).problem("reports"))
    found = {gauge.id: gauge for gauge in pulse.gauges(there, NOW)}
    later = NOW + timedelta(minutes=7)

    assert found["failures"].text == "7"
    assert found["failures"].knowledge.brief(later) == "stale 7m"
    assert "cluster unreachable" in found["failures"].knowledge.said(later)
    assert found["active"].knowledge.brief(later) == ""


def test_every_listing_has_rows_with_all_its_cells_and_unique_names() -> None:
    for listing in LISTINGS.values():
        rows = listing.rows(world(), NOW)
        assert rows, listing.noun
        for column in listing.columns:
            assert all(
                column.id in row.cells or column.wide or listing.noun == "codes" for row in rows
            ), (listing.noun, column.id)
        names = [name for column in listing.columns for name in {column.id, *column.aliases}]
        assert len(names) == len(set(names)), listing.noun
        assert listing.empty
        assert listing.next_step
    words = [word for listing in LISTINGS.values() for word in (listing.noun, *listing.aliases)]
    assert len(words) == len(set(words))
    assert listing_named("polex") is LISTINGS["exceptions"]


def test_an_empty_world_has_no_rows_and_no_errors() -> None:
    for listing in LISTINGS.values():
        if listing.noun != "health":
            assert listing.rows(ClusterCache(), NOW) == []


def test_a_list_shows_a_message_without_the_words_that_all_of_them_begin_with() -> None:
    text = "validation error: Containers do not run as root."
    for noun in ("violations", "blocks"):
        column = LISTINGS[noun].column("message")
        row = Row("k", {"message": text})
        assert column.brief(row, NOW) == "Containers do not run as root."
        assert row.text("message") == text
        assert column.brief(Row("k", {"message": "no validation error: x"}), NOW) == "no validation error: x"  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "reason", "shown"),
    [
        ("postpone", "2026-03-14T15:28:43Z bob: still in use", "until 15:28: still in use"),
        ("postpone", "2026-03-16T15:28:43Z bob: still: in use", "until 2026-03-16 15:28: still: in use"),
        ("postpone", "2026-03-14T15:28:43Z bob: ", "until 15:28"),
        ("postpone", "2026-03-14T15:28:43Z", "2026-03-14T15:28:43Z"),
        ("skip", "2026-03-14T15:00:00Z bob: not now", "the run of 15:00: not now"),
        ("pause", "true system:serviceaccount:a:b: the import", "the import"),
        ("resume", "true bob: done", "true bob: done"),
        ("request", "true bob: still in use", "true bob: still in use"),
    ],
)  # fmt: skip
def test_a_list_shows_why_a_clean_up_was_held_back_not_the_annotation(
    verb: str, reason: str, shown: str
) -> None:
    column = LISTINGS["audit"].column("reason")

    assert column.brief(Row("k", {"verb": verb, "reason": reason}), NOW) == shown


def test_a_reach_that_nobody_computed_is_a_dash_in_the_list() -> None:
    column = LISTINGS["inbox"].column("reach")

    assert column.brief(Row("k", {"reach": ""}), NOW) == "-"
    assert column.brief(Row("k", {"reach": "2 now"}), NOW) == "2 now"


def heard(replica: str, seconds: float, grant: str = "night-shift") -> dict[str, Any]:
    at = NOW - timedelta(minutes=1) + timedelta(seconds=seconds)
    return {
        "metadata": {"name": f"{grant}.{replica}.{seconds}", "namespace": "payments"},
        "involvedObject": {"kind": "Grant", "namespace": "payments", "name": grant},
        "eventTime": f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
        "reportingInstance": replica,
    }


def told_of_the_end(ends: list[dict[str, Any]], minutes: int = 1, **how: Any) -> list[str]:
    """Return what the details of a revoked grant say of who has heard of that."""
    ended = {"startsAt": ago(days=1), "endedAt": ago(minutes=minutes)}
    found = {"grants": [grant("night-shift", "revoked", "erin", **ended)], "ends": ends}
    there = world(found, **how)
    [row] = grants.GRANTS.rows(there, NOW)
    text = described(row, grants.GRANTS, there, NOW)
    return [line.strip() for line in text.splitlines() if "taken" in line]


def test_the_details_of_a_revoked_grant_say_which_replica_has_taken_that_and_after_how_long():
    before, other = heard("kpolicy-b", -40), heard("kpolicy-b", 1, grant="web")
    assert told_of_the_end([heard("kpolicy-a", 2), heard("kpolicy-c", 41), before, other]) == [
        "taken by kpolicy-a 2s after the end",
        "taken by kpolicy-c 41s after the end",
    ]
    assert told_of_the_end([heard("kpolicy-a", -1)]) == ["taken by kpolicy-a 0s after the end"]
    assert told_of_the_end([]) == ["no replica has taken the end yet, 60s after it"]


def test_who_has_heard_of_an_end_is_not_told_where_nobody_knows():
    assert told_of_the_end([], minutes=61) == []
    assert told_of_the_end([], without=("ends",)) == []


def test_who_ended_a_grant_is_not_called_one_of_its_approvers() -> None:
    said = [{"by": "bob", "verdict": "approve"}, {"by": "eve", "verdict": "revoke"}]
    there = world({"grants": [grant("web", "revoked", "alice", spec={"decisions": said})]})

    assert by(grants.GRANTS.rows(there, NOW)).cells["approver"] == "bob"


def test_what_the_trail_says_was_refused_is_marked_as_a_warning() -> None:
    assert mark_of("refused").role == "warning"
