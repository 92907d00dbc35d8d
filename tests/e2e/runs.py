"""How a program of this tier runs: in a folder of its own, with one message where it cannot go on, and nothing left unless asked."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .scenario import ScenarioError
from .server.binaries import ToolMissingError
from .server.processes import StartError

if TYPE_CHECKING:
    from collections.abc import Callable

CANNOT_GO_ON = (ToolMissingError, StartError, ScenarioError, RuntimeError, TimeoutError)
"""What ends a program with a message, and not with a stack."""


def parser_of(name: str, words: str | None) -> argparse.ArgumentParser:
    """Return the parser of a program's command line, which may keep its logs."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.e2e.{name}", description=words)
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    return parser


def played(name: str, play: Callable[[Path], int], *, keep: bool) -> int:
    """Play something in a new folder and return how many failed; 1 where it cannot go on."""
    folder = Path(tempfile.mkdtemp(prefix=f"kpolicy-{name}-"))
    # told to end, it ends as by Ctrl-C: with the servers that it started
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        failed = play(folder)
    except CANNOT_GO_ON as error:
        print(f"FAILED (logs in {folder} with --keep):\n{error}", file=sys.stderr)
        failed = 1
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return failed
