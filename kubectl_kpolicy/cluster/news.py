"""What is worth a word to who looks, told once: decisions, ends, the last five minutes, requests to decide, new critical failures.

What was there at the first look is no news, and nothing is told of what cannot be read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.fields import items, word
from engine.grants import FINAL
from engine.record import record
from kubectl_kpolicy.output import time_format

from . import grants, violations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubectl_kpolicy.output.rows import Row

    from .cache import ClusterCache

SOON = timedelta(minutes=5)
SOURCES = ("grants", "grantpolicies", *violations.SOURCES)
_GOOD = ("active", "scheduled")


@record
class Notice:
    """One sentence, the word whose mark stands before it, and the screen with the filter where one can act on it."""

    text: str
    state: str
    screen: str
    where: str = ""


class Watch:
    """Looks at the cache again and again and returns what is new each time."""

    def __init__(self) -> None:
        self._states: dict[str, str] | None = None
        self._critical: frozenset[str] | None = None
        self._warned: set[str] = set()

    def news(self, world: ClusterCache, now: datetime) -> list[Notice]:
        """Return what has happened since the last look."""
        found: list[Notice] = []
        if world.is_synced("grants") and world.problem("grants") is None:
            rows = grants.grant_rows(world, now)
            found += self._decided(rows, world, now)
            found += self._ending(rows, world, now)
        if all(map(world.is_synced, violations.LISTING.needs)):
            found += self._failing(world)
        return found

    def _decided(self, rows: list[Row], world: ClusterCache, now: datetime) -> Iterator[Notice]:
        before, self._states = self._states, {row.key: row.text("state") for row in rows}
        if before is None:
            return
        changed = [row for row in rows if before.get(row.key) != row.text("state")]
        to_decide = {row.key for row in grants.inbox_rows(world, now) if not row.text("refused")}
        for row in changed:
            state = row.text("state")
            if state == "pending" and row.key in to_decide and not is_own(row, world):
                asked = f"{row.text('requester')} asks for {_what(row)}"
                yield Notice(asked, state, "inbox", _where(row))
            elif is_told(row, world) and (said := _said(row, before.get(row.key, ""))):
                yield Notice(said, state, "grants", _where(row))

    def _ending(self, rows: list[Row], world: ClusterCache, now: datetime) -> Iterator[Notice]:
        for row in rows:
            ends = row.moment("left") if row.text("state") == "active" else None
            is_due = ends is not None and now < ends <= now + SOON
            if ends is not None and is_due and row.key not in self._warned and is_told(row, world):
                self._warned.add(row.key)
                text = f"{_what(row)} ends in {time_format.span((ends - now).total_seconds())}"
                yield Notice(text, "warn", "grants", _where(row))

    def _failing(self, world: ClusterCache) -> Iterator[Notice]:
        found = world.derived("critical failures", violations.SOURCES, lambda: _critical(world))
        before, self._critical = self._critical, frozenset(found)
        new = [] if before is None else [row for key, row in found.items() if key not in before]
        if new:
            row = new[0]
            more = f" and {len(new) - 1} more" if len(new) > 1 else ""
            text = f"new critical failure{more}: {row.text('policy')} on {row.text('resource')}"
            yield Notice(text, "critical", "violations", "sev=critical")


def _critical(world: ClusterCache) -> dict[str, Row]:
    rows = violations.all_rows(world)
    return {
        row.key: row
        for row in rows
        if row.cells.get("severity") == "critical" and violations.is_failure(row)
    }


def is_own(row: Row, world: ClusterCache) -> bool:
    """Tell whether who looks asked for a grant."""
    return world.viewer is not None and row.text("requester") == world.viewer.user


def is_told(row: Row, world: ClusterCache) -> bool:
    """Tell whether a grant is the business of who looks: his own, one that he decided on, or any where nobody knows who looks."""
    if world.viewer is None or is_own(row, world):
        return True
    return any(
        word(one, "by") == world.viewer.user for one in items(row.object, "spec", "decisions")
    )


def _said(row: Row, before: str) -> str:
    """Return what to say of a grant that has come into a state, empty for what is no news."""
    state = row.text("state")
    if state in _GOOD:
        by = f" by {row.text('approver')}" if row.text("approver") else ""
        return f"{_what(row)} is approved{by}" if before not in _GOOD else f"{_what(row)} is active"
    if state == "denied":
        return f"{_what(row)} is denied: {row.text('approver')}"
    return f"{_what(row)} has ended: {state}" if state in FINAL and before else ""


def _what(row: Row) -> str:
    return f"{row.text('rules')} for {row.text('target')}"


def _where(row: Row) -> str:
    return f"name={row.text('name')} ns={row.text('namespace')}"
