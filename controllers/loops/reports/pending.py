"""Report rows from admission, which wait until the object they are about is stored.

A report is owned by its object and named by its UID, and while a request is being answered there is no object yet; another
webhook may still refuse it. So rows wait a moment, and go when their object never comes, or may not be read.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from controllers.kube import Forbidden, NotFound
from controllers.kube.workqueue import WorkQueue
from controllers.store.reports import Row, pair_of
from engine.lang import rfc3339

from .pace import Pace
from .sending import reports_of
from .writer import KnownPairs, write_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.loops.context import LoopContext
    from engine.model import Object

Place = tuple[str, str, str, str]
MOST_PENDING = 10_000
_TRIES = 4
_SKEW = timedelta(seconds=2)
_Waiting = dict[tuple[str, str, str], tuple["Row", str, "datetime"]]


class PendingReports:
    """Rows by object. `run` it as a task; what comes beyond MOST_PENDING objects is dropped and counted."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self._waiting: dict[Place, _Waiting] = {}
        self._pace = Pace(context.clock)
        self._known = KnownPairs()
        self._reports = reports_of(context)
        self.queue: WorkQueue[Place] = WorkQueue(clock=context.clock, least=0.5, most=60.0)

    def add(self, about: Mapping[str, str], rows: Sequence[Row], at: datetime) -> None:
        """Take rows about an object, judged at an instant; later rows of a rule replace earlier ones."""
        if not rows:
            return
        place = (
            about.get("apiVersion", ""), about.get("kind", ""), about.get("namespace", ""), about.get("name", ""),
        )  # fmt: skip
        if place not in self._waiting and len(self._waiting) >= MOST_PENDING:
            self._context.metrics.count("kyverno_breaker_drops", ("admission reports",))
            return
        if place not in self._waiting:
            self._pace.rush.count()
        waiting = self._waiting.setdefault(place, {})
        for row in rows:
            target = str((row.get("properties") or {}).get("patched-target", ""))
            place_of_row = *pair_of(row), target
            waiting[place_of_row] = (row, about.get("uid", ""), at)
        self.queue.add_after(place, self._context.options.report_delay)

    async def run(self) -> None:
        """Write rows until cancelled."""
        await self.queue.run(self._in_turn, workers=2)

    async def _in_turn(self, place: Place) -> None:
        """Stand back in a rush, unless so much waits that some of it would be dropped."""
        if len(self._waiting) > MOST_PENDING // 2:
            await self._write(place)
            return
        async with self._pace.turn():
            await self._write(place)

    async def _write(self, place: Place) -> None:
        """Write what waits for one object; raises KubeError, then it is tried again."""
        api_version, kind_name, namespace, name = place
        waiting = self._waiting.get(place)
        if not waiting:
            return
        context = self._context
        taken = dict(waiting)
        try:
            kind = await context.kind_of(api_version, kind_name)
            obj = await context.client.get(kind, name, namespace)
        except (Forbidden, NotFound):
            if self.queue.failures(place) < _TRIES:
                raise
            self._forget(place, taken)
            return
        rows = [row for row, uid, at in taken.values() if _is_about(obj, uid, at)]
        if rows:
            known = self._known.of(context.snapshot)
            await write_rows(self._reports, obj, rows, known=known)
        self._forget(place, taken)

    def _forget(self, place: Place, written: _Waiting) -> None:
        """Drop what was written; rows that came meanwhile stay for the next time."""
        waiting = self._waiting.get(place, {})
        for key, row in written.items():
            if waiting.get(key) is row:
                del waiting[key]
        if waiting:
            self.queue.add(place)
        else:
            self._waiting.pop(place, None)


def _is_about(obj: Object, uid: str, at: datetime) -> bool:
    """Tell whether rows are about this very object; before it is stored it may have no UID, but not be older."""
    metadata = obj.get("metadata") or {}
    if uid:
        return bool(metadata.get("uid") == uid)
    created = rfc3339.read(metadata.get("creationTimestamp"))
    return created is not None and created >= at.replace(microsecond=0) - _SKEW
