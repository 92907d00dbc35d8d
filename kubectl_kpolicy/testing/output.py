"""The outcome of a test run as text: Kyverno's table and summary, JSON, YAML, Markdown, JUnit."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.errors import Location
from kubectl_kpolicy.apply.boxes import PLAIN, Brush, boxed, plain
from kubectl_kpolicy.output.findings import Case, junit_text
from kubectl_kpolicy.output.structured import json_text, yaml_text
from kubectl_kpolicy.output.table import Column, Table

from .verdict import EXCLUDED, OK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .verdict import Row

_COLUMNS = ("ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON")


def summary(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows there are, how many hold by each of the two verdicts, and how many nobody answered."""
    verdicts = Counter(row.verdict for row in rows)
    strict = Counter(row.strict for row in rows)
    return {
        "rows": len(rows),
        "ok": verdicts[OK],
        "miss": len(rows) - verdicts[OK],
        "strictOk": strict[OK],
        "strictMiss": len(rows) - strict[OK],
        "noAnswer": sum(row.actual is None for row in rows),
    }


def as_json(rows: Sequence[Row]) -> str:
    """Return `{"summary": …, "rows": […]}`."""
    return json_text(_document(rows))


def as_yaml(rows: Sequence[Row]) -> str:
    """Return the document of `as_json` as YAML."""
    return yaml_text(_document(rows))


def _document(rows: Sequence[Row]) -> dict[str, Any]:
    return {"summary": summary(rows), "rows": [asdict(row) for row in rows]}


def as_markdown(rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    columns = [Column(head) for head in (*_COLUMNS, "MESSAGE")]
    return Table(columns, _cells(rows, PLAIN, detailed=True, strict=False)).markdown()


def as_junit(rows: Sequence[Row]) -> str:
    """Return a JUnit report, one test suite for each file."""
    suites: dict[str, list[Case]] = {}
    for row in rows:
        name = f"{row.policy}/{row.rule}" if row.rule else row.policy
        failure = None if row.verdict == OK else f"{row.reason}: {row.message}"
        suites.setdefault(row.file, []).append(
            Case(name, row.resource, failure, Location(row.file))
        )
    return junit_text("kpolicy test", suites) + "\n"


def as_table(
    rows: Sequence[Row], *, brush: Brush = PLAIN, detailed: bool = False, strict: bool = False
) -> str:
    """Return Kyverno's box table of one test; `strict` decides by the strict verdict which rows failed."""
    columns = (*_COLUMNS, "MESSAGE") if detailed else _COLUMNS
    return boxed(columns, _cells(rows, brush, detailed=detailed, strict=strict), brush=brush)


def _cells(
    rows: Sequence[Row], brush: Brush, *, detailed: bool, strict: bool
) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    for number, row in enumerate(rows, 1):
        holds = (row.strict if strict else row.verdict) == OK
        shown = (
            str(number),
            brush.name(row.policy),
            brush.name(row.rule),
            brush.name(row.resource),
            brush.status("Pass" if holds else "Fail"),
            brush.status("Skip", EXCLUDED) if row.reason == EXCLUDED else row.reason,
        )
        cells.append((*shown, plain(row.message)) if detailed else shown)
    return cells


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "json": as_json,
    "yaml": as_yaml,
    "markdown": as_markdown,
    "junit": as_junit,
}
