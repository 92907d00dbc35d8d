"""Findings as tools of pipelines read them: SARIF 2.1.0, JUnit, and GitHub's workflow commands.

Code hosts show the first and the last beside the code, CI shows JUnit as tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.errors import Location

_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note", "info": "note"}


def level_of(result: str, severity: str) -> str:
    """Return how SARIF calls a result: a rule that could not be evaluated is an error, a failure as bad as its policy says."""
    if result == "error":
        return "error"
    return _LEVELS.get(severity.lower(), "warning" if result == "warn" else "error")


@record
class Finding:
    """One bad result; `resource` is `namespace/Kind/name`, `at` where it stands in a file."""

    rule: str
    description: str
    level: str
    message: str
    resource: str
    at: Location | None = None


@record
class Case:
    """One result as a test: what was asked of what, the text of the failure or None, and where that stands in a file."""

    name: str
    group: str
    failure: str | None
    at: Location | None = None


def sarif_log(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return one log with one run; rules are listed once each, in order of appearance."""
    rules = {finding.rule: finding.description for finding in findings}
    order = {rule: index for index, rule in enumerate(rules)}
    driver = {"name": "kpolicy", "informationUri": "https://kpolicy.io", "rules": [_rule(name, text) for name, text in rules.items()]}  # fmt: skip
    results = [_result(finding, order[finding.rule]) for finding in findings]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
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
    place = {"artifactLocation": {"uri": _file(at)}}
    return {"physicalLocation": {**place, "region": {"startLine": max(at.line, 1)}}}


def _file(at: Location) -> str:
    return at.file.replace("\\", "/").removeprefix("./")


_ANNOTATIONS = {"error": "error", "warning": "warning", "note": "notice"}


def github_lines(findings: Iterable[Finding]) -> str:
    """Return a workflow command for each finding, which GitHub Actions shows beside the changed line."""
    return "".join(map(_annotation, findings))


def _annotation(finding: Finding) -> str:
    fields = {"title": finding.rule}
    if finding.at is not None and finding.at.file:
        fields = {"file": _file(finding.at), "line": str(max(finding.at.line, 1)), **fields}
    given = ",".join(f"{key}={_command_field(value)}" for key, value in fields.items())
    message = _command_text(f"{finding.resource.lstrip('/')}: {finding.message}")
    return f"::{_ANNOTATIONS[finding.level]} {given}::{message}\n"


def _command_text(text: str) -> str:
    """Escape what would end a workflow command or begin another one."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _command_field(text: str) -> str:
    return _command_text(text).replace(":", "%3A").replace(",", "%2C")


def junit_text(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """Return a JUnit report with one suite for each key."""
    totals = _totals([case for cases in suites.values() for case in cases])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={_quoted(name)} {totals}>"]  # fmt: skip
    for suite, cases in suites.items():
        lines.append(f"  <testsuite name={_quoted(suite)} {_totals(cases)}>")
        lines += [_case(case) for case in cases]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _totals(cases: Sequence[Case]) -> str:
    failures = sum(case.failure is not None for case in cases)
    return f'tests="{len(cases)}" failures="{failures}" errors="0"'


def _case(case: Case) -> str:
    head = f"    <testcase name={_quoted(case.name)} classname={_quoted(case.group)}"
    if case.at is not None and case.at.file:
        head += f' file={_quoted(_file(case.at))} line="{max(case.at.line, 1)}"'
    if case.failure is None:
        return f"{head}/>"
    return f"{head}>\n      <failure>{_escaped(case.failure)}</failure>\n    </testcase>"


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;").replace("\n", "&#10;") + '"'


def _escaped(text: str) -> str:
    """Escape markup, and replace control characters, which XML cannot carry."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(char if char >= " " or char in "\t\n" else "\ufffd" for char in safe)
