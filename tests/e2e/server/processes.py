"""Programs that run while a test does: started with their output in a file, waited for, and ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


SLOWNESS = float(os.environ.get("KPOLICY_TEST_SLOWNESS") or 1)
"""How many times as long a program may take to get ready as on a machine of its own."""


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
        self._command = [str(word) for word in command]
        self._environment, self._cwd = {**os.environ, **(environment or {})}, cwd
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                self._command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self._environment,
                cwd=self._cwd,
            )

    def start_again(self) -> None:
        """Start it as it was started; it must have ended."""
        self._process = self._started()

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
        end = time.monotonic() + seconds * SLOWNESS
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

    def family(self) -> set[int]:
        """Return the numbers of the process and of all its children."""
        return family({self.pid})

    def suspend(self) -> None:
        """Have the process and its children do nothing until `resume`, as on a machine that hangs."""
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Have them go on."""
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

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


def family(pids: set[int]) -> set[int]:
    """Return processes and all their children: Pods are in namespaces of their own, below containerd's shims."""
    children: dict[int, set[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after[1]), set()).add(int(path.parent.name))
    found, ahead = set(pids), list(pids)
    while ahead:
        for child in children.get(ahead.pop(), set()) - found:
            found.add(child)
            ahead.append(child)
    return found
