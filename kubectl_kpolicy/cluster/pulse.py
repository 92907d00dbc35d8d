"""Pulse: the few numbers that tell how things stand, each a door to the rows behind it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from engine.record import record, replace
from kubectl_kpolicy.output.rows import SEVERITIES, Row

from . import audit, blocks, celkinds, cleanup, codes, exceptions, grants, policies, violations
from .knowledge import UNJUDGED, Knowledge, Sight, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .cache import ClusterCache

HOURS = 24
_COUNTED = {
    one.noun: one
    for one in (violations.LISTING, blocks.LISTING, grants.GRANTS, codes.LISTING, cleanup.LISTING, exceptions.LISTING, audit.LISTING)
}  # fmt: skip
"""What gauges count, by the screens behind them."""


_PLURAL = re.compile(r"\b(failure|block|grant|code|cleanup)s\b")


@record
class Gauge:
    """One number with its words, the screen and the filter behind it, and whether it asks for attention.

    `value` is None where nobody can know it: none was seen, but not everything either. `knowledge` says what is missing.
    """

    id: str
    title: str
    value: int | None
    screen: str
    where: str = ""
    role: str = "plain"
    trend: tuple[int, ...] = ()
    knowledge: Knowledge = Knowledge(Sight.WHOLE)

    @property
    def counted(self) -> str:
        """The number with its words, which are of one thing where it is one."""
        words = _PLURAL.sub(r"\1", self.title) if self.text == "1" else self.title
        return f"{self.text} {words}"

    @property
    def text(self) -> str:
        """The number for people: `?` for an unknown one, `+` after one that may be larger."""
        if self.value is None:
            return "?"
        return f"{self.value:,}".replace(",", " ") + ("+" if self.knowledge.sight is Sight.PARTLY else "")  # fmt: skip


def gauges(world: ClusterCache, now: datetime) -> list[Gauge]:
    """Return all gauges, in the order they are shown."""
    counted = [
        *_failures(violations.all_rows(world), now),
        *_admission(world, now),
        *_grants(world, now),
        *_endings(world, now),
    ]
    knowledge = {screen: known(world, _COUNTED[screen]) for screen in {one.screen for one in counted}}  # fmt: skip
    if knowledge["violations"].sight is Sight.WHOLE and _is_unjudged(world):
        knowledge["violations"] = UNJUDGED
    return [_honest(gauge, knowledge[gauge.screen]) for gauge in counted]


def _is_unjudged(world: ClusterCache) -> bool:
    """Tell whether there are policies and nobody can have judged anything by them: none was taken over, nothing was reported."""
    if violations.all_rows(world):
        return False
    resources = ("clusterpolicies", "policies", celkinds.POLICIES)
    found = [one for name in resources for one in world.objects(name)]
    return bool(found) and all(policies.readiness(one) == "unknown" for one in found)


def _honest(gauge: Gauge, knowledge: Knowledge) -> Gauge:
    """Return a gauge without the number that its resources do not bear out, and without a role that says all is well."""
    if knowledge.sight is Sight.WHOLE:
        return gauge
    is_blind = knowledge.sight in (Sight.LOADING, Sight.HINDERED)
    unknown = is_blind or (not gauge.value and knowledge.sight is Sight.PARTLY)
    role = "plain" if gauge.role == "success" or unknown else gauge.role
    return replace(gauge, value=None if unknown else gauge.value, role=role, knowledge=knowledge)


def _failures(rows: Sequence[Row], now: datetime) -> Iterator[Gauge]:
    failing = [row for row in rows if violations.is_failure(row)]
    counts = Counter(row.text("severity") for row in failing)
    trend = by_hour((row.moment("age") for row in failing), now)
    role = "error" if failing else "success"
    yield Gauge("failures", "failures", len(failing), "violations", "", role, trend)
    for name in SEVERITIES[:3]:
        role = "error" if counts[name] and name != "medium" else "plain"
        yield Gauge(f"severity-{name}", name, counts[name], "violations", f"sev={name}", role)


def _admission(world: ClusterCache, now: datetime) -> Iterator[Gauge]:
    rows = blocks.block_rows(world, now)
    hour = [row for row in rows if _within(row.moment("time"), now, timedelta(hours=-1))]
    trend = by_hour((row.moment("time") for row in rows), now)
    yield Gauge("blocks", "blocks 1h", sum(_count(row) for row in hour), "blocks", "time<1h",
                "warning" if hour else "plain", trend)  # fmt: skip


def _grants(world: ClusterCache, now: datetime) -> Iterator[Gauge]:
    rows = grants.grant_rows(world, now)
    states = Counter(row.text("state") for row in rows)
    soon = [row for row in rows if row.cells["state"] == "active" and _within(row.moment("left"), now, timedelta(hours=1))]  # fmt: skip
    yield Gauge("active", "active grants", states["active"], "grants", "state=active", "success")
    yield Gauge("pending", "pending", states["pending"], "grants", "state=pending", _warn(states["pending"]))  # fmt: skip
    yield Gauge("ending", "ending <1h", len(soon), "grants", "state=active left<1h", _warn(len(soon)))  # fmt: skip
    out = [row for row in codes.code_rows(world, now) if row.cells["state"] in ("issued", "active", "unused")]  # fmt: skip
    yield Gauge("codes", "codes out", len(out), "codes", "state=issued,active,unused")


def _endings(world: ClusterCache, now: datetime) -> Iterator[Gauge]:
    rows = cleanup.cleanup_rows(world, now)
    soon = [row for row in rows if _within(row.moment("left"), now, timedelta(hours=1))]
    yield Gauge("cleanup", "cleanups <1h", len(soon), "cleanup", "left<1h")
    troubled = [row for row in exceptions.exception_rows(world, now) if row.cells["drift"]]
    yield Gauge("drift", "to review", len(troubled), "exceptions", 'drift!=""', _warn(len(troubled)))  # fmt: skip
    recent = [row for row in audit.audit_rows(world, now) if _within(row.moment("time"), now, timedelta(hours=-24))]  # fmt: skip
    yield Gauge("audit", "audit 24h", len(recent), "audit", "time<24h")


def by_hour(instants: Iterable[datetime | None], now: datetime) -> tuple[int, ...]:
    """Return how many instants fall into each of the last 24 hours, the oldest first."""
    found = [0] * HOURS
    for at in instants:
        hour = int((now - at).total_seconds() // 3600) if at is not None else -1
        if 0 <= hour < HOURS:
            found[HOURS - 1 - hour] += 1
    return tuple(found)


def next_ending(world: ClusterCache, now: datetime) -> datetime | None:
    """Return when the next active grant or exception ends."""
    ends = [row.moment("left") for row in grants.grant_rows(world, now) if row.cells["state"] == "active"]  # fmt: skip
    ends += [exceptions.ends_at(obj) for obj in world.objects("exceptions")]
    return min((end for end in ends if end is not None and end > now), default=None)


def _within(at: datetime | None, now: datetime, length: timedelta) -> bool:
    return at is not None and min(now, now + length) <= at <= max(now, now + length)


def _count(row: Row) -> int:
    value = row.cells.get("count")
    return value if isinstance(value, int) else 1


def _warn(count: int) -> str:
    return "warning" if count else "plain"
