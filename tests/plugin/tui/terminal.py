"""A terminal without a window: runs a program on a pseudo-terminal, takes keys, and knows what stands on its screen.

It understands as much of a terminal's language as the console speaks: places, colours (which it drops), clearing, titles.
"""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE = 60.0
KEYS = {
    "enter": "\r", "escape": "\x1b", "tab": "\t", "space": " ", "backspace": "\x7f", "up": "\x1b[A", "down": "\x1b[B",
    **{f"ctrl+{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}  # fmt: skip
_SEQUENCE = re.compile(
    r"\x1b\[(?P<marks>[<=>?]?)(?P<numbers>[\d;:]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b\](?:[^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b[PX^_].*?\x1b\\|\x1b[ -/]*[0-Z\\^-~]",
    re.DOTALL,
)


class Screen:
    """What a terminal shows, as lines of cells."""

    def __init__(self, width: int, height: int) -> None:
        self._width, self._height = width, height
        self._cells = [[" "] * width for _ in range(height)]
        self._x = self._y = 0
        self._rest = ""

    def write(self, text: str) -> None:
        """Take what a program wrote; half a sequence at its end waits for the rest."""
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            found = _SEQUENCE.match(text, at)
            if found is None:
                self._rest = text[at:]
                return
            self._obey(found)
            at = found.end()

    def lines(self) -> list[str]:
        """Return the lines, without the blanks at their ends."""
        return ["".join(line).rstrip() for line in self._cells]

    def _put(self, char: str) -> None:
        if char == "\r":
            self._x = 0
        elif char == "\n":
            self._y = min(self._y + 1, self._height - 1)
        elif char.isprintable() and self._x < self._width:
            width = cell_len(char)
            self._cells[self._y][self._x : self._x + width] = [char, *[""] * (width - 1)]
            self._x += width

    def _obey(self, found: re.Match[str]) -> None:
        numbers = [int(one or 0) for one in (found["numbers"] or "").replace(":", ";").split(";")]
        match found["final"], found["marks"]:
            case "H", "":
                self._y = min(max(numbers[0], 1), self._height) - 1
                self._x = max(numbers[1] if len(numbers) > 1 else 1, 1) - 1
            case "J", "":
                self._cells = [[" "] * self._width for _ in range(self._height)]
            case "K", "":
                self._cells[self._y][self._x :] = [" "] * (self._width - self._x)


class Terminal:
    """A program on a pseudo-terminal; use it as a context manager, which ends the program."""

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], size: tuple[int, int]
    ) -> None:
        self._screen = Screen(*size)
        self._lock = threading.Lock()
        self._process, self._side = pty.fork()
        if self._process == 0:
            # programs believe these before they ask the terminal, and workers of a test run have them
            own = {
                key: value for key, value in environment.items() if key not in ("COLUMNS", "LINES")
            }
            os.execvpe(command[0], command, {**own, "TERM": "xterm-256color"})
        fcntl.ioctl(self._side, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        self._reader.join(PATIENCE)
        os.close(self._side)

    def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                data = os.read(self._side, 65_536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self._screen.write(decoder.decode(data))

    def end(self) -> None:
        """Ask the program to end, as whoever stops a service does."""
        os.kill(self._process, signal.SIGTERM)

    def spent(self) -> float:
        """Return the seconds of a core that the program has taken."""
        fields = Path(f"/proc/{self._process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def children(self) -> list[int]:
        """Return the programs that it has started."""
        listed = Path(f"/proc/{self._process}/task/{self._process}/children")
        return list(map(int, listed.read_text().split()))

    def text(self) -> str:
        """Return what stands on the screen."""
        with self._lock:
            return "\n".join(self._screen.lines())

    def press(self, *keys: str) -> None:
        """Press keys by their names; anything else is typed as it is."""
        for key in keys:
            os.write(self._side, KEYS.get(key, key).encode())
            if key == "escape":
                # A terminal tells the key from the beginning of a sequence by the pause after it.
                time.sleep(0.2)

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until a pattern stands on the screen and return where."""
        end = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.text())):
            assert time.monotonic() < end, f"there is no `{pattern}` on\n{self.text()}"
            time.sleep(0.05)
        return found

    def gone(self, pattern: str) -> None:
        """Wait until a pattern no longer stands on the screen."""
        end = time.monotonic() + PATIENCE
        while re.search(pattern, self.text()):
            assert time.monotonic() < end, f"there still is `{pattern}` on\n{self.text()}"
            time.sleep(0.05)
