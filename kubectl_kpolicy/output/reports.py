"""Rows as files for others: one HTML page without scripts, Markdown, CSV, SARIF for code scanning, JUnit for pipelines, CEF."""

from __future__ import annotations

import io
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.fields import word
from kubectl_kpolicy.output.time_format import absolute

from .cells import cell_text, plain
from .findings import Case, Finding, github_lines, junit_text, level_of, sarif_log
from .listings import write_rows
from .structured import json_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from engine.errors import Location
    from kubectl_kpolicy.output.rows import Listing, Row

_STYLE = "body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left;vertical-align:top}th{position:sticky;top:0;background:#fff}"


def written(
    form: str,
    title: str,
    rows: Sequence[Row],
    listing: Listing,
    now: datetime,
    places: Mapping[str, Location] = MappingProxyType({}),
) -> str:
    """Return a report in `html`, `md`, `csv`, `sarif`, `junit` or `github`; `places` are those of objects in files, by `namespace/Kind/name`."""
    match form:
        case "html":
            return _html(title, rows, listing, now)
        case "sarif":
            return json_text(sarif_log(list(_findings(rows, places))))
        case "github":
            return github_lines(_findings(rows, places))
        case "junit":
            return _junit(title, rows, places)
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


def _findings(rows: Sequence[Row], places: Mapping[str, Location]) -> Iterator[Finding]:
    for row in rows:
        name, place = f"{row.text('policy')}/{row.text('rule')}", _place(row)
        level = level_of(row.text("result"), row.text("severity"))
        yield Finding(name, "", level, plain(row.text("message")) or name, place.lstrip("/"), places.get(place))  # fmt: skip


def _place(row: Row) -> str:
    """Return `namespace/Kind/name`, the namespace empty where there is none."""
    return f"{row.text('namespace')}/{row.text('resource') or row.text('name')}"


def _junit(title: str, rows: Sequence[Row], places: Mapping[str, Location]) -> str:
    """Return JUnit: a suite for each policy, each row a case, failed where its result is one of a violation."""
    suites: dict[str, list[Case]] = {}
    for row in rows:
        bad = row.text("result") in ("fail", "error", "warn")
        failure = plain(row.text("message")) or row.text("result") if bad else None
        case = Case(row.text("rule"), _place(row), failure, places.get(_place(row)))
        suites.setdefault(row.text("policy"), []).append(case)
    return junit_text(f"kpolicy {title}", suites) + "\n"


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
