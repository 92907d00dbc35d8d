"""Some writes as one transaction: each is tried on what the ones before it left, and all that succeed are kept together.

So a hundred writers wait for one disk. A write that is refused leaves nothing and keeps nobody back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import KubeError
from engine.lang import rfc3339

from .selecting import RESULT_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from engine.model import Object

    from .database import Session

Place = tuple[str, str]
"""Namespace, empty for the cluster's, and name."""

_MOST_PLACES: Final = 400
_YEAR_10000: Final = 253_402_300_800
_HOLD: Final = "UPDATE counters SET value = value WHERE name = 'version' RETURNING value"


@dataclass(frozen=True, slots=True)
class Write:
    """One write: `apply` makes what is to be there, None for nothing, from what is there, or raises KubeError."""

    place: Place
    apply: Callable[[Object | None], Object | None]
    is_tried_only: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What a write did: the report before and after it, as JSON."""

    version: int
    place: Place
    before: bytes | None
    body: bytes | None


@dataclass(slots=True)
class _Done:
    """What came of the writes so far."""

    version: int
    bodies: dict[Place, bytes | None]
    before: dict[Place, Object | None] = field(default_factory=dict)
    after: dict[Place, Object | None] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    levels: Counter[tuple[str, ...]] = field(default_factory=Counter)


Outcome = bytes | KubeError
"""The report as it is kept (or was, where it was deleted), or why it was refused."""


def carry_out(session: Session, writes: Sequence[Write], at: datetime) -> list[Outcome]:
    """Do the writes in their order and return what came of each; raises StorageError, and then nothing was done."""
    with session.writing():
        # INVARIANT: the counter is held from here on, so that versions become visible in the order of their numbers.
        [(version,)] = session.rows(_HOLD)
        done = _Done(version, _bodies(session, {one.place for one in writes}))
        outcomes = [_try(done, one) for one in writes]
        if done.changes:
            _keep(session, done, at)
    return outcomes


def _bodies(session: Session, places: set[Place]) -> dict[Place, bytes | None]:
    found: dict[Place, bytes | None] = {}
    every = sorted(places)
    for start in range(0, len(every), _MOST_PLACES):
        some = every[start : start + _MOST_PLACES]
        rows = session.rows(at_places(len(some)), [part for place in some for part in place])
        found.update(((namespace, name), bytes(body)) for namespace, name, body in rows)
    return found


def at_places(count: int) -> str:
    """Return the statement that reads namespace, name and body of the reports at so many places, whose parts are its first values.

    As a join, for which both databases look up each key; for pairs that are to be IN a list they look through all reports.
    """
    marks = ", ".join(["(?, ?)"] * count)
    wanted = f"WITH wanted (space, place) AS (VALUES {marks})"
    return (
        f"{wanted} SELECT reports.namespace, reports.name, reports.body FROM wanted"  # noqa: S608 - marks only
        " JOIN reports ON reports.namespace = wanted.space AND reports.name = wanted.place"
    )


def _try(done: _Done, write: Write) -> Outcome:
    before = done.bodies.get(write.place)
    old: Object | None = None if before is None else orjson.loads(before)
    try:
        made = write.apply(old)
    except KubeError as error:
        return error
    kept: Object | None = None
    if made is None:
        assert before is not None
    elif made == old:
        assert before is not None
        return before
    else:
        number = done.version if write.is_tried_only else done.version + 1
        kept = {**made, "metadata": {**made["metadata"], "resourceVersion": str(number)}}
    body = None if kept is None else orjson.dumps(kept)
    outcome = before if body is None else body
    assert outcome is not None
    if not write.is_tried_only:
        done.version += 1
        done.bodies[write.place] = body
        done.before.setdefault(write.place, old)
        done.after[write.place] = kept
        done.changes.append(Change(done.version, write.place, before, body))
        _count(done, write.place[0], old, -1)
        _count(done, write.place[0], made, 1)
    return outcome


def _count(done: _Done, namespace: str, report: Object | None, by: int) -> None:
    for row in (report or {}).get("results") or ():
        key = (namespace, *(str(row.get(name) or "") for name in ("policy", "severity", "result")))
        done.levels[key] += by


def _keep(session: Session, done: _Done, at: datetime) -> None:
    kept = [(place, report) for place, report in done.after.items() if report is not None]
    gone = [place for place, old in done.before.items() if old and done.after[place] is None]
    if gone:
        session.run_many("DELETE FROM reports WHERE namespace = ? AND name = ?", gone)
    rows = [_report(place, report, done.bodies[place]) for place, report in kept]
    _insert(session, "reports", 8, rows, _REPLACED)
    for table, rows_of in _BESIDE.items():
        old, new = (
            [row for place, report in some.items() if report for row in rows_of(place, report)]
            for some in (done.before, done.after)
        )
        _replace(session, table, old, new)
    moment = int(at.timestamp())
    _insert(
        session,
        "changes",
        6,
        [(one.version, moment, *one.place, one.before, one.body) for one in done.changes],
    )
    day = at.date().isoformat()
    levels = [(day, *key, delta) for key, delta in sorted(done.levels.items()) if delta]
    _insert(session, "history", 6, levels, _ADDED)
    session.run_many("UPDATE counters SET value = ? WHERE name = 'version'", [(done.version,)])


def _replace(
    session: Session, table: str, old: Sequence[tuple[Any, ...]], new: Sequence[tuple[Any, ...]]
) -> None:
    """Write the rows beside reports that differ from those before: each stands in several indexes, and most are what they were."""
    columns = _COLUMNS[table]
    key = columns[:_KEY]
    if gone := {row[:_KEY] for row in old} - {row[:_KEY] for row in new}:
        named = " AND ".join(f"{one} = ?" for one in key)
        session.run_many(f"DELETE FROM {table} WHERE {named}", sorted(gone))  # noqa: S608 - names of ours
    known = frozenset(old)
    sets = ", ".join(f"{one} = excluded.{one}" for one in columns[_KEY:])
    _insert(
        session,
        table,
        len(columns),
        [row for row in new if row not in known],
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}",
    )


_REPLACED: Final = (
    " ON CONFLICT (namespace, name) DO UPDATE SET version = excluded.version, scope_kind = excluded.scope_kind,"
    " scope_name = excluded.scope_name, scope_namespace = excluded.scope_namespace, scope_uid = excluded.scope_uid,"
    " body = excluded.body"
)
_ADDED: Final = " ON CONFLICT (namespace, day, policy, severity, result) DO UPDATE SET delta = history.delta + excluded.delta"


def _insert(
    session: Session, table: str, width: int, rows: Sequence[Sequence[Any]], else_do: str = ""
) -> None:
    if rows:
        marks = ", ".join("?" * width)
        session.run_many(f"INSERT INTO {table} VALUES ({marks}){else_do}", rows)  # noqa: S608 - names of ours


def _report(place: Place, report: Object, body: bytes | None) -> tuple[Any, ...]:
    scope = report.get("scope") or {}
    named = (str(scope.get(name) or "") for name in ("kind", "name", "namespace", "uid"))
    return (*place, int(report["metadata"]["resourceVersion"]), *named, body)


def _results(place: Place, report: Object) -> Iterable[tuple[Any, ...]]:
    created = report["metadata"].get("creationTimestamp")
    for number, row in enumerate(report.get("results") or ()):
        said = (str(row.get(name) or "") for name in RESULT_FIELDS)
        yield (*place, number, *said, -_second(row.get("timestamp"), created))


def _second(timestamp: Any, created: Any) -> int:
    """Return when a result was found, or else when its report was made, as whole seconds."""
    seconds = timestamp.get("seconds") if isinstance(timestamp, dict) else None
    if isinstance(seconds, int) and 0 < seconds < _YEAR_10000:
        return seconds
    at = rfc3339.read(created)
    return 0 if at is None else int(at.timestamp())


def _labels(place: Place, report: Object) -> Iterable[tuple[Any, ...]]:
    for label, value in (report["metadata"].get("labels") or {}).items():
        yield (*place, label, str(value))


_KEY: Final = 3
"""Columns of the key of a row beside a report: the report's place, and what tells the row from its others."""
_COLUMNS: Final = {
    "results": ("namespace", "name", "place", *RESULT_FIELDS, "newest"),
    "labels": ("namespace", "name", "label", "value"),
}
_BESIDE: Final[Mapping[str, Callable[[Place, Object], Iterable[tuple[Any, ...]]]]] = {
    "results": _results,
    "labels": _labels,
}
"""Tables of what reports are chosen by, and what makes their rows."""
