"""The outcome of a test run as text: Kyverno's table and summary, JSON, YAML, Markdown, JUnit."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from kubectl_kpolicy.applying.boxes import markdown_table, table
from kubectl_kpolicy.applying.colors import PLAIN
from kubectl_kpolicy.applying.junit import junit_text
from kubectl_kpolicy.applying.yamltext import dump

from .verdict import EXCLUDED, OK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.applying.colors import Colors

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
    return orjson.dumps(_document(rows), option=orjson.OPT_INDENT_2).decode()


def as_yaml(rows: Sequence[Row]) -> str:
    """Return the document of `as_json` as YAML."""
    return dump(_document(rows), sort=False).rstrip("\n")


def _document(rows: Sequence[Row]) -> dict[str, Any]:
    return {"summary": summary(rows), "rows": [asdict(row) for row in rows]}


def as_markdown(rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    return markdown_table((*_COLUMNS, "MESSAGE"), _cells(rows, PLAIN, detailed=True, strict=False))


def as_junit(rows: Sequence[Row]) -> str:
    """Return a JUnit report, one test suite for each file."""
    suites: dict[str, list[tuple[str, str, str | None]]] = {}
    for row in rows:
        name = f"{row.policy}/{row.rule}" if row.rule else row.policy
        failure = None if row.verdict == OK else f"{row.reason}: {row.message}"
        suites.setdefault(row.file, []).append((name, row.resource, failure))
    return junit_text("kpolicy test", suites)


def as_table(
    rows: Sequence[Row], *, colors: Colors = PLAIN, detailed: bool = False, strict: bool = False
) -> str:
    """Return Kyverno's box table of one test; `strict` decides by the strict verdict which rows failed."""
    columns = (*_COLUMNS, "MESSAGE") if detailed else _COLUMNS
    return table(columns, _cells(rows, colors, detailed=detailed, strict=strict), colors=colors)


def _cells(
    rows: Sequence[Row], colors: Colors, *, detailed: bool, strict: bool
) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    for number, row in enumerate(rows, 1):
        holds = (row.strict if strict else row.verdict) == OK
        shown = (
            str(number),
            colors.name(row.policy),
            colors.name(row.rule),
            colors.name(row.resource),
            colors.status("Pass" if holds else "Fail"),
            colors.status("Skip", EXCLUDED) if row.reason == EXCLUDED else row.reason,
        )
        cells.append((*shown, row.message) if detailed else shown)
    return cells


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "json": as_json,
    "yaml": as_yaml,
    "markdown": as_markdown,
    "junit": as_junit,
}
