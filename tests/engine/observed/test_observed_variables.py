"""Variables of the whole engine against what Kyverno's own command line answered."""

from __future__ import annotations

from typing import Any

from engine.evaluate import Inputs
from tests.engine.observed import whole


def test_variables_resolve_as_observed() -> None:
    rows = whole.rows("variables")

    verdicts = {number: _verdict(row, Inputs()) for number, row in enumerate(rows)}

    whole.compare("variables", verdicts)


def test_values_are_read_again_as_observed_where_somebody_asks_for_it() -> None:
    rows = whole.rows("variables")
    inputs = Inputs(resolve_values=True)

    missed = {row["text"] for row in rows if "text" in row and _verdict(row, inputs) is not None}

    assert not missed


def _verdict(row: dict[str, Any], inputs: Inputs) -> str | None:
    answer = whole.ask(
        whole.policy_of(_rule(row)),
        row["object"],
        user=whole.user_of(row.get("userinfo")),
        operation=row.get("operation", "CREATE"),
        inputs=inputs,
    )
    if "refused" in row:
        return None if answer.status == "refused" else f"refused expected, got {answer}"
    if "error" in row:
        return None if answer.status == "error" else f"error expected, got {answer}"
    wanted = row["result"]
    got = _value(row, answer)
    return None if got == wanted else f"{row.get('text')}: {wanted!r} expected, got {answer}"


def _value(row: dict[str, Any], answer: whole.Answer) -> Any:
    if row["in"] in ("value", "context"):
        return answer.variables.get("vv", answer)
    if answer.status == "none":
        return None
    return answer.message


def _rule(row: dict[str, Any]) -> dict[str, Any]:
    if row["in"] == "message":
        return {"validate": {"message": row["text"], "deny": {}}}
    if row["in"] == "foreach":
        condition = {"key": 1, "operator": "Equals", "value": 1, "message": row["text"]}
        entry = {"list": row["list"], "deny": {"conditions": {"all": [condition]}}}
        return {"validate": {"foreach": [entry]}}
    variable = row["context_variable"] if row["in"] == "context" else {"value": row["text"]}
    return {
        "context": [{"name": "vv", "variable": variable}],
        "validate": {"deny": {"conditions": {"all": [_PROBE]}}},
    }


_PROBE = {"key": "{{ vv }}", "operator": "Equals", "value": "?"}
