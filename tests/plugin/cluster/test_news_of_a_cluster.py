"""News: what is told, to whom, and that it is told once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.cache import Trouble
from kubectl_kpolicy.cluster.news import Watch
from kubectl_kpolicy.filter import compile_filter
from kubectl_kpolicy.session.identity import Identity
from tests.plugin.scene import (
    NOW,
    ahead,
    grant,
    hindered,
    objects,
    problem_with,
    report,
    result,
    world,
)


def seen(*grants, viewer: str = ""):
    """Return a cluster with these grants that was looked at once, and who looks."""
    there = world({"grants": list(grants), "reports": objects()["reports"]})
    there.viewer = Identity(viewer) if viewer else None
    watch = Watch()
    assert [one for one in watch.news(there, NOW) if "ends in" not in one.text] == []
    return there, watch


def decided(state: str, verdict: str = "approve", requester: str = "alice", **status):
    spec = {"decisions": [{"by": "bob", "verdict": verdict}]}
    return grant("web", state, requester, expiresAt=ahead(hours=1), spec=spec, **status)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (decided("active"), "is approved by bob"),
        (decided("denied", "deny"), "is denied: bob (deny)"),
        (decided("expired"), "has ended: expired"),
        (decided("revoked"), "has ended: revoked"),
    ],
)
def test_a_decision_and_an_end_are_told_once_with_the_way_there(after, said: str) -> None:
    there, watch = seen(grant("web", "pending", "alice"))
    there.put("grants", after)

    found = watch.news(there, NOW)

    assert [one.text for one in found] == [
        f"require-run-as-nonroot/run-as-non-root for Deployment/web {said}"
    ]
    kept = compile_filter(found[0].where, LISTINGS[found[0].screen])
    rows = LISTINGS[found[0].screen].rows(there, NOW)
    assert [row.text("name") for row in rows if kept.keeps(row, NOW)] == ["web"]
    assert watch.news(there, NOW) == []


def test_the_last_five_minutes_are_told_once() -> None:
    there, watch = seen(grant("web", "active", "alice", expiresAt=ahead(minutes=20)))

    assert watch.news(there, NOW + timedelta(minutes=14)) == []
    assert [
        one.text.partition(" ends ")[2] for one in watch.news(there, NOW + timedelta(minutes=15))
    ] == ["in 5m"]
    assert watch.news(there, NOW + timedelta(minutes=16)) == []


def test_new_critical_failures_are_one_notice() -> None:
    there, watch = seen()
    for name in ("one", "two"):
        there.put(
            "reports",
            report("Pod", name, "payments", result("host", "h", "fail", "critical", "no")),
        )
    there.put(
        "reports", report("Pod", "three", "payments", result("tag", "t", "fail", "high", "no"))
    )

    found = watch.news(there, NOW)

    assert [one.text for one in found] == ["new critical failure and 1 more: host on Pod/one"]
    assert (found[0].screen, found[0].where) == ("violations", "sev=critical")


def test_others_grants_are_nobodys_news_and_requests_are_those_of_who_may_decide() -> None:
    there, watch = seen(grant("web", "pending", "alice"), viewer="carol")
    there.put("grants", decided("active"))
    there.put("grants", grant("mine", "pending", "carol"))

    assert watch.news(there, NOW) == []


def test_who_decided_hears_of_the_end() -> None:
    there, watch = seen(decided("active"), viewer="bob")
    there.put("grants", decided("expired"))

    assert [one.text.partition(" has ")[2] for one in watch.news(there, NOW)] == ["ended: expired"]


def test_a_new_request_leads_to_the_inbox() -> None:
    there, watch = seen()
    there.put("grants", grant("web", "pending", "alice"))

    assert [(one.text.partition(" for ")[0], one.screen) for one in watch.news(there, NOW)] == [
        ("alice asks", "inbox")
    ]


def test_nothing_is_told_of_what_cannot_be_read() -> None:
    there, watch = seen(grant("web", "active", "alice", expiresAt=ahead(hours=1)))
    there.remove("grants", ("Grant", "payments", "web"))
    there.hindered("grants", problem_with("grants", Trouble.UNREACHABLE))

    assert watch.news(there, NOW) == []
    assert Watch().news(hindered(Trouble.FORBIDDEN), NOW) == []
