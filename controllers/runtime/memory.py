"""Memory of a process: what is given back to the system.

What a request makes is freed when it ends; that it also leaves the process is a matter of the C library, which by default
keeps what it once had.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_THRESHOLD: Final = 128 * 1024


def bound_heap() -> None:
    """Let the C library give large blocks back as they are freed; without effect where it cannot be told."""
    with suppress(AttributeError, OSError):
        tell = ctypes.CDLL(None).mallopt
        # stated thresholds stay as they are; otherwise each large block that is freed raises them
        tell(_M_MMAP_THRESHOLD, _THRESHOLD)
        tell(_M_TRIM_THRESHOLD, _THRESHOLD)
        tell(_M_ARENA_MAX, 2)


def trim() -> None:
    """Give back what is free inside the heap, too; worth its milliseconds after something large."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
