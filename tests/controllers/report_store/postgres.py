"""A PostgreSQL server for tests: real, on a socket, and killed at the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER = "postgres"
PROGRAMS = [shutil.which(name) for name in ("initdb", "postgres", "psql")]


class Server:
    """A PostgreSQL server on a socket in a folder of its own, run by a user who is not root."""

    def __init__(self, folder: Path) -> None:
        self.data, self.socket = folder / "data", folder / "socket"
        self.socket.mkdir()
        self._as = {"user": USER} if os.geteuid() == 0 else {}
        if self._as:
            shutil.chown(folder, USER)
            shutil.chown(self.socket, USER)
        self._call("initdb", "-D", self.data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"host={self.socket} user={USER} dbname=postgres"

    def _call(self, *words: object) -> None:
        subprocess.run(
            [str(word) for word in words], check=True, capture_output=True, cwd="/", **self._as
        )

    def start(self) -> None:
        words = [
            "postgres",
            "-D",
            str(self.data),
            "-k",
            str(self.socket),
            "-c",
            "listen_addresses=",
        ]
        self.process = subprocess.Popen(
            words, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True, **self._as
        )
        import psycopg

        for _ in range(300):
            try:
                psycopg.connect(self.dsn).close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """End every process of the server at once, as a machine that loses its power."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    server.start()
    try:
        yield server
    finally:
        server.kill()
