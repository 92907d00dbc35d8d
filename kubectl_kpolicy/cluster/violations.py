"""Violations: one row for each resource, policy and rule that a policy report speaks of.

Reports of both API groups are read; a report with a `scope` is about that one object, an older one names objects in each
result.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.fields import items, part, word
from kubectl_kpolicy.output.rows import Cell, Column, Listing, Row, Shape, severity_rank
from kubectl_kpolicy.output.time_format import absolute, instant

from .cache import ClusterCache, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Object


SOURCES = ("reports", "clusterreports", "openreports", "clusteropenreports")
CHOSEN_BY = ("policy", "result", "severity", "category", "source")
"""Columns of results by which a report store chooses reports."""

FAILURES = frozenset({"fail", "warn", "error"})
_BEGINNINGS = ("validation error: ", "validation failure: ")


def all_rows(world: ClusterCache, _now: datetime | None = None) -> Sequence[Row]:
    """Return the rows of all reports."""
    return world.derived("violations", SOURCES, lambda: _rows(world))


def rows_by_object(world: ClusterCache) -> Mapping[tuple[str, str], Sequence[Row]]:
    """Return the rows of all reports by namespace and `Kind/name`."""
    return world.derived("violations by object", SOURCES, lambda: _by_object(world))


def _rows(world: ClusterCache) -> list[Row]:
    """Return the rows of each report once: a report store serves the same one in both API groups."""
    rows: list[Row] = []
    seen: set[str] = set()
    for source in SOURCES:
        for report in world.objects(source):
            uid = word(report, "metadata", "uid")
            if uid and uid in seen:
                continue
            seen.add(uid)
            rows += world.cached(source, report, rows_of_report)
    return rows


def _by_object(world: ClusterCache) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in all_rows(world):
        found.setdefault((row.text("namespace"), row.text("resource")), []).append(row)
    return found


def rows_of_report(report: Object) -> list[Row]:
    """Return the rows of one report; this runs for every result of a cluster, so it asks each map once."""
    created = instant(word(report, "metadata", "creationTimestamp"))
    scope = part(report, "scope")
    home = "/".join(key_of(report))
    namespace = word(report, "metadata", "namespace")
    rows = []
    for number, result in enumerate(items(report, "results")):
        place = f"{home}/{number}"
        subjects = (scope,) if scope else _subjects(result)
        rows += [_row(namespace, result, subject, created, place) for subject in subjects]
    return rows


def _subjects(result: Object) -> list[Object]:
    return items(result, "resources") or items(result, "subjects") or [{}]


def _text(obj: Object, name: str) -> str:
    """Return a text of a map; what is `word` for one name."""
    found = obj.get(name)
    if isinstance(found, str):
        return found
    return "" if found is None or isinstance(found, dict | list) else str(found)


def _row(home: str, result: Object, subject: Object, created: datetime | None, place: str) -> Row:
    namespace = _text(subject, "namespace") or home
    kind, name = _text(subject, "kind"), _text(subject, "name")
    resource = f"{kind}/{name}" if kind else name
    policy, rule = _text(result, "policy"), _text(result, "rule")
    seen = instant(result.get("timestamp"))
    properties = part(result, "properties")
    cells: dict[str, Cell] = {
        "severity": _text(result, "severity").lower(),
        "result": (_text(result, "result") or _text(result, "status")).lower(),
        "namespace": namespace,
        "resource": resource,
        "policy": policy,
        "rule": rule,
        "message": _text(result, "message"),
        "age": seen or created,
        "source": _text(result, "source"),
        "category": _text(result, "category"),
        "first": created or seen,
        "exception": _text(properties, "exceptions"),
        "kind": kind,
        "name": name,
    }
    target = _text(properties, "patched-target")
    key = f"{namespace}/{resource}|{policy}/{rule}|{target}" if resource else place
    return Row(key, cells, make=partial(_object, cells, subject, result, seen))


def _object(
    cells: dict[str, Cell], subject: Object, result: Object, seen: datetime | None
) -> Object:
    """Return the row as an object for machines; its fields are a promise."""
    slug = "-".join(str(cells[name]) for name in ("policy", "rule", "name") if cells[name])
    metadata: Object = {"name": slug.replace("/", "-").lower()}
    if cells["namespace"]:
        metadata["namespace"] = cells["namespace"]
    return {
        "apiVersion": vocabulary.KPOLICY,
        "kind": "Violation",
        "metadata": metadata,
        "resource": {
            key: subject[key]
            for key in ("apiVersion", "kind", "namespace", "name", "uid")
            if key in subject
        },
        **{
            key: result[key]
            for key in ("policy", "rule", "severity", "category", "source", "message", "properties")
            if key in result
        },
        **({"timestamp": absolute(seen)} if seen else {}),
        "result": cells["result"],
    }


def brief_message(row: Row, _now: datetime | None = None) -> str:
    """Return a message without the words with which the engine begins nearly every one of them."""
    text = row.text("message")
    head = next((one for one in _BEGINNINGS if text.startswith(one)), "")
    return text.removeprefix(head)


def is_failure(row: Row) -> bool:
    """Tell whether a row is one that somebody may have to look at."""
    return row.cells.get("result") in FAILURES


def weight(row: Row | None) -> tuple[float, float]:
    """Return what violations are sorted by, the heaviest first: severity and second; without a row, what none is above."""
    if row is None:
        return inf, inf
    at = row.cells.get("age")
    second = at.timestamp() // 1 if isinstance(at, datetime) else 0.0
    return severity_rank(row.cells.get("severity")), second


LISTING = Listing(
    noun="violations",
    title="Violations",
    aliases=("v", "viol", "violation"),
    columns=(
        Column("severity", "SEV", Shape.SEVERITY, most=10, aliases=("sev",)),
        Column("result", "RES", Shape.STATE, most=7, aliases=("res", "status")),
        Column("namespace", "NS", most=18, aliases=("ns",)),
        Column("resource", "RESOURCE", most=36, aliases=("object", "target")),
        Column("policy", "POLICY", most=32),
        Column("rule", "RULE", most=26, narrow=False),
        Column(
            "message", "MESSAGE", grows=True, narrow=False, aliases=("msg",), brief=brief_message
        ),
        Column("age", "AGE", Shape.AGE),
        Column("source", "SOURCE", wide=True),
        Column("category", "CATEGORY", wide=True, most=24),
        Column("first", "FIRST-SEEN", Shape.TIME, wide=True),
        Column("exception", "EXC", wide=True, most=24, aliases=("exc",)),
        Column("kind", "KIND", wide=True),
        Column("name", "NAME", wide=True, most=24),
    ),
    rows=all_rows,
    needs=("reports",),
    wants=("clusterreports", "openreports", "clusteropenreports"),
    sort=("severity", "-age"),
    groups=("policy", "namespace", "severity", "kind"),
    failures=is_failure,
    starts_narrowed=True,
    empty="no policy report says that anything fails",
    next_step="press ! to see results that pass, too; `kubectl kpolicy doctor` says whether reports are written at all",
)
