"""Processes of our own that outlive a command: how they find our packages, and whether one still runs."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def holder_of(path: Path) -> int | None:
    """Return the number of the process that holds the lock at `path`, as the file says it; None when nobody does."""
    try:
        lock = path.open("r")
    except FileNotFoundError:
        return None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            text = lock.read()
            return int(text) if text.isdecimal() else None
    return None
