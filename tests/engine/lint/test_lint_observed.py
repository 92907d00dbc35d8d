"""What Kyverno refused is refused with its words, and what it accepted is accepted: observed tables and published cases."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import EngineError
from engine.lang.yaml import load_all
from engine.lint import lint_cleanup, lint_exception, lint_policy
from engine.parse import parse_cleanup_policy, parse_exception, parse_policy
from tests.engine.observed.match_table import SHARED, observed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

TRUE = {"conditions": {"all": [{"key": 1, "operator": "Equals", "value": 1}]}}
DIFFERENT = {
    "podsecurity": {162, 163, 166}
    # an unknown control name: the command line loads the policy and says nothing; a cluster refuses it, as we do
}


def condition_rule(row: dict[str, Any]) -> dict[str, Any]:
    if "conditions" in row and row["in"] == "preconditions":
        return {"preconditions": row["conditions"], "validate": {"deny": TRUE}}
    if "conditions" in row:
        return {
            "validate": {"message": row["rule_message"], "deny": {"conditions": row["conditions"]}}
        }
    key, value = row["key"], row["value"]
    if row["from"] == "object":
        key, value = "{{ request.object.data.k }}", "{{ request.object.data.v }}"
    condition = {"key": key, "operator": row["operator"], "value": value}
    return {"validate": {"deny": {"conditions": {"all": [condition]}}}}


def variable_rule(row: dict[str, Any]) -> dict[str, Any]:
    known = [{"name": name, "variable": {"value": 1}} for name in ("D", "userinfo")]
    match row["in"]:
        case "message":
            context = known if "must match" not in row.get("refused", "") else []
            return {"context": context, "validate": {"message": row["text"], "deny": TRUE}}
        case "foreach":
            condition = {**TRUE["conditions"]["all"][0], "message": row["text"]}
            deny = {"conditions": {"all": [condition]}}
            return {"validate": {"foreach": [{"list": row["list"], "deny": deny}]}}
    variable = row["context_variable"] if row["in"] == "context" else {"value": row["text"]}
    context = [{"name": "vv", "variable": variable}]
    return {"context": context, "validate": {"message": "{{ vv }}", "deny": TRUE}}


def pattern_rule(row: dict[str, Any]) -> dict[str, Any]:
    block = {key: row[key] for key in ("pattern", "anyPattern") if key in row}
    return {"validate": block | ({"message": row["ruleMessage"]} if "ruleMessage" in row else {})}


def whole_rule(row: dict[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = row["rule"]
    return rule


RULES = {
    "conditions": condition_rule,
    "variables": variable_rule,
    "patterns": pattern_rule,
    "foreach": whole_rule,
    "mutate": whole_rule,
    "podsecurity": whole_rule,
}


def errors_of(rule: dict[str, Any]) -> list[str]:
    match = {"any": [{"resources": {"kinds": ["example.com/v1/Thing"], "names": ["o"]}}]}
    doc = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"background": False, "rules": [{"name": "r", "match": match} | rule]},
    }
    return [item.message for item in lint_policy(parse_policy(doc)) if item.severity == "error"]


def is_right(row: dict[str, Any], said: list[str]) -> bool:
    expected = row.get("refused") or (row["message"] if row.get("status") == "rejected" else "")
    if not expected:
        return not said
    return any(text.partition(" valid values")[0] in expected for text in said)


@pytest.mark.parametrize("table", RULES)
def test_a_policy_is_refused_exactly_when_the_table_says(table: str) -> None:
    rows = observed_rows(table)
    wrong = {
        number for number, row in enumerate(rows) if not is_right(row, errors_of(RULES[table](row)))
    }

    assert rows
    assert wrong == DIFFERENT.get(table, set())


PARSERS: dict[str, Any] = {
    "ClusterPolicy": (parse_policy, lint_policy),
    "Policy": (parse_policy, lint_policy),
    "PolicyException": (parse_exception, lint_exception),
    "CleanupPolicy": (parse_cleanup_policy, lint_cleanup),
    "ClusterCleanupPolicy": (parse_cleanup_policy, lint_cleanup),
}


def classic_documents(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; set KPOLICY_SHARED to the folder that holds it")
    for file in sorted(folder.rglob("*.y*ml")):
        try:
            documents = load_all(file.read_bytes())
        except EngineError:
            continue
        for document in documents:
            value = document.value
            if isinstance(value, dict) and str(value.get("apiVersion")).startswith("kyverno.io/"):
                yield file, value


@pytest.mark.conformance
@pytest.mark.parametrize("folder", ["conformance", "seeds"])
def test_published_policies_are_accepted(folder: str) -> None:
    place = Path(os.environ.get("KPOLICY_CONFORMANCE", "")) if folder == "conformance" else Path()
    if place == Path():
        place = SHARED / folder
    seen = 0
    refused = []
    for file, doc in classic_documents(place):
        if doc.get("kind") not in PARSERS:
            continue
        parse, lint = PARSERS[doc["kind"]]
        seen += 1
        refused += [f"{file}: {item}" for item in lint(parse(doc)) if item.severity == "error"]

    assert seen >= 10
    assert refused == []
