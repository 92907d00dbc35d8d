"""The table against Google's implementation: where the two differ is listed, with the reason why ours stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.cel import oracle
from tests.engine.cel.rows import Row, all_rows

pytest.importorskip("cel_expr_python", reason="the second opinion has no wheel for this system")

LISTED = json.loads((Path(__file__).parent / "oracle-differences.json").read_text(encoding="utf-8"))


def named(row: Row) -> str:
    return f"{row.expression} {row.bindings}" if row.bindings else row.expression


def test_both_agree_on_every_row_that_is_not_listed_and_on_none_that_is() -> None:
    opinions = [(row, oracle.opinion(row)) for row in all_rows()]
    asked = [(row, opinion) for row, opinion in opinions if opinion is not oracle.UNKNOWN]
    differing = {
        named(row) for row, opinion in asked if opinion != oracle.expectation(row.expected)
    }

    assert len(asked) >= 1_100
    assert differing == {entry["row"] for entry in LISTED}


def test_every_difference_has_a_reason_and_they_are_few() -> None:
    assert all(len(entry["reason"]) > 20 for entry in LISTED)
    assert len(LISTED) <= 35
