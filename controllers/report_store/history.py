"""How many results of each kind there were at the end of each day.

Each write adds by how much it changed a day's numbers, in the same transaction; what there was at the end of a day is the sum of
all days up to it. So a day on which nothing changed costs nothing, and no day is missed by who was away.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .database import Session

KEPT_DAYS: Final = 400


def levels(session: Session, namespace: str | None, since: str) -> list[tuple[Any, ...]]:
    """Return (day, severity, result, number) at the end of each day on which something changed, and at the end of `since`."""
    where, values = ("namespace = ? AND", [namespace]) if namespace is not None else ("", [])
    day = "CASE WHEN day < ? THEN ? ELSE day END"
    rows = session.rows(
        f"SELECT {day} AS at, severity, result, SUM(delta) FROM history WHERE {where} 1 = 1 GROUP BY 1, severity, result ORDER BY 1",  # noqa: S608 - only words of ours
        [since, since, *values],
    )
    now: dict[tuple[str, str], int] = {}
    found: list[tuple[Any, ...]] = []
    for at, group in groupby(rows, key=lambda row: row[0]):
        for _, severity, result, delta in group:
            now[severity, result] = now.get((severity, result), 0) + int(delta)
        found += [(at, *key, number) for key, number in sorted(now.items()) if number]
    return found


def fold(session: Session, now: datetime) -> None:
    """Add days that nobody asks about any more to the first one that is kept."""
    first = (now - timedelta(days=KEPT_DAYS)).date().isoformat()
    [(number,)] = session.rows("SELECT COUNT(*) FROM history WHERE day < ?", (first,))
    if not number:
        return
    rows = session.rows(
        "SELECT namespace, policy, severity, result, SUM(delta) FROM history WHERE day <= ? GROUP BY namespace, policy, severity, result",
        (first,),
    )
    session.run_many("DELETE FROM history WHERE day <= ?", [(first,)])
    kept = [(first, *key, int(delta)) for *key, delta in rows if delta]
    if kept:
        session.run_many("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", kept)
