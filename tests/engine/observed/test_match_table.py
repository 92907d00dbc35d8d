"""The observed match table: which objects a rule concerns, which generated rules answer, which policies are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.autogen import expand
from engine.lint import lint_policy
from engine.match import compile_match
from engine.parse import parse_policy
from tests.engine.observed.match_table import (
    assert_only_listed_rows_differ,
    observed_rows,
    policy_of_row,
    review_of_row,
)

if TYPE_CHECKING:
    from engine.model import Policy


def answer(row: dict[str, Any], policy: Policy) -> dict[str, Any]:
    """Return the engine's answer in the words of the table."""
    refusals = [item for item in lint_policy(policy) if item.severity == "error"]
    if refusals:
        said = row.get("refused", "")
        return {
            "refused": said
            if any(said.endswith(item.message) for item in refusals)
            else str(refusals)
        }
    review = review_of_row(row)
    names = []
    for rule in expand(policy):
        matcher = compile_match(rule.match, rule.exclude)
        applies = matcher.applies(review)
        assert applies == (matcher.refusal(review) is None)
        if applies:
            names.append(rule.name)
    found: dict[str, Any] = {"applies": bool(names)}
    return found | {"autogen": names} if "autogen" in row else found


def test_rules_concern_what_the_table_says() -> None:
    rows = observed_rows("match")
    differing = {}
    for number, row in enumerate(rows):
        expected = {key: row[key] for key in ("refused", "applies", "autogen") if key in row}
        given = answer(row, parse_policy(policy_of_row(row)))
        if given != expected:
            differing[number] = f"{given} instead of {expected}"

    assert len(rows) >= 342
    assert_only_listed_rows_differ("match", differing, len(rows))
