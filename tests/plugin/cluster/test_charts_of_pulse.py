"""What Pulse draws: hours by severity, places that fail, compliance by framework, and numbers of before."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kubectl_kpolicy.actions.screens import LISTINGS
from kubectl_kpolicy.cluster.cache import Trouble
from kubectl_kpolicy.cluster.charts import (
    Framework,
    Sample,
    before,
    by_hour_and_severity,
    compliance,
    frameworks_of,
    heat_map,
    load_samples,
    numbers_of,
    sampled,
    save_samples,
)
from kubectl_kpolicy.filter import compile_filter, quoted
from kubectl_kpolicy.tui.widgets.gauges import difference
from tests.plugin.scene import NOW, hindered, policy, report, result, world


def test_failures_are_counted_by_the_hour_of_the_clock_and_severity() -> None:
    hours = by_hour_and_severity(world(), NOW + timedelta(minutes=5))

    assert hours[-1] == {}
    assert hours[-2] == {"critical": 1, "high": 2, "": 1}
    assert hours[-5] == {"medium": 1}
    assert sum(sum(hour.values()) for hour in hours) == 5


def test_the_map_has_the_most_failing_first_and_the_worst_of_each_place() -> None:
    heat = heat_map(world())

    assert (heat.policies[0], heat.namespaces[0]) == ("require-run-as-nonroot", "payments")
    assert heat.counts["require-run-as-nonroot", "payments"] == 2
    assert heat.worst["disallow-host-namespaces", "payments"] == "critical"
    assert sum(heat.counts.values()) == 7


def test_each_place_of_the_map_leads_to_as_many_rows() -> None:
    there, listing = world(), LISTINGS["violations"]
    heat = heat_map(there)

    for (name, place), count in heat.counts.items():
        kept = compile_filter(f"policy={quoted(name)} ns={quoted(place)}", listing)
        rows = listing.rows(there, NOW)
        assert sum(kept.keeps(row, NOW) for row in rows if listing.failures(row)) == count


@pytest.mark.parametrize(
    ("category", "names"),
    [
        ("Pod Security Standards (Baseline)", ["PSS"]),
        ("PSS, NSA-CISA; CIS Kubernetes Benchmark", ["PSS", "NSA", "CIS"]),
        ("Best Practices", ["Best Practices"]),
        ("Precise", ["Precise"]),
        ("", []),
    ],
)
def test_a_category_names_its_frameworks(category: str, names: list[str]) -> None:
    assert frameworks_of(category) == names


def categorised(name: str, category: str):
    made = policy(name, "Audit", "low", ["one"])
    made["metadata"]["annotations"]["policies.kyverno.io/category"] = category
    return made


def test_compliance_counts_what_was_judged_by_the_categories_of_policies() -> None:
    there = world(
        {
            "clusterpolicies": [categorised("a", "PSS, CIS"), categorised("b", "NSA")],
            "reports": [
                report(
                    "Pod",
                    "web",
                    "payments",
                    result("a", "one", "pass", "low", ""),
                    result("a", "two", "fail", "low", ""),
                    result("a", "three", "skip", "low", ""),
                )
            ],
        }
    )

    found = compliance(there)

    assert found == [
        Framework("PSS", 1, 2, ("PSS, CIS",)),
        Framework("NSA", 0, 0, ("NSA",)),
        Framework("CIS", 1, 2, ("PSS, CIS",)),
    ]
    assert [one.percent for one in found] == [50, None, 50]


def test_nearly_all_is_not_all() -> None:
    assert Framework("PSS", 999, 1000).percent == 99


def test_a_sample_holds_no_number_that_is_not_known() -> None:
    assert sampled((), numbers_of(hindered(Trouble.FORBIDDEN), NOW), NOW) == []
    partly = numbers_of(world(without=("reports",)), NOW)
    assert partly["failures"] is None
    assert partly["active"] == 1
    assert not any(name.startswith("framework") for name in partly)


def test_samples_are_one_an_hour_and_two_weeks_long() -> None:
    past: list[Sample] = []
    for half_hours in range(2 * 24 * 20):
        past = sampled(past, {"failures": half_hours}, NOW + timedelta(minutes=30 * half_hours))

    assert len(past) == 14 * 24
    assert past[-1].numbers == {"failures": 2 * 24 * 20 - 1}


def test_a_difference_is_to_a_day_ago_or_to_as_far_back_as_is_known() -> None:
    at = NOW.timestamp()
    past = [Sample(at - hours * 3600, {"failures": hours}) for hours in (30, 23, 2)]

    assert before(past, "failures", NOW) == (23, 23 * 3600)
    assert before(past[2:], "failures", NOW) == (2, 2 * 3600)
    assert before([Sample(at - 60, {"failures": 4})], "failures", NOW) is None
    assert before(past, "blocks", NOW) is None
    assert difference(25, (23, 23 * 3600)) == "+2 in 23h"
    assert difference(23, (23, 4 * 3600)) == "as 4h ago"
    assert difference(None, (23, 7200)) == difference(23, None) == ""


def test_samples_are_kept_for_the_next_time(tmp_path) -> None:
    place = {"XDG_STATE_HOME": str(tmp_path)}
    save_samples("prod", [Sample(1.0, {"failures": 2})], place)

    assert load_samples("prod", place) == [Sample(1.0, {"failures": 2})]
    assert load_samples("dev", place) == []
    next(tmp_path.rglob("numbers-*")).write_text('[["x", 3]]')
    assert load_samples("prod", place) == []
