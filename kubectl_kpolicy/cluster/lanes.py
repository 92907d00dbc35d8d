"""Lanes: grants and clean-ups as stretches of time, with what happened on them as ticks.

Pure: rows in, lanes out, and the stretch of time that shows them best. What is not known has no tick and no end.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.cleanup.holds import HoldState
from engine.errors import EngineError
from engine.fields import word
from engine.record import record, replace
from kubectl_kpolicy.output.rows import CLUSTER
from kubectl_kpolicy.output.time_format import instant

from . import audit, cleanup, grants
from .beside import each

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kubectl_kpolicy.output.rows import Row

    from .cache import ClusterCache

_AHEAD, _BACK = timedelta(hours=24), timedelta(hours=2)
_SPANS = tuple(timedelta(hours=hours) for hours in (1, 2, 4, 8, 12, 24))
_MOST = 100
_TOLD = ("request", "approve", "deny", "use")
_WAITING = ("draft", "pending", "scheduled")


@record
class Tick:
    """Something that happened, or will: `request`, `approve`, `deny`, `use`, `run` or `end`."""

    at: datetime
    what: str


@record
class Lane:
    """One row as a stretch of time. Until `held` it waits; `goes_on` says that more ticks follow close upon the last one.

    Without `ends` nobody knows an end; `said` stands in the place of a stretch that cannot be drawn.
    """

    label: str
    state: str
    begins: datetime | None = None
    ends: datetime | None = None
    held: datetime | None = None
    ticks: tuple[Tick, ...] = ()
    goes_on: bool = False
    said: str = ""


@record
class Window:
    """The stretch of time that is shown."""

    begins: datetime
    ends: datetime

    def cell(self, at: datetime, width: int) -> int:
        """Return in which of so many cells an instant lies; outside the window a cell that is not there."""
        return int((at - self.begins) // ((self.ends - self.begins) / width))

    def stepped(self, width: int) -> Window:
        """Return the window moved back to whole cells, so that it stands still until a cell has passed."""
        cell = (self.ends - self.begins) / width
        over = timedelta(seconds=self.begins.timestamp() % cell.total_seconds())
        return Window(self.begins - over, self.ends - over)


def has_lanes(noun: str) -> bool:
    """Tell whether the rows of a listing are stretches of time."""
    return noun in _LANES


def lanes(rows: Iterable[Row], noun: str, world: ClusterCache, now: datetime) -> list[Lane]:
    """Return a lane for each row of a listing that has lanes; of several clusters it says which one it is of."""
    make, clusters = _LANES[noun], each(world)
    found = []
    for row in rows:
        name = row.text(CLUSTER.id)
        lane = make(row, clusters.get(name, world), now)
        found.append(replace(lane, label=f"{name} {lane.label}") if name else lane)
    return found


def window(found: Sequence[Lane], noun: str, now: datetime) -> Window:
    """Return what shows lanes best: of clean-ups the next 24 hours, of grants what those that go on have behind and before them."""
    if noun == cleanup.LISTING.noun:
        return Window(now - _BACK, now + _AHEAD)
    going = [lane for lane in found if lane.ends is not None and lane.ends > now]
    behind = [now - lane.begins for lane in going if lane.begins is not None]
    before = [lane.ends - now for lane in going if lane.ends is not None]
    return Window(now - _span(behind), now + _span(before))


def _span(lengths: Sequence[timedelta]) -> timedelta:
    """Return the shortest stretch that holds the longest length, within a day."""
    most = max(lengths, default=_SPANS[0])
    return next((span for span in _SPANS if span >= most), _SPANS[-1])


def _of_grant(row: Row, world: ClusterCache, _now: datetime) -> Lane:
    grant, state = row.object, row.text("state")
    asked, begins = row.moment("age"), grants.begins(grant)
    ended = instant(word(grant, "status", "endedAt"))
    ends = ended or row.moment("ends") or row.moment("timeout")
    label = f"{row.text('requester')} {row.text('target')}".strip()
    waits = row.moment("timeout") if state == "pending" else begins if state in _WAITING else None
    ticks = [Tick(asked, "request")] if asked else []
    ticks += [
        tick
        for tick in _of_trail(world).get(f"Grant/{row.text('namespace')}/{row.text('name')}", ())
        if tick.what != "request"
    ]
    used = instant(word(grant, "status", "lastUsedAt"))
    ticks += [Tick(used, "use")] if used else []
    said = "" if asked and ends else f"{state}, no instants known"
    return Lane(label, state, asked if waits else begins, ends, waits, tuple(ticks), said=said)


def _of_trail(world: ClusterCache) -> Mapping[str, Sequence[Tick]]:
    """Return what the audit trail tells of each object, by its name there."""
    return world.derived("ticks of the trail", ("auditsegments",), lambda: _read_trail(world))


def _read_trail(world: ClusterCache) -> Mapping[str, Sequence[Tick]]:
    found: dict[str, list[Tick]] = {}
    for segment in world.objects("auditsegments"):
        for row in world.cached("auditsegments", segment, audit.rows_of_segment):
            at, what = row.moment("time"), row.text("verb")
            # A vote that was refused decided nothing.
            is_vote = what == "approve" and row.text("result") != "ok"
            if at is not None and what in _TOLD and not is_vote:
                found.setdefault(row.text("object"), []).append(Tick(at, what))
    return found


def _of_cleanup(row: Row, _world: ClusterCache, now: datetime) -> Lane:
    due, state = row.moment("due"), row.text("state")
    name = row.text("name") if cleanup.is_of_label(row) else row.text("by").partition("/")[2]
    label = "/".join(filter(None, (row.text("namespace"), name)))
    if due is None or state == HoldState.PAUSED:
        return Lane(label, state, said=state)
    if cleanup.is_of_label(row):
        return Lane(label, state, row.moment("since"), due, ticks=(Tick(due, "end"),))
    runs = _runs(row, due, now)
    ticks = tuple(Tick(at, "run") for at in runs)
    return Lane(label, state, row.moment("since"), due, ticks=ticks, goes_on=len(runs) >= _MOST)


def _runs(row: Row, due: datetime, now: datetime) -> list[datetime]:
    """Return the next run of a policy and those that follow within a day, at most a hundred."""
    later = _instants(
        word(row.object, "spec", "schedule"), max(due, now.replace(second=0, microsecond=0))
    )
    return [due, *(at for at in later if now < at <= now + _AHEAD)]


@lru_cache(maxsize=256)
def _instants(schedule: str, after: datetime) -> tuple[datetime, ...]:
    from engine.cleanup.schedule import next_after

    try:
        return next_after(schedule, after, _MOST)
    except EngineError:
        return ()


_LANES = {grants.GRANTS.noun: _of_grant, cleanup.LISTING.noun: _of_cleanup}
