"""Hands reports to whoever keeps them.

A report store takes many reports in one request; what waits while one is under way goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Kind, KubeError
from controllers.kube.errors import error_of

if TYPE_CHECKING:
    from controllers.kube.kinds import ReportKinds
    from controllers.loops.context import LoopContext
    from engine.model import Object

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
