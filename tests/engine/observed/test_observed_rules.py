"""Whole rules against what Kyverno's own command line answered: conditions, foreach, mutate, patterns with variables."""

from __future__ import annotations

from typing import Any

from tests.engine.observed import whole


def test_conditions_hold_as_observed() -> None:
    rows = whole.rows("conditions")

    verdicts = {number: _condition_verdict(row) for number, row in enumerate(rows)}

    whole.compare("conditions", verdicts)


def test_foreach_rules_answer_as_observed() -> None:
    rows = whole.rows("foreach")

    verdicts = {
        number: _rule_verdict(row, whole.ask(whole.policy_of(row["rule"]), row["object"]))
        for number, row in enumerate(rows)
    }

    whole.compare("foreach", verdicts)


def test_patterns_answer_as_observed_through_the_whole_engine() -> None:
    rows = whole.rows("patterns")

    verdicts = {number: _rule_verdict(row, _pattern_answer(row)) for number, row in enumerate(rows)}

    whole.compare("patterns", verdicts)


def test_mutate_rules_answer_as_observed_through_the_whole_engine() -> None:
    rows = whole.rows("mutate")

    verdicts = {number: _mutate_verdict(row) for number, row in enumerate(rows)}

    whole.compare("mutate", verdicts)


def _condition_verdict(row: dict[str, Any]) -> str | None:
    if "conditions" in row:
        return _rule_verdict(row, whole.ask(whole.policy_of(_block_rule(row)), _config_map()))
    obj = _config_map()
    key, value = row.get("key"), row.get("value")
    if row.get("from") == "object":
        obj["data"] = {"k": key, "v": value}
        key, value = "{{ request.object.data.k }}", "{{ request.object.data.v }}"
    condition = {"key": key, "operator": row["operator"], "value": value}
    rule = {"validate": {"message": "m", "deny": {"conditions": {"all": [condition]}}}}
    answer = whole.ask(whole.policy_of(rule), row.get("object") or obj)
    if row.get("crash"):
        return None
    if "refused" in row:
        return None if answer.status == "refused" else f"refused expected, got {answer}"
    if "error" in row:
        return None if answer.status == "error" else f"error expected, got {answer}"
    wanted = "fail" if row["holds"] else "pass"
    return None if answer.status == wanted else f"{condition}: {wanted} expected, got {answer}"


def _config_map() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "dev"},
        "data": {"k": "K"},
    }


def _block_rule(row: dict[str, Any]) -> dict[str, Any]:
    message = {} if row["rule_message"] is None else {"message": row["rule_message"]}
    if row["in"] == "deny":
        return {"validate": {**message, "deny": {"conditions": row["conditions"]}}}
    always = {"all": [{"key": 1, "operator": "Equals", "value": 1}]}
    return {
        "preconditions": row["conditions"],
        "validate": {**message, "deny": {"conditions": always}},
    }


def _pattern_answer(row: dict[str, Any]) -> whole.Answer:
    block = {key: row[key] for key in ("pattern", "anyPattern") if key in row}
    if "ruleMessage" in row:
        block["message"] = row["ruleMessage"]
    return whole.ask(whole.policy_of({"validate": block}), row["object"])


def _rule_verdict(row: dict[str, Any], answer: whole.Answer) -> str | None:
    if "refused" in row or row.get("status") == "rejected":
        return None if answer.status == "refused" else f"refused expected, got {answer}"
    if row["status"] == "crash":
        return None
    wanted = (row["status"], row.get("message") or "")
    got = (answer.status, answer.message)
    return None if got == wanted else f"{wanted} expected, got {got}"


def _mutate_verdict(row: dict[str, Any]) -> str | None:
    answer = whole.ask(whole.policy_of(row["rule"]), row["object"])
    differs = _rule_verdict(row, answer)
    if differs or "patched" not in row:
        return differs
    return None if answer.patched == row["patched"] else f"{row['patched']} expected, got {answer}"
