from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from kubectl_kpolicy.testing.loading import Broken, find_cases, load_case
from kubectl_kpolicy.testing.run import run_case
from tests.conformance.published import classic_cases, folder, is_excused

pytestmark = pytest.mark.conformance

MISSES = Path(__file__).with_name("known-misses.json")
ROWS, CASES = 1427, 238


@cache
def _answers():
    """Every row of every case, as (case file, row)."""
    found = []
    now = datetime(2026, 8, 21, tzinfo=UTC)
    for case in classic_cases():
        for test in find_cases([folder() / case["file"]]):
            assert not isinstance(test, Broken), test
            rows = run_case(load_case(test), now=now)
            found += [(case["file"], row) for row in rows]
    return found


def _key(file, row):
    return (file, row.result, row.declared)


def _strict_misses():
    return {
        _key(file, row): row
        for file, row in _answers()
        if row.strict != "ok" and not is_excused(file, _as_map(row))
    }


def _as_map(row):
    return {"policy": row.policy, "rule": row.rule, "resource": row.resource, "actual": row.actual}


def _listed():
    return {
        (item["file"], item["result"], item["declared"]): item["reason"]
        for item in json.loads(MISSES.read_text())
    }


def test_every_published_row_is_run():
    assert len(classic_cases()) == CASES
    assert len(_answers()) == ROWS


def test_upstream_s_own_verdict_holds_for_every_row():
    wrong = [(file, row) for file, row in _answers() if row.verdict != "ok"]
    assert wrong == []


def test_at_least_995_of_1000_rows_are_answered_strictly():
    assert 1 - len(_strict_misses()) / ROWS >= 0.995


def test_the_rows_that_miss_are_exactly_the_listed_ones_each_with_a_reason():
    listed = _listed()
    assert all(listed.values())
    assert sorted(_strict_misses()) == sorted(listed)


def test_the_list_of_unanswered_rows_excuses_no_wrong_answer():
    rows = [(file, row) for file, row in _answers() if is_excused(file, _as_map(row))]
    assert all(row.actual is None for _, row in rows)
