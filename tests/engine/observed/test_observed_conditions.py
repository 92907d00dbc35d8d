"""Every observed answer of Kyverno's condition operators on one key and one value, against the engine's operators."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaluationError, PolicyError
from engine.lang.operators import OPERATORS, compile_condition

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
TABLE = SHARED / "observed" / "conditions.jsonl"
VARIABLES = {
    "{{ request.object.data.missing || '' }}": "",
    "{{ request.object.data.missing || `null` }}": None,
    "{{ request.object.data.missing.deep || 'x' }}": "x",
}
"""The variables of literal keys and what they come to; other rows with variables are errors of substitution."""


@pytest.fixture(scope="module")
def table() -> list[dict[str, Any]]:
    """Return the rows about one condition."""
    if not TABLE.is_file():
        pytest.skip(f"{TABLE} is not there; set KPOLICY_SHARED to the folder that holds observed/")
    rows = [json.loads(line) for line in TABLE.read_text().splitlines()]
    return [row for row in rows if "operator" in row]


def from_object(value: Any) -> Any:
    """Return a value as it comes out of an object: every number is a 64-bit float there."""
    if isinstance(value, list):
        return [from_object(item) for item in value]
    if isinstance(value, dict):
        return {key: from_object(item) for key, item in value.items()}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def sides(row: dict[str, Any]) -> tuple[Any, Any]:
    """Return key and value as the operator gets them."""
    key, value = row["key"], row["value"]
    if row["from"] == "object":
        return from_object(key), from_object(value)
    return (VARIABLES.get(key, key) if isinstance(key, str) else key), value


def test_every_observed_condition_answer_is_given(table: list[dict[str, Any]]) -> None:
    asked = [row for row in table if "holds" in row]
    assert len(asked) > 1_600
    differing = []
    for row in asked:
        key, value = sides(row)
        holds = compile_condition(row["operator"], value)(key)
        assert compile_condition(row["operator"])(key, value) is holds, row
        if holds is not row["holds"]:
            differing.append(row)
    assert differing == []


def test_operators_that_kyverno_refuses_by_name_are_unknown(table: list[dict[str, Any]]) -> None:
    refused = [row for row in table if "`operator` is invalid" in row.get("refused", "")]
    assert refused
    for row in refused:
        assert row["operator"] not in OPERATORS
        with pytest.raises(PolicyError):
            compile_condition(row["operator"])


def test_what_makes_kyverno_panic_is_an_error(table: list[dict[str, Any]]) -> None:
    crashes = [row for row in table if "crash" in row]
    assert crashes
    for row in crashes:
        with pytest.raises(EvaluationError):
            compile_condition(row["operator"], row["value"])(row["key"])
