"""Programs that run while a test does: started with their output in a file, waited for, and ended."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


class StartError(Exception):
    """A program ended or did not get ready; the text holds the end of its output."""


class Process:
    """One program."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                cwd=cwd,
            )

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float = 120) -> None:
        """Wait until `ready` says so; raises StartError when the program ends or the time is over."""
        end = time.monotonic() + seconds
        while not _holds(ready):
            if not self.is_running or time.monotonic() > end:
                reason = (
                    "is not ready" if self.is_running else f"ended with {self._process.returncode}"
                )
                raise StartError(f"{self.name} {reason}:\n{self.tail()}")
            time.sleep(0.1)

    def tail(self, lines: int = 30) -> str:
        """Return the end of the output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def stop(self, seconds: float = 15) -> None:
        """Ask it to end, and make it after a while."""
        if not self.is_running:
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
            return
        self.kill()


def _holds(ready: Callable[[], bool]) -> bool:
    try:
        return ready()
    except OSError:
        return False


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
