"""The published cases whose policies are written in CEL, each group with its share and its list of misses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from kubectl_kpolicy.testing.loading import Broken, find_cases, load_case
from kubectl_kpolicy.testing.run import run_case
from tests.conformance.published import (
    cases_of_kinds,
    cases_with_cel_rules,
    file_and_number,
    is_excused,
)

pytestmark = pytest.mark.conformance

MISSES = Path(__file__).with_name("cel-misses.json")
GROUPS = {
    "validate.cel": (cases_with_cel_rules, 98, 1075, 0.99),
    "ValidatingPolicy": (
        lambda: cases_of_kinds("ValidatingPolicy", "PolicyException", "ClusterPolicy"),
        100,
        1019,
        0.98,
    ),
    "GeneratingPolicy": (
        lambda: [
            case
            for case in cases_of_kinds("GeneratingPolicy", "PolicyException")
            if "GeneratingPolicy" in case["kinds"]
        ],
        14,
        20,
        1.0,
    ),
    "DeletingPolicy": (lambda: cases_of_kinds("DeletingPolicy"), 5, 11, 1.0),
    "MutatingPolicy": (
        lambda: cases_of_kinds(
            "MutatingPolicy", "PolicyException", "ClusterPolicy", only="MutatingPolicy"
        ),
        33,
        65,
        1.0,
    ),
    "native": (
        lambda: cases_of_kinds(
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ),
        23,
        45,
        0.98,
    ),
}
every_group = pytest.mark.parametrize("group", GROUPS)


@cache
def _answers(group):
    """Every row of every case of a group, as (case file, row)."""
    found = []
    now = datetime(2026, 8, 21, tzinfo=UTC)
    for case in GROUPS[group][0]():
        path, number = file_and_number(case)
        for test in find_cases([path]):
            assert not isinstance(test, Broken), test
            if test.number == number:
                found += [(case["file"], row) for row in run_case(load_case(test), now=now)]
    return found


def _shape(row):
    return {"policy": row.policy, "rule": row.rule, "resource": row.resource, "actual": row.actual}


def _strict_misses(group):
    return {
        (file, row.result, row.declared): row
        for file, row in _answers(group)
        if row.strict != "ok" and not is_excused(file, _shape(row))
    }


def _listed(group):
    return {
        (item["file"], item["result"], item["declared"]): item["reason"]
        for item in json.loads(MISSES.read_text())[group]
    }


@every_group
def test_every_published_row_of_cel_is_run(group):
    cases, number, rows, _ = GROUPS[group]
    assert len(cases()) == number
    assert len(_answers(group)) == rows


@every_group
def test_the_rows_of_cel_are_answered_strictly_to_the_promised_share(group):
    _, _, rows, share = GROUPS[group]
    assert 1 - len(_strict_misses(group)) / rows >= share


@every_group
def test_the_rows_of_cel_that_miss_are_exactly_the_listed_ones_each_with_a_reason(group):
    listed = _listed(group)
    assert all(listed.values())
    assert sorted(_strict_misses(group)) == sorted(listed)
