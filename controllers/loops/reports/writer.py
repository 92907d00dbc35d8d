"""Writes the report of one resource: new rows in the place of old ones, nothing when nothing changed (row R-01).

For admission and the background scan alike, which may come to the same report at the same time: whoever loses reads again.
A report store takes many reports in one request; what waits while one is under way goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controllers.kube import AlreadyExists, Client, Conflict, Kind, KubeError, NotFound
from controllers.kube.errors import error_of
from controllers.store.reports import Row, is_reported, merged, pair_of, report_of, says_the_same
from engine.model.kinds import NATIVE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from controllers.kube.kinds import ReportKinds
    from controllers.loops.context import LoopContext
    from controllers.runtime.policy_cache import Snapshot
    from engine.evaluate import CompiledPolicy
    from engine.model import Object

_TRIES = 5
ROWS_AT_ONCE: Final = 2_000
"""Results of reports that are written by one request; with them it is below what a report store takes."""
AT_ONCE: Final = 64
"""Reports that are under way to a report store at the same time."""
_ONE_BY_ONE: Final = frozenset({405, 413})
"""How a store answers that takes no lists, or not so large ones."""
_SUCCESS: Final = "Success"
_log = logging.getLogger(__name__)


class ReportWrites:
    """Creates and updates reports of some kinds; `together` where whoever keeps them takes lists."""

    def __init__(self, client: Client, kinds: ReportKinds, *, together: bool = False) -> None:
        self.client, self.kinds = client, kinds
        self._is_together = together
        self._waiting: deque[tuple[Kind, Object, asyncio.Future[None]]] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def write(self, kind: Kind, report: Object) -> None:
        """Update a report that names its version, create any other; raises KubeError."""
        if not self._is_together:
            await self._write_alone(kind, report)
            return
        written = asyncio.get_running_loop().create_future()
        self._waiting.append((kind, report, written))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        await written

    async def _write_alone(self, kind: Kind, report: Object) -> None:
        if report["metadata"].get("resourceVersion"):
            await self.client.update(kind, report)
        else:
            await self.client.create(kind, report)

    async def _send(self) -> None:
        try:
            while self._waiting:
                # all that can run now, and may have something to write, goes first
                await asyncio.sleep(0)
                kind, taken = self._taken()
                try:
                    answers = await self._answers(kind, [report for report, _ in taken])
                except KubeError as error:
                    answers = [error] * len(taken)
                except Exception:
                    # whoever waits must hear of it, and tries again
                    _log.exception("reports could not be written")
                    answers = [KubeError("the report could not be written")] * len(taken)
                for (_, written), answer in zip(taken, answers, strict=True):
                    if not written.done():
                        _settle(written, answer)
        finally:
            self._sending = None
            for _, _, written in self._waiting:
                written.cancel()
            self._waiting.clear()

    def _taken(self) -> tuple[Kind, list[tuple[Object, asyncio.Future[None]]]]:
        """Take the next reports of one kind, as many as go together."""
        kind, rows = self._waiting[0][0], 0
        taken: list[tuple[Object, asyncio.Future[None]]] = []
        while self._waiting and self._waiting[0][0] == kind and len(taken) < AT_ONCE:
            rows += len(self._waiting[0][1]["results"])
            if taken and rows > ROWS_AT_ONCE:
                break
            _, report, written = self._waiting.popleft()
            taken.append((report, written))
        return kind, taken

    async def _answers(self, kind: Kind, reports: list[Object]) -> list[KubeError | None]:
        """Write some reports and return what is wrong with each; raises KubeError where none was written."""
        if len(reports) > 1 and self._is_together:
            head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
            try:
                found = await self.client.create(kind, {**head, "items": reports})
            except KubeError as error:
                if error.status not in _ONE_BY_ONE:
                    raise
                self._is_together = error.status != 405
            else:
                return [_error_in(one) for _, one in zip(reports, found["items"], strict=True)]
        answers: list[KubeError | None] = []
        for report in reports:
            try:
                await self._write_alone(kind, report)
            except KubeError as error:
                answers.append(error)
            else:
                answers.append(None)
        return answers


def reports_of(context: LoopContext) -> ReportWrites:
    """Return what writes the reports of a loop, as whoever keeps them takes them."""
    options = context.options
    return ReportWrites(context.client, options.report_kinds, together=options.chooses_reports)


def _error_in(status: Object) -> KubeError | None:
    return None if status.get("status") == _SUCCESS else error_of(500, status)


def _settle(written: asyncio.Future[None], error: KubeError | None) -> None:
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)


@dataclass(frozen=True, slots=True)
class InForce:
    """The (policy, rule) pairs that reports may speak of; `knows_natives` where those of native policies are among them."""

    pairs: frozenset[tuple[str, str]]
    knows_natives: bool = False

    def __contains__(self, pair: tuple[str, str]) -> bool:
        """Tell whether a row may stay; only who knows the native policies takes out rows of theirs."""
        is_native = pair[0].partition(":")[0] in NATIVE
        return pair in self.pairs or (is_native and not self.knows_natives)


class KnownPairs:
    """The pairs in force, worked out once for each state of the policies: they are asked for with every report."""

    def __init__(self) -> None:
        self._of: tuple[Snapshot | None, Mapping[str, CompiledPolicy] | None] = (None, None)
        self._pairs = InForce(frozenset())

    def of(
        self, snapshot: Snapshot, natives: Mapping[str, CompiledPolicy] | None = None
    ) -> InForce:
        """Return the (policy, rule) pairs that reports may speak of; rows of others are out of date (row R-07)."""
        if self._of[0] is not snapshot or self._of[1] is not natives:
            self._of, self._pairs = (snapshot, natives), _pairs_in_force(snapshot, natives)
        return self._pairs


def _pairs_in_force(snapshot: Snapshot, natives: Mapping[str, CompiledPolicy] | None) -> InForce:
    every = (*snapshot.judged.values(), *(natives or {}).values())
    return InForce(
        frozenset(
            (compiled.policy.identity, rule.rule.name)
            for compiled in every
            if is_reported(compiled.policy)
            for rule in compiled.rules
        ),
        knows_natives=natives is not None,
    )


async def write_rows(
    reports: ReportWrites,
    obj: Object,
    rows: Sequence[Row],
    *,
    judged: Collection[tuple[str, str]] | None = None,
    known: InForce,
    is_new: bool = False,
) -> list[Row]:
    """Put rows into the report of an object and return those that say something new.

    `judged` are pairs whose old rows go (see `merged`), `known` those that exist at all. A report without rows is deleted.
    The report of an object that `is_new` is made without looking for one, unless somebody made it meanwhile. Raises KubeError.
    """
    if is_new:
        with suppress(AlreadyExists):
            return await _first(reports, obj, rows)
    for attempt in range(_TRIES):
        try:
            return await _write(reports, obj, rows, judged, known)
        except (Conflict, AlreadyExists, NotFound):
            if attempt == _TRIES - 1:
                raise
    return []


async def _first(reports: ReportWrites, obj: Object, rows: Sequence[Row]) -> list[Row]:
    found, kinds = merged((), rows), reports.kinds
    if found:
        await reports.write(kinds.of(obj), report_of(obj, found, kinds))
    return found


async def _write(
    reports: ReportWrites,
    obj: Object,
    rows: Sequence[Row],
    judged: Collection[tuple[str, str]] | None,
    known: InForce,
) -> list[Row]:
    client, kind = reports.client, reports.kinds.of(obj)
    before = await _before(client, kind, obj["metadata"])
    old = list((before or {}).get("results") or ())
    kept = [row for row in old if pair_of(row) in known]
    found = merged(kept, rows, judged=judged)
    if not found:
        if before is not None:
            await _remove(client, kind, before)
        return []
    report = report_of(obj, found, reports.kinds, before)
    if before is None or not says_the_same(report, before):
        await reports.write(kind, report)
    return [row for row in found if row not in old]


async def _before(client: Client, kind: Kind, metadata: Object) -> Object | None:
    try:
        return await client.get(kind, metadata["uid"], metadata.get("namespace") or "")
    except NotFound:
        return None


async def _remove(client: Client, kind: Kind, report: Object) -> None:
    metadata = report["metadata"]
    try:
        await client.delete(
            kind, metadata["name"], metadata.get("namespace") or "", uid=metadata["uid"]
        )
    except NotFound:
        return
