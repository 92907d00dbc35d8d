"""What the console and the cluster's commands cost before somebody sees something: frames, rows, keys, the first request.

Everything runs in a terminal of its own (a pty) against answers made beforehand, beside a bare Textual application and a bare
interpreter in the same run. Figures are processor time of the process, which others on the machine disturb least; wall time is
reported beside it.
"""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
ROWS, MANY_ROWS = 50_000, 1_000_000
COLUMNS, LINES, ROUNDS, KEYS = 140, 40, 5, 40
_DEADLINE = 60.0
IDLE, _SETTLED = 60.0, 5.0
"""Seconds that a console is left alone, and before that until it has settled."""

_QUIET = 0.25
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("the bare frame")
Bare().run()
"""
TABLE = """
from textual.app import App
from textual.widgets import DataTable
class Bare(App):
    def compose(self):
        table = DataTable(cursor_type="row")
        table.add_columns(*(f"column {number}" for number in range(8)))
        table.add_rows([[f"cell {row} {number}" for number in range(8)] for row in range(200)])
        yield table
Bare().run()
"""


class Cost(NamedTuple):
    """Milliseconds from the start of a process: of the processor, and on the wall."""

    processor: float
    wall: float


class Terminal:
    """A process in a terminal of its own; `until` reads what it draws."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.began = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True)  # fmt: skip
        os.close(theirs)
        self._screen = ours
        self._drawn = b""

    def cost(self) -> Cost:
        """Return what the process has cost so far."""
        return Cost(spent(self.process.pid), (time.perf_counter() - self.began) * 1e3)

    def until(self, pattern: str) -> Cost:
        """Read until a pattern was drawn, and return the cost by then."""
        wanted = re.compile(pattern.encode())
        while not wanted.search(self._drawn):
            if time.perf_counter() - self.began > _DEADLINE or not self._read(1.0):
                raise RuntimeError(f"`{pattern}` was not drawn: {self._drawn[-400:]!r}")
        return self.cost()

    def press(self, key: str) -> None:
        """Press a key, and read until nothing more is drawn for a moment."""
        os.write(self._screen, key.encode())
        while self._read(_QUIET):
            pass

    def hold(self, key: str, times: int) -> float:
        """Hold a key down: return the processor's milliseconds for each repetition, all of them drawn."""
        before = self.cost().processor
        for _ in range(times):
            os.write(self._screen, key.encode())
            self._read(0.03)
        while self._read(_QUIET):
            pass
        return (self.cost().processor - before) / times

    def rest(self, seconds: float) -> None:
        """Press nothing for so long, and read what is drawn."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self._read(min(left, 0.5))

    def end(self) -> None:
        """Kill the process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._screen)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], seconds)
        if not ready:
            return seconds >= 1.0 and self.process.poll() is None
        try:
            self._drawn += os.read(self._screen, 1 << 16)
        except OSError:
            return False
        return True


def spent(pid: int) -> float:
    """Return the processor's milliseconds of all threads of a process, as Linux counts them."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((one / "schedstat").read_text().split()[0]) for one in threads) / 1e6


@contextmanager
def home(folder: str, server: str) -> Iterator[dict[str, str]]:
    """Yield an environment whose kubeconfig leads to a server, with compiled modules as an installed wheel has them."""
    config = Path(folder, "kubeconfig")
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: bench\n"
        f"clusters: [{{name: bench, cluster: {{server: '{server}'}}}}]\n"
        "contexts: [{name: bench, context: {cluster: bench, user: alice}}]\n"
        "users: [{name: alice, user: {token: none}}]\n"
    )
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "KPOLICY_", "XDG_"))}  # fmt: skip
    yield {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "HOME": folder, "KUBECONFIG": str(config),
           "PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}  # fmt: skip


def to_first_request(environment: dict[str, str], rounds: int) -> Cost:
    """Return what `violations -o json` costs until its first request is on the wire."""
    costs = []
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        tempfile.TemporaryDirectory() as folder,
    ):
        listener.settimeout(_DEADLINE)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with home(folder, address) as own:
            for number in range(rounds + 1):
                words = [sys.executable, "-m", "kubectl_kpolicy", "violations", "-A", "-o", "json"]
                own_kubeconfig = {**environment, "KUBECONFIG": own["KUBECONFIG"]}
                began = time.perf_counter()
                process = subprocess.Popen(words, env=own_kubeconfig, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
                with process, listener.accept()[0] as first:
                    first.recv(1)
                    cost = Cost(spent(process.pid), (time.perf_counter() - began) * 1e3)
                    process.kill()
                _drain(listener)
                costs += [cost] if number else []
    return _median(costs)


def _drain(listener: socket.socket) -> None:
    """Forget connections of a process that was killed."""
    listener.setblocking(False)
    try:
        while True:
            listener.accept()[0].close()
    except BlockingIOError:
        listener.settimeout(_DEADLINE)


def of_command(words: list[str], environment: dict[str, str], rounds: int) -> Cost:
    """Return what a whole command costs."""
    costs = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        cost = Cost((usage.ru_utime + usage.ru_stime) * 1e3, (time.perf_counter() - began) * 1e3)
        costs += [cost] if number else []
    return _median(costs)


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(values) for values in zip(*costs, strict=True)))


@contextmanager
def serving(rows: int) -> Iterator[str]:
    """Yield the address of a server with so many rows."""
    words = [sys.executable, "-m", "tests.bench.console_server", str(rows)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def measure(rounds: int = ROUNDS) -> tuple[dict[str, Cost], dict[str, float]]:
    """Return costs by name, and the processor's milliseconds of a key by name."""
    costs: dict[str, list[Cost]] = {}
    keys: dict[str, list[float]] = {}
    with serving(ROWS) as address, tempfile.TemporaryDirectory() as folder, home(folder, address) as environment:  # fmt: skip
        for number in range(rounds + 1):
            found, key = _bare(environment)
            more, ours = _console(environment)
            if not number:
                continue  # this one compiled the modules
            for name, cost in {**found, **more}.items():
                costs.setdefault(name, []).append(cost)
            for name, value in {
                "a key in a bare Textual table": key,
                "a key on 50,000 rows": ours,
            }.items():
                keys.setdefault(name, []).append(value)
        python = [sys.executable, "-m", "kubectl_kpolicy"]
        complete = [sys.executable, "-m", "kubectl_kpolicy.complete", "violations", "li"]
        small = {
            "python -c pass": of_command([sys.executable, "-c", "pass"], environment, rounds),
            "--help": of_command([*python, "--help"], environment, rounds),
            "completion": of_command(complete, environment, rounds),
            "violations, to the first request": to_first_request(environment, rounds),
        }
    return {**small, **{name: _median(found) for name, found in costs.items()}}, {name: statistics.median(found) for name, found in keys.items()}  # fmt: skip


def idle(seconds: float = IDLE) -> float:
    """Return the share of a core that a console takes while nothing happens, its rows' ages going on."""
    with serving(200) as address, tempfile.TemporaryDirectory() as folder, home(folder, address) as environment:  # fmt: skip

        def look(terminal: Terminal) -> float:
            terminal.until(r"\(200")
            terminal.rest(_SETTLED)
            before = terminal.cost()
            terminal.rest(seconds)
            after = terminal.cost()
            return (after.processor - before.processor) / (after.wall - before.wall)

        return _ended(_opened(environment), look)


def of_many_rows() -> tuple[Cost, float, float, float]:
    """Return of a million rows the cost of the first ones, the most MiB, and the milliseconds of a key there and in a bare table."""
    with (
        serving(MANY_ROWS) as address,
        tempfile.TemporaryDirectory() as folder,
        home(folder, address) as environment,
    ):
        _ended(
            _opened(environment), lambda terminal: terminal.until(r"checkout-\d")
        )  # compiles the modules
        _, bare = _bare(environment)

        def look(terminal: Terminal) -> tuple[Cost, float, float]:
            first = terminal.until(r"checkout-\d")
            terminal.until(r"\(6\d \d\d\d\+")  # all that is read
            key = _scrolled(terminal, "Violations", "j")
            status = Path(f"/proc/{terminal.process.pid}/status").read_text()
            most = int(status.partition("VmHWM:")[2].split()[0]) / 1024
            return first, most, key

        return *_ended(_opened(environment), look), bare


def _opened(environment: dict[str, str]) -> Terminal:
    return Terminal([sys.executable, "-m", "kubectl_kpolicy", "tui"], environment)


def _bare(environment: dict[str, str]) -> tuple[dict[str, Cost], float]:
    terminal = Terminal([sys.executable, "-c", BARE], environment)
    frame = _ended(terminal, lambda one: one.until("the bare frame"))
    table = Terminal([sys.executable, "-c", TABLE], environment)
    return {"a bare Textual application's frame": frame}, _ended(
        table, lambda one: _scrolled(one, "cell 1 1", "\x1b[B")
    )


def _scrolled(terminal: Terminal, first: str, key: str) -> float:
    terminal.until(first)
    terminal.press(key)
    return terminal.hold(key, KEYS)


def _ended(terminal: Terminal, work: Callable[[Terminal], T]) -> T:
    try:
        return work(terminal)
    finally:
        terminal.end()


def _console(environment: dict[str, str]) -> tuple[dict[str, Cost], float]:
    def look(terminal: Terminal) -> tuple[dict[str, Cost], float]:
        found = {
            "the console's first frame": terminal.until("Violations"),
            "first of 50,000 rows": terminal.until(r"checkout-\d"),
            "all of 50,000 rows": terminal.until(r"\(50 000"),
        }
        return found, _scrolled(terminal, "Violations", "j")

    return _ended(_opened(environment), look)
