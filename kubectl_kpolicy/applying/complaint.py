"""Errors as people read them on standard error: what is wrong, where, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from engine.errors import EngineError

FAILED, USAGE = 1, 2


def complain(err: TextIO, error: EngineError, *, word: str = "error") -> int:
    """Print one error with its place and help; returns the exit code of a general failure."""
    where = f"{error.at}: " if str(error.at) else ""
    print(f"{word}: {where}{error.message}", file=err)
    if error.help:
        print(f"  help: {error.help}", file=err)
    return FAILED


def refuse(err: TextIO, message: str, advice: str = "") -> int:
    """Print a refusal of what was asked for; returns the exit code of a general failure."""
    print(f"error: {message}", file=err)
    if advice:
        print(f"  help: {advice}", file=err)
    return FAILED
