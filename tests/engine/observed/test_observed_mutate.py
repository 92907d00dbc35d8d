"""Mutate rules: what the CLI of Kyverno answered, row by row.

`answer` is the only thing that knows what runs the rules. It leaves out rows that need variables, contexts or `foreach`, and
those that are refused when a policy is loaded.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.mutate.handler import mutate_outcome
from engine.mutate.values import same

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
DIFFERENCES = HERE / "mutate-differences.json"


def answered_here(row: dict[str, Any]) -> bool:
    rule = row["rule"]
    alone = set(rule) == {"mutate"} and "foreach" not in rule["mutate"]
    return alone and row["status"] != "rejected" and "{{" not in json.dumps(rule)


def answer(row: dict[str, Any]) -> tuple[str, str, Any]:
    """Return status, message and the object afterwards."""
    mutated = mutate_outcome(row["rule"]["mutate"], row["object"])
    return mutated.outcome.status.value, mutated.outcome.message, mutated.object


def differs(row: dict[str, Any]) -> bool:
    status, message, patched = answer(row)
    if (status, message) != (row["status"], row["message"]):
        return True
    return "patched" in row and not same(patched, row["patched"])


def test_mutate_rules_answer_as_observed() -> None:
    table = SHARED / "observed" / "mutate.jsonl"
    if not table.is_file():
        pytest.skip(f"{table} is absent; set KPOLICY_SHARED to the folder with the observed tables")
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    tried = {number for number, row in enumerate(rows) if answered_here(row)}

    different = {number for number in tried if differs(rows[number])}

    assert len(tried) >= 227
    assert different == {entry["row"] for entry in json.loads(DIFFERENCES.read_text())} & tried
    assert len(different) <= 0.015 * len(tried)
