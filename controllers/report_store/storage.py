"""Where reports are kept: reads as of one version, writes that are on disk when they are answered, and what changed since.

The database is asked in threads. Writes that come while others are being written go together (`batch`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from controllers.kube import Clock, KubeError, NotFound

from .batch import Change, Outcome, Place, Write, carry_out
from .database import Database, Session, StorageError
from .reading import Asked, Page, bounds, changes_after, page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .database import Session


READERS: Final = 4
MOST_AT_ONCE: Final = 256
KEPT_SECONDS: Final = 600
"""How long changes are known, and with them the versions that watches and later pages may begin at."""

MOST_CHANGES: Final = 200_000
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    """A write and who waits for it."""

    write: Write
    outcome: asyncio.Future[Outcome]


class Storage:
    """See the module. `start` it, `close` it; `on_commit` is called when something was written."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._own = threading.local()
        self._sessions: set[Session] = set()
        self._readers = ThreadPoolExecutor(READERS, "reports-read")
        self._writer = ThreadPoolExecutor(1, "reports-write")
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._writing: asyncio.Task[None] | None = None
        self.on_commit: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Make the tables and begin to write; raises StorageError."""
        await self._in(self._writer, self._database.prepare)
        self._writing = asyncio.create_task(self._write_on())

    async def close(self) -> None:
        """Finish what is being written; whatever still waits is refused."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        for pool in (self._writer, self._readers):
            await asyncio.to_thread(pool.shutdown)
        for session in self._sessions:
            session.close()

    # Reads.

    async def get(self, place: Place) -> bytes:
        """Return a report as it is kept; raises NotFound, StorageError."""
        sql = "SELECT body FROM reports WHERE namespace = ? AND name = ?"
        found = await self._read(lambda session: session.rows(sql, place))
        if not found:
            raise NotFound("there is no such report")
        return bytes(found[0][0])

    async def page(self, asked: Asked) -> Page:
        """Return reports by namespace and name; raises Gone for a version that is forgotten, StorageError."""
        return await self._read(lambda session: page_of(session, asked))

    async def bounds(self) -> tuple[int, int]:
        """Return the last version that is forgotten and the last one that was given; raises StorageError."""
        return await self._read(bounds)

    async def changes(self, after: int, most: int) -> list[Change]:
        """Return the changes after a version, in order; raises Gone where some of them are forgotten, StorageError."""
        return await self._read(lambda session: changes_after(session, after, most))

    # Writes.

    async def write(self, one: Write) -> bytes:
        """Do a write and return the report as it is kept, or was; raises what refused it, or StorageError."""
        waiting = _Waiting(one, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        outcome = await waiting.outcome
        if isinstance(outcome, KubeError):
            raise outcome
        return outcome

    async def within(self, work: Callable[[Session], T]) -> T:
        """Do something to the database in a transaction of its own; raises StorageError."""

        def alone(session: Session) -> T:
            with session.writing():
                return work(session)

        return await self._in(self._writer, lambda: self._with_session(alone))

    async def forget(self) -> None:
        """Forget changes that are old, or too many; raises StorageError."""
        now = self._clock.now()
        oldest = int(now.timestamp()) - KEPT_SECONDS

        def work(session: Session) -> None:
            _forget(session, oldest)
            fold(session, now)

        await self.within(work)

    async def _write_on(self) -> None:
        """Write what comes, until cancelled."""
        while True:
            taken = [await self._queue.get()]
            while len(taken) < MOST_AT_ONCE and not self._queue.empty():
                taken.append(self._queue.get_nowait())
            try:
                await self._write_together(taken)
            except asyncio.CancelledError:
                left = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
                self._refuse([*taken, *left])
                raise

    async def _write_together(self, taken: list[_Waiting]) -> None:
        at = self._clock.now()
        writes = [one.write for one in taken]

        def work(session: Session) -> list[Outcome]:
            return carry_out(session, writes, at)

        outcomes: list[Outcome]
        try:
            # A commit that has begun is waited for, so that its writers hear of it.
            outcomes = await asyncio.shield(
                self._in(self._writer, lambda: self._with_session(work))
            )
        except KubeError as error:
            outcomes = [error] * len(taken)
        except Exception:
            # One write that breaks must not keep all later ones waiting for ever.
            _log.exception("reports could not be written")
            outcomes = [KubeError("the report store broke", status=500)] * len(taken)
        for one, outcome in zip(taken, outcomes, strict=True):
            if not one.outcome.done():
                one.outcome.set_result(outcome)
        for told in self.on_commit:
            told()

    @staticmethod
    def _refuse(waiting: list[_Waiting]) -> None:
        for one in waiting:
            if not one.outcome.done():
                one.outcome.set_result(StorageError(ConnectionError()))

    # Threads and their sessions.

    async def _read(self, work: Callable[[Session], T]) -> T:
        def seen_at_once(session: Session) -> T:
            with session.reading():
                return work(session)

        def read() -> T:
            is_kept = getattr(self._own, "session", None) is not None
            try:
                return self._with_session(seen_at_once)
            except StorageError:
                if not is_kept:
                    raise
            # The database may be back although this connection to it is not.
            return self._with_session(seen_at_once)

        return await self._in(self._readers, read)

    @staticmethod
    async def _in(pool: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, work)

    def _with_session(self, work: Callable[[Session], T]) -> T:
        """Do something with the session of this thread; one that fails is not used again."""
        session: Session | None = getattr(self._own, "session", None)
        if session is None:
            session = self._own.session = self._database.connect()
            self._sessions.add(session)
        try:
            return work(session)
        except StorageError:
            self._own.session = None
            self._sessions.discard(session)
            session.close()
            raise


def _forget(session: Session, oldest: int) -> None:
    [(last,)] = session.rows(
        "SELECT COALESCE(MAX(version), 0) FROM changes WHERE at < ?", (oldest,)
    )
    [(newest,)] = session.rows("SELECT value FROM counters WHERE name = 'version'")
    last = max(last, newest - MOST_CHANGES)
    sql = "UPDATE counters SET value = ? WHERE name = 'forgotten' AND value < ?"
    session.run_many(sql, [(last, last)])
    session.run_many("DELETE FROM changes WHERE version <= ?", [(last,)])


# How many results of each kind there were at the end of each day.
#
# Each write adds by how much it changed a day's numbers, in the same transaction; what there was at the end of a day is the sum of
# all days up to it. So a day on which nothing changed costs nothing, and no day is missed by who was away.


KEPT_DAYS: Final = 400


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
