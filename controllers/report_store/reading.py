"""Pages of reports as of one version, and what changed after one.

A later page shows what the first one would have shown, whatever was written meanwhile: reports that have not changed since are
read as they are, the others from what stood there before their first change. Both are known as long as changes are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import Gone, KubeError
from engine.vocabulary import SEVERITIES

from .batch import Change, Place, at_places
from .selecting import Condition, Selector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .database import Session

_ALL = Selector()
_SEVERITY_TESTS: Final = (
    *(Condition("results.severity = ?", (one,)) for one in SEVERITIES),
    Condition(f"results.severity NOT IN ({', '.join('?' * len(SEVERITIES))})", SEVERITIES),
)
_PLACES: Final = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """Which page: of one namespace (empty: the cluster's own reports; None: of all namespaces), of what is selected.

    It is as of a version (0: the last one, and not before `least`), begins after a place and holds at most so many (0: all).
    `is_worst_first` is a page of the last version in which the report with the severest chosen result comes first, then the newest.
    With `only` it is what there is now at some places.
    """

    namespace: str | None
    selector: Selector = _ALL
    version: int = 0
    least: int = 0
    after: Place | None = None
    limit: int = 0
    is_worst_first: bool = False
    only: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """Reports in the order of their places, as they are kept; `last` is where the next page goes on, None at the end.

    `remaining` is how many come after, counted for the first page of everything: 0 where it is not known.
    """

    bodies: Sequence[bytes]
    version: int
    last: Place | None = None
    remaining: int = 0


def bounds(session: Session) -> tuple[int, int]:
    """Return the last version that is forgotten and the last one that was given."""
    found = dict(session.rows("SELECT name, value FROM counters"))
    return found["forgotten"], found["version"]


def page_of(session: Session, asked: Asked) -> Page:
    """Return a page; raises Gone for a version that is forgotten, and KubeError for one that is not there yet."""
    forgotten, newest = bounds(session)
    version = asked.version or newest
    if max(version, asked.least) > newest:
        raise KubeError(
            f"Too large resource version: {max(version, asked.least)}, current: {newest}",
            status=504,
            reason="Timeout",
            retry_after=1.0,
        )
    if version < forgotten:
        raise expired(version, forgotten)
    if asked.is_worst_first:
        return Page(worst_of(session, asked, version), version)
    if asked.only:
        found = _reports(session, asked, version, 0, asked.only)
        return Page([body for _, body in found], version)
    rows = _as_they_are(session, asked, version)
    is_full = bool(asked.limit) and len(rows) > asked.limit
    if version < newest:
        end = rows[asked.limit - 1][0] if is_full else None
        rows = sorted([*rows, *_as_they_were(session, asked, version, end)])
    if asked.limit and len(rows) > asked.limit:
        kept = rows[: asked.limit]
        last = kept[-1][0]
        is_counted = asked.selector.is_all and asked.after is None and version == newest
        remaining = _count(session, replace(asked, after=last)) if is_counted else 0
        return Page([body for _, body in kept], version, last, remaining)
    return Page([body for _, body in rows], version)


def _count(session: Session, asked: Asked) -> int:
    sql, values = _within(asked, "reports")
    text = f"SELECT COUNT(*) FROM reports WHERE {' AND '.join(sql)}"  # noqa: S608 - only words of ours
    return int(session.rows(text, values)[0][0])


def expired(version: int, forgotten: int) -> Gone:
    """Return the refusal of a version that is not known any more."""
    return Gone(
        f"The resourceVersion for the provided list or watch is too old: {version} (known since {forgotten})"
    )


def _as_they_are(session: Session, asked: Asked, version: int) -> list[tuple[Place, bytes]]:
    """Return one more than asked for of those that have not changed since a version."""
    if not asked.selector.of_results:
        return _reports(session, asked, version, asked.limit + 1 if asked.limit else 0)
    found: list[tuple[Place, bytes]] = []
    after = asked.after
    while not asked.limit or len(found) <= asked.limit:
        some = _places(
            session, replace(asked, after=after), asked.limit + 1 if asked.limit else _PLACES
        )
        if not some:
            break
        found += _reports(session, asked, version, 0, some)
        after = some[-1]
    return found[: asked.limit + 1] if asked.limit else found


def worst_of(session: Session, asked: Asked, version: int) -> list[bytes]:
    """Return so many reports, the ones with the severest chosen results, the newest first among equals.

    Each severity is read in the order of an index, and no further than the page is full.
    """
    found: dict[Place, bytes] = {}
    for test in _SEVERITY_TESTS:
        after: tuple[Any, ...] = ()
        while len(found) < asked.limit:
            rows = _worst_results(session, asked, test, after)
            if not rows:
                break
            places = [place for row in rows if (place := (row[1], row[2])) not in found]
            bodies = dict(_reports(session, asked, version, 0, list(dict.fromkeys(places))))
            found |= {place: bodies[place] for place in places if place in bodies}
            after = rows[-1]
    return list(found.values())[: asked.limit]


def _worst_results(
    session: Session, asked: Asked, severity: Condition, after: tuple[Any, ...]
) -> Sequence[tuple[Any, ...]]:
    """Return the next chosen results of a severity, as (time, namespace, name), the newest first."""
    sql, values = _within(asked, "results")
    of_report = asked.selector.of_a_report()
    if of_report.sql:
        among = f"SELECT reports.namespace, reports.name FROM reports WHERE {of_report.sql}"  # noqa: S608 - only words of ours
        of_report = Condition(f"(results.namespace, results.name) IN ({among})", of_report.values)
    for one in (severity, asked.selector.of_a_result(), of_report):
        if one.sql:
            sql.append(one.sql)
            values += one.values
    if after:
        sql.append("(results.newest, results.namespace, results.name) > (?, ?, ?)")
        values += after
    text = f"SELECT newest, namespace, name FROM results WHERE {' AND '.join(sql)} ORDER BY newest, namespace, name LIMIT ?"  # noqa: S608 - only words of ours
    return session.rows(text, [*values, min(asked.limit, _PLACES)])


def _places(session: Session, asked: Asked, most: int) -> list[Place]:
    """Return the next reports that have a chosen result.

    They are read in the order of an index and no further than so many, so that neither a rare nor a common value makes the
    database look at all reports.
    """
    sql, values = _within(asked, "results")
    chosen = asked.selector.of_a_result()
    where = " AND ".join([*sql, chosen.sql])
    text = f"SELECT DISTINCT namespace, name FROM results WHERE {where} ORDER BY namespace, name LIMIT ?"  # noqa: S608 - only words of ours
    rows = session.rows(text, [*values, *chosen.values, min(most, _PLACES)])
    return [(namespace, name) for namespace, name in rows]


def _reports(
    session: Session, asked: Asked, version: int, most: int, places: Sequence[Place] = ()
) -> list[tuple[Place, bytes]]:
    """Return reports that have not changed since a version, in order; of some places only, where those are given."""
    sql, values = _within(asked, "reports")
    condition = asked.selector.of_a_report()
    if condition.sql:
        sql.append(condition.sql)
        values += condition.values
    read = at_places(len(places)) if places else "SELECT namespace, name, body FROM reports"
    text = f"{read} WHERE version <= ? AND {' AND '.join(sql)} ORDER BY namespace, name"
    values = [*(part for place in places for part in place), version, *values]
    if most:
        text += " LIMIT ?"
        values.append(most)
    return [((space, name), bytes(body)) for space, name, body in session.rows(text, values)]


def _as_they_were(
    session: Session, asked: Asked, version: int, end: Place | None
) -> list[tuple[Place, bytes]]:
    """Return those that have changed since, as they were before."""
    sql, values = _within(asked, "changes")
    if end is not None:
        sql.append("(changes.namespace, changes.name) <= (?, ?)")
        values += end
    text = f"SELECT namespace, name, before FROM changes WHERE version > ? AND {' AND '.join(sql)} ORDER BY version"  # noqa: S608 - only words of ours
    first: dict[Place, bytes | None] = {}
    for namespace, name, before in session.rows(text, [version, *values]):
        first.setdefault((namespace, name), None if before is None else bytes(before))
    return [
        (place, body)
        for place, body in first.items()
        if body is not None and asked.selector.fits(orjson.loads(body))
    ]


def _within(asked: Asked, table: str) -> tuple[list[str], list[Any]]:
    """Return the conditions on namespace and place."""
    if asked.namespace is None:
        sql, values = [f"{table}.namespace > ?"], [""]
    else:
        sql, values = [f"{table}.namespace = ?"], [asked.namespace]
    if asked.after is not None:
        sql.append(f"({table}.namespace, {table}.name) > (?, ?)")
        values += asked.after
    return sql, list(values)


def changes_after(session: Session, after: int, most: int) -> list[Change]:
    """Return the changes after a version, in order; raises Gone where some of them are forgotten."""
    forgotten, newest = bounds(session)
    if after < forgotten or after > newest:
        raise expired(after, forgotten)
    text = "SELECT version, namespace, name, before, body FROM changes WHERE version > ? ORDER BY version LIMIT ?"
    return [
        Change(version, (namespace, name), _bytes(before), _bytes(body))
        for version, namespace, name, before, body in session.rows(text, (after, most))
    ]


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
