"""Every observed answer of Kyverno's pattern rules, against the pattern language and its messages."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine.errors import EvaluationError, PolicyError
from engine.lang.pattern import check_anchors, check_references, compile_pattern
from engine.validate import any_pattern_outcome, pattern_outcome

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("KPOLICY_SHARED") or HERE.parents[3] / "shared")
TABLE = SHARED / "observed" / "patterns.jsonl"


def needs_variables(row: dict[str, Any]) -> bool:
    """Tell whether a row can only be answered by the whole engine; crashes of Kyverno's all come from variables."""
    texts = [row.get("pattern"), row.get("anyPattern"), row.get("ruleMessage")]
    return "{{" in json.dumps(texts)


def answer(row: dict[str, Any]) -> tuple[str, str]:
    """Return the status and the message that the engine gives."""
    message = row.get("ruleMessage", "")
    if "anyPattern" in row:
        patterns = [compile_pattern(pattern) for pattern in row["anyPattern"]]
        outcome = any_pattern_outcome("r", message, patterns, row["object"])
        return outcome.status.value, outcome.message
    try:
        check_anchors(row["pattern"], at="spec.rules[0].validate.pattern")
        check_references(row["pattern"], "r")
        outcome = pattern_outcome("r", message, compile_pattern(row["pattern"]), row["object"])
    except PolicyError as error:
        return "rejected", error.message
    except EvaluationError as error:
        return "error", f"variable substitution failed: {error.message}"
    return outcome.status.value, outcome.message


def test_every_observed_pattern_answer_without_variables_is_given() -> None:
    if not TABLE.is_file():
        pytest.skip(f"{TABLE} is not there; set KPOLICY_SHARED to the folder that holds observed/")
    rows = [json.loads(line) for line in TABLE.read_text().splitlines()]
    asked = [row for row in rows if not needs_variables(row)]
    assert len(rows) - len(asked) == 50
    differing = {
        rows.index(row): (answer(row), (row["status"], row["message"]))
        for row in asked
        if answer(row) != (row["status"], row["message"])
    }
    assert differing == {}
