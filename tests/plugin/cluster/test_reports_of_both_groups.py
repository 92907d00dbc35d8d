"""A report store serves each report in both API groups; people see its results once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kubectl_kpolicy.cluster import exceptions, policies, violations
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.violations import all_rows

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def report(uid: str, name: str = "a") -> dict:
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": uid},
        "scope": {"kind": "Pod", "name": name},
        "results": [{"policy": "ask", "rule": "r", "result": "fail"}],
    }


def rows(classic: list[dict], successor: list[dict]) -> list[str]:
    world = ClusterCache()
    world.replace("reports", classic, NOW)
    world.replace("openreports", successor, NOW)
    return [row.text("name") for row in all_rows(world)]


def test_a_report_that_both_groups_tell_of_is_one() -> None:
    assert rows([report("1")], [report("1")]) == ["a"]


def test_reports_of_their_own_in_each_group_are_all_there() -> None:
    assert rows([report("1")], [report("2", "b")]) == ["a", "b"]
    assert rows([report("")], [report("", "b")]) == ["a", "b"]


@pytest.mark.parametrize("listing", [policies.LISTING, exceptions.LISTING])
def test_whoever_counts_results_reads_all_that_they_come_from(listing) -> None:
    counted = violations.LISTING

    assert {*counted.needs, *counted.wants} <= {*listing.needs, *listing.wants}
