"""`--watch` of commands on files: a command run again whenever a file that it names has changed.

Files are looked at by size and time of change, a few times a second: that works on every system and in every shared folder, and a
run costs more than many looks.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from engine.errors import EngineError
from kubectl_kpolicy.output.diagnostics import ExitCode, report

from .sources import ADDRESSES, STDIN, SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    State = dict[Path, tuple[int, int]]

EVERY = 0.5
"""Seconds between two looks."""


def rerun(
    run: Callable[[], int],
    paths: Iterable[str],
    err: TextIO,
    *,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Run a command, and again after each change below `paths`, until somebody interrupts; return 2 where nothing can be watched.

    What a run cannot read is reported and does not end the watch: the file may be half written. KeyboardInterrupt leaves by the
    caller, which knows its exit code. What a run changes itself starts no other one.
    """
    watched = [Path(path) for path in paths if path != STDIN and not path.startswith(ADDRESSES)]
    if not watched:
        print("error: --watch needs files or folders", file=err)
        print("help: standard input and addresses are read once", file=err)
        return ExitCode.USAGE
    while True:
        _tried(run, err)
        before = state_of(watched)
        print("waiting for a change; Ctrl-C ends", file=err, flush=True)
        while (now := state_of(watched)) == before:
            pause(EVERY)
        for path in sorted(path for path in {*before, *now} if before.get(path) != now.get(path)):
            print(f"changed: {path}", file=err, flush=True)


def _tried(run: Callable[[], int], err: TextIO) -> None:
    try:
        run()
    except EngineError as error:
        report(error, err=err)


def state_of(paths: Iterable[Path]) -> State:
    """Return size and time of change of every file below paths that can be an input; what is not there is left out."""
    found: State = {}
    for path in paths:
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file == path or file.suffix in SUFFIXES:
                with suppress(OSError):
                    told = file.stat()
                    found[file] = (told.st_mtime_ns, told.st_size)
    return found
