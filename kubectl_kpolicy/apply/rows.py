"""Results of `apply` as rows, and the formats made of rows: tables, JSON, YAML, names, JUnit, SARIF, workflow commands, Markdown."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from engine import vocabulary
from engine.record import record
from kubectl_kpolicy.output import findings
from kubectl_kpolicy.output.structured import json_text, name_of, yaml_text
from kubectl_kpolicy.output.table import Column, Table

from .boxes import PLAIN, Brush, boxed, plain
from .names import reference, resource_path
from .verdicts import Counts, shown_status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.errors import Location
    from engine.model import Object, Policy, RuleResult

    from .processor import PolicyAnswer

BAD = ("fail", "warn", "error")
_REASONS = {"pass": "Ok", "fail": "Fail", "warn": "Warn", "error": "Error", "skip": "Skip"}


@record
class Row:
    """One result: what a rule of a policy said about an object."""

    policy: Policy
    object: Object
    result: RuleResult
    status: str

    @property
    def resource(self) -> str:
        """`namespace/Kind/name`."""
        return resource_path(self.object)


@record
class Outcome:
    """Everything a run of `apply` found."""

    rows: Sequence[Row]
    counts: Counts
    changed: Sequence[tuple[str, Object]] = ()
    """What rules changed or made: `mutated` or `generated`, and the object."""
    places: Mapping[str, Location] = MappingProxyType({})
    """Where objects stand in files, by `Row.resource`."""


def rows_of(answer: PolicyAnswer, *, audit_warn: bool = False) -> list[Row]:
    """Return the rows of one policy's answer."""
    return [
        Row(answer.policy, answer.object, result, str(shown_status(answer.policy, result, audit_warn=audit_warn)))
        for result in answer.results
    ]  # fmt: skip


def as_table(outcome: Outcome, brush: Brush = PLAIN, *, detailed: bool = False) -> str:
    """Return Kyverno's box table."""
    columns = ["ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON"]
    cells = []
    for number, row in enumerate(outcome.rows, 1):
        cell = [
            str(number),
            brush.name(row.policy.key),
            brush.name(row.result.rule),
            brush.name(row.resource),
            brush.status(row.status.title()),
            _REASONS[row.status],
        ]
        cells.append([*cell, plain(row.result.message)] if detailed else cell)
    return boxed([*columns, "MESSAGE"] if detailed else columns, cells, brush=brush) + "\n"


def _plain_table(outcome: Outcome) -> Table:
    """Return kubectl's kind of table with action, severity and message."""
    heads = ("RESULT", "POLICY", "RULE", "RESOURCE", "ACTION", "SEVERITY", "MESSAGE")
    table = Table([Column(head) for head in heads])
    for row in outcome.rows:
        table.add(
            row.status,
            row.policy.key,
            row.result.rule,
            row.resource,
            "Enforce" if row.result.enforce else "Audit",
            vocabulary.severity_of(row.policy.annotations) or "-",
            row.result.message,
        )
    return table


def document_of(outcome: Outcome) -> dict[str, Any]:
    """Return the run as one `kpolicy.io/v1alpha1` document."""
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "ResultList",
        "summary": outcome.counts.numbers,
        "items": [_item(row) for row in outcome.rows],
        "mutated": [obj for what, obj in outcome.changed if what == "mutated"],
        "generated": [obj for what, obj in outcome.changed if what == "generated"],
    }


def _item(row: Row) -> dict[str, Any]:
    item = {
        "policy": row.policy.key,
        "rule": row.result.rule,
        "type": str(row.result.type),
        "resource": reference(row.object),
        "result": row.status,
        "action": "Enforce" if row.result.enforce else "Audit",
        "message": row.result.message,
        "path": row.result.path,
        "exceptions": list(row.result.exceptions),
        "properties": dict(row.result.properties),
    }
    return {key: value for key, value in item.items() if value or key == "message"}


def as_name(outcome: Outcome) -> str:
    """Return kubectl's names (`deployment.apps/web`) of the objects with a bad result, each once."""
    bad = (row.object for row in outcome.rows if row.status in BAD)
    names = {name_of(obj): None for obj in bad if reference(obj).get("name")}
    return "".join(f"{name}\n" for name in names)


def as_junit(outcome: Outcome) -> str:
    """Return a JUnit report, one test suite for each policy."""
    suites: dict[str, list[findings.Case]] = {}
    for row in outcome.rows:
        failure = row.result.message or row.status if row.status in ("fail", "error") else None
        suites.setdefault(row.policy.key, []).append(
            findings.Case(row.result.rule, row.resource, failure, outcome.places.get(row.resource))
        )
    return findings.junit_text("kpolicy apply", suites) + "\n"


def _findings(outcome: Outcome) -> list[findings.Finding]:
    return [
        findings.Finding(
            rule=f"{row.policy.key}/{row.result.rule}",
            description=str(row.policy.annotations.get(vocabulary.DESCRIPTION) or ""),
            level=findings.level_of(row.status, vocabulary.severity_of(row.policy.annotations)),
            message=row.result.message or row.status,
            resource=row.resource,
            at=outcome.places.get(row.resource),
        )
        for row in outcome.rows
        if row.status in BAD
    ]


FORMATS: dict[str, Callable[[Outcome], str]] = {
    "table": as_table,
    "wide": lambda outcome: _plain_table(outcome).text(wide=True),
    "json": lambda outcome: json_text(document_of(outcome)),
    "yaml": lambda outcome: yaml_text(document_of(outcome)),
    "name": as_name,
    "junit": as_junit,
    "sarif": lambda outcome: json_text(findings.sarif_log(_findings(outcome))),
    "github": lambda outcome: findings.github_lines(_findings(outcome)),
    "markdown": lambda outcome: _plain_table(outcome).markdown(),
}
