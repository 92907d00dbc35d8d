"""SARIF 2.1.0 logs: findings as code hosts read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.errors import Location


@record
class Finding:
    """One bad result; `resource` is `namespace/Kind/name`, `at` where it stands in a file."""

    rule: str
    description: str
    level: str
    message: str
    resource: str
    at: Location | None = None


def log_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return one log with one run; rules are listed once each, in order of appearance."""
    rules = {finding.rule: finding.description for finding in findings}
    order = {rule: index for index, rule in enumerate(rules)}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "kpolicy",
                        "informationUri": "https://kpolicy.io",
                        "rules": [_rule(name, text) for name, text in rules.items()],
                    }
                },
                "results": [_result(finding, order[finding.rule]) for finding in findings],
            }
        ],
    }


def _rule(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "shortDescription": {"text": (text or name).strip()}}


def _result(finding: Finding, index: int) -> dict[str, Any]:
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{**_place(finding.at), "logicalLocations": [{"fullyQualifiedName": finding.resource, "kind": "resource"}]}],
    }  # fmt: skip


def _place(at: Location | None) -> dict[str, Any]:
    """Return the file and line, with which code hosts show a finding beside the code."""
    if at is None or not at.file:
        return {}
    place = {"artifactLocation": {"uri": at.file.replace("\\", "/").removeprefix("./")}}
    return {"physicalLocation": {**place, "region": {"startLine": max(at.line, 1)}}}
