"""MutatingPolicies on damaged objects: what the CLI of Kyverno answered, row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.evaluate import Inputs, PolicySet, evaluate
from engine.model import review_of
from engine.mutate.values import same
from engine.parse.celpolicies import parse_cel_policy
from kubectl_kpolicy.apply.scope import Scopes
from tests.engine.observed.whole import differences, rows

NOW = datetime(2026, 8, 21, tzinfo=UTC)


def differs(row: dict[str, Any]) -> bool:
    policies = PolicySet.compile([parse_cel_policy(row["policy"])])
    found = evaluate(policies, review_of(Scopes().placed(row["object"])), Inputs(now=NOW))
    mine = [(one.rule, str(one.status), one.message) for one in found.results]
    theirs = [(one.get("rule", ""), one["result"], one["message"]) for one in row["results"]]
    return mine != theirs or ("patched" in row and not same(found.patched, row["patched"]))


def test_mutating_policies_answer_as_observed() -> None:
    table = {
        number: row
        for number, row in enumerate(rows("celkinds"))
        if row["policy"]["kind"] == "MutatingPolicy"
    }
    listed = differences("mutating-policies")

    different = {number for number, row in table.items() if differs(row)}

    assert len(table) == 900
    assert all(listed.values())
    assert different == set(listed)
    assert len(different) <= 0.015 * len(table)
