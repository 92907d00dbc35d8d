"""SQLite and PostgreSQL as the one small interface that the store needs: statements with `?`, transactions, one error.

A session belongs to one thread at a time. Where the database is away or breaks, every method raises `StorageError`; the session is
then of no use any more.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from controllers.kube import KubeError
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import psycopg

_BUSY_SECONDS: Final = 10.0
_CONNECT_SECONDS: Final = 5
_LOCK: Final = 0x6B706F6C


class StorageError(KubeError):
    """The database does not answer, so nobody knows; whoever asked asks again."""

    def __init__(self, said: BaseException) -> None:
        # What a driver says may name hosts and users; the kind of error is enough for whoever asks, the log has the rest.
        super().__init__(
            f"the report store's database is away ({type(said).__name__})",
            status=503,
            reason="ServiceUnavailable",
            retry_after=1.0,
        )


class Session(Protocol):
    """A connection."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        """Return what a statement finds."""

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of some values."""

    def writing(self) -> Any:
        """Return a block that is one transaction that writes; it counts for good once the block has ended."""

    def reading(self) -> Any:
        """Return a block in which everything is seen as of one instant."""

    def close(self) -> None:
        """End the connection."""


class Database(Protocol):
    """Where sessions come from."""

    def connect(self) -> Session:
        """Return a connection; raises StorageError."""

    def prepare(self) -> None:
        """Make what is missing of the tables; raises StorageError, and EngineError for a database that cannot be used."""


class Sqlite:
    """A file of this machine. What was committed outlives the process and the machine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self) -> None:
        """See `Database.prepare`."""
        try:
            session = self.connect()
        except StorageError as error:
            raise EngineError(
                f"cannot open the database `{self._path}`",
                help="name a file in a folder that this user may write to",
            ) from error
        with closing(session), session.writing():
            for one in statements("TEXT", "BLOB"):
                if not one.startswith("ALTER"):
                    session.rows(one)
                elif not session.rows(_HAS_NEWEST):
                    session.rows(one.replace("IF NOT EXISTS ", ""))

    def connect(self) -> Session:
        """See `Database.connect`."""
        with _translated(sqlite3.Error):
            made = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            made.execute("PRAGMA journal_mode = WAL")
            made.execute("PRAGMA synchronous = FULL")
            return _SqliteSession(made)


class _SqliteSession:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with _translated(sqlite3.Error):
            return self._connection.execute(sql, values).fetchall()

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        with _translated(sqlite3.Error):
            self._connection.executemany(sql, values)

    def writing(self) -> Any:
        return self._transaction("BEGIN IMMEDIATE")

    def reading(self) -> Any:
        return self._transaction("BEGIN")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        self.rows(begin)
        try:
            yield
        except BaseException:
            with suppress(StorageError):
                self.rows("ROLLBACK")
            raise
        self.rows("COMMIT")

    def close(self) -> None:
        self._connection.close()


class Postgres:
    """A PostgreSQL server, which several stores may share. `dsn` holds a password and is shown to nobody."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def __repr__(self) -> str:
        return "<Postgres>"

    def prepare(self) -> None:
        """See `Database.prepare`."""
        with closing(self.connect()) as session, session.writing():
            # two stores that start at once would both find the tables missing
            session.rows("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
            for one in statements('TEXT COLLATE "C"', "BYTEA"):
                session.rows(one)

    def connect(self) -> Session:
        """See `Database.connect`."""
        try:
            import psycopg
        except ImportError as error:
            raise EngineError(
                "PostgreSQL needs the package `psycopg`", help="install `kubectl-kpolicy[postgres]`"
            ) from error
        with _translated(psycopg.Error):
            made = psycopg.connect(self._dsn, autocommit=True, connect_timeout=_CONNECT_SECONDS)
            return _PostgresSession(made, psycopg.Error)


class _PostgresSession:
    def __init__(self, connection: psycopg.Connection[Any], error: type[Exception]) -> None:
        self._connection, self._error = connection, error

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
        with _translated(self._error):
            cursor = self._connection.execute(_marked(sql), values or None)
            return cursor.fetchall() if cursor.description else []

    def run_many(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        with _translated(self._error), self._connection.cursor() as cursor:
            cursor.executemany(_marked(sql), values)

    @contextmanager
    def writing(self) -> Iterator[None]:
        with _translated(self._error), self._connection.transaction():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        with _translated(self._error), self._connection.transaction():
            self.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def close(self) -> None:
        self._connection.close()


def _marked(sql: str) -> Any:
    """Return a statement with psycopg's placeholders; ours hold neither `?` nor `%` in any other meaning."""
    return sql.replace("?", "%s")


@contextmanager
def _translated(error: type[Exception]) -> Iterator[None]:
    try:
        yield
    except error as said:
        raise StorageError(said) from said


# The tables of the store, the same in SQLite and PostgreSQL.
#
# `reports` has one row for each report, `results` and `labels` what reports are chosen by, `changes` what happened lately, `history`
# by how much each day changed the number of results, `counters` the version that was given last and the last that is forgotten,
# `identity` the certificate that all stores of the database show.
# Namespaces are empty for reports of the cluster. Keys are compared byte by byte. Indexes of results go on with the key of
# the report, so that a page of reports that hold a value is read in order and no further than its end. `newest` is the second of a
# result below zero, so that the newest of a severity comes first; results of a release that did not keep it come last, at 0.


_HAS_NEWEST: Final = "SELECT 1 FROM pragma_table_info('results') WHERE name = 'newest'"
"""SQLite adds no column on condition that it is missing."""

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS counters (name {text} PRIMARY KEY, value BIGINT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS reports (
        namespace {text} NOT NULL, name {text} NOT NULL, version BIGINT NOT NULL,
        scope_kind {text} NOT NULL, scope_name {text} NOT NULL, scope_namespace {text} NOT NULL,
        scope_uid {text} NOT NULL, body {bytes} NOT NULL, PRIMARY KEY (namespace, name))""",
    """CREATE TABLE IF NOT EXISTS results (
        namespace {text} NOT NULL, name {text} NOT NULL, place BIGINT NOT NULL, policy {text} NOT NULL,
        rule {text} NOT NULL, result {text} NOT NULL, severity {text} NOT NULL, category {text} NOT NULL,
        source {text} NOT NULL, newest BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (namespace, name, place))""",
    "ALTER TABLE results ADD COLUMN IF NOT EXISTS newest BIGINT NOT NULL DEFAULT 0",
    """CREATE TABLE IF NOT EXISTS labels (
        namespace {text} NOT NULL, name {text} NOT NULL, label {text} NOT NULL, value {text} NOT NULL,
        PRIMARY KEY (namespace, name, label))""",
    """CREATE TABLE IF NOT EXISTS changes (
        version BIGINT PRIMARY KEY, at BIGINT NOT NULL, namespace {text} NOT NULL, name {text} NOT NULL,
        before {bytes}, body {bytes})""",
    """CREATE TABLE IF NOT EXISTS history (
        day {text} NOT NULL, namespace {text} NOT NULL, policy {text} NOT NULL, severity {text} NOT NULL,
        result {text} NOT NULL, delta BIGINT NOT NULL,
        PRIMARY KEY (namespace, day, policy, severity, result))""",
    "CREATE INDEX IF NOT EXISTS reports_by_scope ON reports (scope_kind, scope_name)",
    "CREATE INDEX IF NOT EXISTS results_by_policy ON results (policy, namespace, name, result, severity)",
    "CREATE INDEX IF NOT EXISTS results_by_result ON results (result, namespace, name, severity)",
    "CREATE INDEX IF NOT EXISTS results_by_severity ON results (severity, namespace, name, result)",
    "CREATE INDEX IF NOT EXISTS results_worst ON results (severity, newest, namespace, name, result, policy)",
    "CREATE INDEX IF NOT EXISTS results_worst_of_policy ON results (policy, severity, newest, namespace, name, result)",
    "CREATE INDEX IF NOT EXISTS labels_by_value ON labels (label, value, namespace, name)",
    "CREATE INDEX IF NOT EXISTS changes_by_place ON changes (namespace, name, version)",
    "CREATE INDEX IF NOT EXISTS changes_by_time ON changes (at)",
    "CREATE TABLE IF NOT EXISTS identity (name {text} PRIMARY KEY, value {bytes} NOT NULL)",
    "INSERT INTO counters VALUES ('version', 1), ('forgotten', 1) ON CONFLICT (name) DO NOTHING",
)


def statements(text: str, binary: str) -> Iterator[str]:
    """Yield what makes the tables, with the database's names for texts and bytes."""
    for one in _TABLES:
        yield one.format(text=text, bytes=binary)
