"""Rows as files for others: one HTML page without scripts, Markdown, CSV, SARIF for code scanning, JUnit for pipelines, CEF."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING, Any

from kubectl_kpolicy.output.fields import word
from kubectl_kpolicy.output.time_format import absolute

from .cells import cell_text, plain
from .listings import write_rows
from .structured import json_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kubectl_kpolicy.output.rows import Listing, Row

LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note", "info": "note"}
"""How SARIF calls severities."""
_STYLE = "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left;vertical-align:top}th{position:sticky;top:0;background:#fff}"


def written(form: str, title: str, rows: Sequence[Row], listing: Listing, now: datetime) -> str:
    """Return a report in `html`, `md`, `csv`, `sarif` or `junit`."""
    match form:
        case "html":
            return _html(title, rows, listing, now)
        case "sarif":
            return json_text(_sarif(rows))
        case "junit":
            return _junit(title, rows)
    out = io.StringIO()
    write_rows(out, rows, listing, form, now)
    return out.getvalue()


def _html(title: str, rows: Sequence[Row], listing: Listing, now: datetime) -> str:
    heads = "".join(f"<th>{escape(one.head)}" for one in listing.columns)
    lines = []
    for row in rows:
        cells = (plain(cell_text(one, row.cells.get(one.id), now)) for one in listing.columns)
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}" for cell in cells))
    body = "\n".join(lines)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>kpolicy: {escape(title)}</title><style>{_STYLE}</style>\n'
        f"<h1>{escape(title.capitalize())}</h1><p>{len(rows)} rows, {absolute(now)}</p>\n<table><tr>{heads}\n{body}\n</table></html>\n"
    )


def _sarif(rows: Sequence[Row]) -> dict[str, Any]:
    """Return SARIF 2.1.0: a rule for each policy/rule, a result for each row, the object as its logical location."""
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for row in rows:
        name = f"{row.text('policy')}/{row.text('rule')}"
        rules.setdefault(name, {"id": name, "shortDescription": {"text": name}})
        place = "/".join(filter(None, (row.text("namespace"), row.text("resource") or row.text("name"))))  # fmt: skip
        results.append(
            {
                "ruleId": name,
                "level": LEVELS.get(row.text("severity"), "warning"),
                "message": {"text": plain(row.text("message")) or name},
                "locations": [{"logicalLocations": [{"fullyQualifiedName": place, "kind": "object"}]}],
            }
        )  # fmt: skip
    tool = {"driver": {"name": "kpolicy", "informationUri": "https://kpolicy.io", "rules": list(rules.values())}}  # fmt: skip
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }


def _junit(title: str, rows: Sequence[Row]) -> str:
    """Return JUnit: each row is a case, failed where its result is one of a violation."""
    cases, failures = [], 0
    for row in rows:
        name = _xml(f"{row.text('namespace')}/{row.text('resource') or row.text('name')}")
        group = _xml(f"{row.text('policy')}/{row.text('rule')}")
        body = ""
        if row.text("result") in ("fail", "error", "warn"):
            failures += 1
            body = f'<failure message="{_xml(row.text("message"))}" type="{_xml(row.text("severity") or "none")}"/>'  # fmt: skip
        cases.append(f'  <testcase classname="{group}" name="{name}">{body}</testcase>\n')
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="{_xml(title)}" tests="{len(rows)}" failures="{failures}">\n{"".join(cases)}</testsuite>\n'


def _xml(text: str) -> str:
    return escape(plain(text), quote=True)


def cef(row: Row) -> str:
    """Return an audit record in ArcSight's Common Event Format."""
    severity = 3 if row.text("result") in ("ok", "allowed", "") else 7
    verb = _header(row.text("verb"))
    pairs = {
        "rt": absolute(row.cells.get("time")),
        "suser": row.text("actor"),
        "act": row.text("verb"),
        "outcome": row.text("result"),
        "reason": row.text("reason"),
        "fname": row.text("object"),
        "externalId": row.text("seq"),
        "cs1": word(row.object, "hash"),
    }
    extension = " ".join(f"{key}={_extension(value)}" for key, value in pairs.items() if value)
    return f"CEF:0|kpolicy|kpolicy|1|{verb}|{verb}|{severity}|{extension}"


def _header(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace("|", "\\|")


def _extension(text: str) -> str:
    return plain(text).replace("\\", "\\\\").replace("=", "\\=")
