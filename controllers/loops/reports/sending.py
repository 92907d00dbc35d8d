"""Reports of a cluster, for whoever writes them: read and written one by one, or together where a report store keeps them.

A report store takes and gives many reports in one request; what waits while one is under way goes with the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from controllers.kube import Client, Kind, KubeError, NotFound
from controllers.kube.errors import error_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from controllers.kube.kinds import ReportKinds
    from controllers.loops.context import LoopContext
    from engine.model import Object

ROWS_AT_ONCE: Final = 2_000
"""Results of reports that are written by one request; with them it is below what a report store takes."""
AT_ONCE: Final = 64
"""Reports that are read or written by one request."""
REQUESTS: Final = 2
"""Requests of a kind that are under way at once: a store decodes one while its disk writes the one before."""
WORKERS: Final = (REQUESTS + 1) * AT_ONCE
"""Reports that are worked on where they go together: as many as go at once are judged while others are written."""
_ONE_BY_ONE: Final = frozenset({405, 413})
"""How a store answers that takes no lists, or not so large ones."""
_SUCCESS: Final = "Success"
_log = logging.getLogger(__name__)

Q = TypeVar("Q")
A = TypeVar("A")
_Place = tuple[Kind, str, str]
_Write = tuple[Kind, "Object"]


class _Together(Generic[Q, A]):
    """Asks several questions by one request. `fits` tells whether one goes with others, which may be none, `ask` returns an answer for each."""

    def __init__(
        self,
        fits: Callable[[Sequence[Q], Q], bool],
        ask: Callable[[list[Q]], Awaitable[Sequence[A | KubeError]]],
    ) -> None:
        self._fits, self._ask = fits, ask
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._asking: set[asyncio.Task[None]] = set()

    async def answer(self, question: Q) -> A:
        """Return the answer to a question; raises KubeError."""
        answered: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answered))
        # a second request comes to nobody's use before it is full
        if not self._asking or (len(self._asking) < REQUESTS and len(self._waiting) >= AT_ONCE):
            self._asking.add(asyncio.create_task(self._ask_on()))
        return await answered

    async def _ask_on(self) -> None:
        this = asyncio.current_task()
        assert this is not None
        try:
            while self._waiting:
                # all that can run now, and may have something to ask, goes first
                await asyncio.sleep(0)
                if not (taken := self._taken()):
                    return
                answers: Sequence[A | KubeError]
                try:
                    answers = await self._ask([question for question, _ in taken])
                except KubeError as error:
                    answers = [error] * len(taken)
                except Exception:
                    # whoever waits must hear of it, and tries again
                    _log.exception("reports could not be read or written")
                    answers = [KubeError("the report could not be read or written")] * len(taken)
                for (_, answered), answer in zip(taken, answers, strict=True):
                    if answered.done():
                        continue
                    if isinstance(answer, KubeError):
                        answered.set_exception(answer)
                    else:
                        answered.set_result(answer)
        finally:
            self._asking.discard(this)
            while self._waiting and not self._asking:
                self._waiting.popleft()[1].cancel()

    def _taken(self) -> list[tuple[Q, asyncio.Future[A]]]:
        taken: list[tuple[Q, asyncio.Future[A]]] = []
        while self._waiting and self._fits([one for one, _ in taken], self._waiting[0][0]):
            taken.append(self._waiting.popleft())
        return taken


class Reports:
    """Reads, creates and updates reports of some kinds; `together` where whoever keeps them takes and gives lists."""

    def __init__(self, client: Client, kinds: ReportKinds, *, together: bool = False) -> None:
        self.client, self.kinds = client, kinds
        self._is_read_together = self._is_written_together = together
        self._reads: _Together[_Place, Object | None] = _Together(_are_read_at_once, self._read)
        self._writes: _Together[_Write, None] = _Together(_are_written_at_once, self._write)

    async def read(self, kind: Kind, name: str, namespace: str) -> Object | None:
        """Return a report, None where there is none; raises KubeError."""
        place = (kind, name, namespace)
        return await (
            self._reads.answer(place) if self._is_read_together else self._read_alone(place)
        )

    async def write(self, kind: Kind, report: Object) -> None:
        """Update a report that names its version, create any other; raises KubeError."""
        if self._is_written_together:
            await self._writes.answer((kind, report))
        else:
            await self._write_alone(kind, report)

    async def _read_alone(self, place: _Place) -> Object | None:
        try:
            return await self.client.get(*place)
        except NotFound:
            return None

    async def _read(self, places: Sequence[_Place]) -> Sequence[Object | None]:
        """Return the reports at some places, None where there is none; raises KubeError."""
        if len(places) > 1 and self._is_read_together:
            only = {(namespace, name): None for _, name, namespace in places}
            page = await self.client.list(places[0][0], limit=len(only), only=list(only))
            found = {_place(one): one for one in page.items}
            if found.keys() <= only.keys():
                return [found.get((namespace, name)) for _, name, namespace in places]
            # a store of a release before has listed whatever comes first
            self._is_read_together = False
        return await asyncio.gather(*map(self._read_alone, places))

    async def _write_alone(self, kind: Kind, report: Object) -> None:
        if report["metadata"].get("resourceVersion"):
            await self.client.update(kind, report)
        else:
            await self.client.create(kind, report)

    async def _write(self, writes: Sequence[_Write]) -> list[KubeError | None]:
        """Write some reports and return what is wrong with each; raises KubeError where none was written."""
        kind, reports = writes[0][0], [report for _, report in writes]
        if len(reports) > 1 and self._is_written_together:
            head = {"apiVersion": kind.api_version, "kind": f"{kind.kind}List"}
            try:
                found = await self.client.create(kind, {**head, "items": reports})
            except KubeError as error:
                if error.status not in _ONE_BY_ONE:
                    raise
                self._is_written_together = error.status != 405
            else:
                return [
                    None if one.get("status") == _SUCCESS else error_of(500, one)
                    for _, one in zip(reports, found["items"], strict=True)
                ]
        answers: list[KubeError | None] = []
        for report in reports:
            try:
                await self._write_alone(kind, report)
            except KubeError as error:
                answers.append(error)
            else:
                answers.append(None)
        return answers


def reports_of(context: LoopContext) -> Reports:
    """Return the reports of a loop's cluster, as whoever keeps them takes and gives them."""
    options = context.options
    return Reports(context.client, options.report_kinds, together=options.chooses_reports)


def _are_read_at_once(places: Sequence[_Place], one: _Place) -> bool:
    return not places or (places[0][0] == one[0] and len(places) < AT_ONCE)


def _are_written_at_once(writes: Sequence[_Write], one: _Write) -> bool:
    if not writes:
        return True
    rows = sum(len(report["results"]) for _, report in (*writes, one))
    return writes[0][0] == one[0] and len(writes) < AT_ONCE and rows <= ROWS_AT_ONCE


def _place(report: Object) -> tuple[str, str]:
    metadata = report["metadata"]
    return str(metadata.get("namespace") or ""), str(metadata["name"])
