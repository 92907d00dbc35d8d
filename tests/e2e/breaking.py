"""What faults need beside signals: a disk of their own that can be filled, and the tree of an earlier release."""

from __future__ import annotations

import errno
import os
import subprocess
import tarfile
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING

from .scenario import ScenarioError
from .tiers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = "1g"
_BLOCK = 1 << 20
_FILLER = "filler"


@contextmanager
def disk(folder: Path) -> Iterator[bool]:
    """Make a folder a disk of its own, in memory, until the end of the block; tells whether it is one, which takes root."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "kpolicy-e2e", str(folder)]
    is_mounted = (
        not os.geteuid() and not subprocess.run(words, capture_output=True, check=False).returncode
    )
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> None:
    """Leave no byte free on the disk of a folder."""
    with (folder / _FILLER).open("ab", buffering=0) as filler:
        for size in (_BLOCK, 4096, 1):
            with suppress_full():
                while True:
                    filler.write(b"x" * size)


@contextmanager
def suppress_full() -> Iterator[None]:
    """Pass over the error that says that a disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def empty(folder: Path) -> None:
    """Take away what filled it."""
    with suppress(FileNotFoundError):
        (folder / _FILLER).unlink()


def last_release() -> str:
    """Return the tag of the last release before this commit, empty where there is none."""
    done = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0", "HEAD^"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() if not done.returncode else ""


def tree_of(commit: str, folder: Path) -> Path:
    """Lay out the controllers and the engine of a commit below a folder and return where; raises ScenarioError."""
    done = subprocess.run(
        ["git", "archive", commit, "controllers", "engine"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise ScenarioError(f"there is no tree of `{commit}`: {done.stderr.decode()}")
    place = folder / "release"
    with tarfile.open(fileobj=BytesIO(done.stdout)) as tar:
        tar.extractall(place, filter="data")
    return place
