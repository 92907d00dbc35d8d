"""The command line of `python -m controllers.report_store`, and the address of its database, which is no part of it."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.manifests.deploy.report_store import DATABASE, DSN, PORT
from engine.errors import EngineError, reason_of

from .database import Database, Postgres, Sqlite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one store."""

    database: Database = field(repr=False)
    kubeconfig: Path | None = None
    context: str = ""
    namespace: str = "kyverno"
    host: str = ""
    port: int = PORT
    writers: frozenset[str] = frozenset()
    log_level: str = "info"


def read_settings(
    arguments: Sequence[str], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Return the settings of a command line; ends the process with a message for one that cannot be read."""
    given = _parser(environment).parse_args(arguments)
    return Settings(
        _database(given.database, given.dsn_file, environment.get(DSN, "")),
        given.kubeconfig,
        given.context,
        given.namespace,
        given.host,
        given.port,
        frozenset(given.writers),
        given.log_level,
    )


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m controllers.report_store",
        description="Serve reports of wgpolicyk8s.io and openreports.io to the API server from a database of their own.",
    )
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="how to reach the API server; without it, as a Pod does")
    add("--context", default="", help="context of the kubeconfig")
    add(
        "--namespace",
        default=environment.get("KYVERNO_NAMESPACE") or "kyverno",
        help="where the controllers live (%(default)s)",
    )
    add(
        "--database",
        type=Path,
        default=Path(DATABASE),
        metavar="FILE",
        help=f"SQLite file of the reports (%(default)s); not used where {DSN} or --dsn-file names a PostgreSQL database",
    )
    add(
        "--dsn-file",
        type=Path,
        metavar="FILE",
        help=f"file that holds the address of a PostgreSQL database; the environment's {DSN} does as well",
    )
    add("--host", default="", help="address to listen on; all of them by default")
    add("--port", type=int, default=PORT, help="port; 0 takes a free one (%(default)s)")
    add(
        "--writer",
        dest="writers",
        action="append",
        default=[],
        metavar="USER",
        help="who writes reports (repeatable); the account of the reports controller by default",
    )
    add(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="how much is logged",
    )
    return parser


def _database(path: Path, dsn_file: Path | None, dsn: str) -> Database:
    """Return the database that is meant; raises EngineError for a file that cannot be read."""
    if dsn_file is not None:
        try:
            dsn = dsn_file.read_text().strip()
        except OSError as error:
            raise EngineError(f"cannot read `{dsn_file}`: {reason_of(error)}") from error
    return Postgres(dsn) if dsn else Sqlite(path)
