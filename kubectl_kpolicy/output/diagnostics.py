"""Exit codes, and errors as people read them on standard error.

Standard output carries data and nothing else, standard error carries words. Every command's end is one `ExitCode`; every error is
printed by `report`, in one form: what is wrong and where, then a line of help where there is one.
"""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from engine.errors import EngineError

_LONGEST = 4_000


class ExitCode(IntEnum):
    """How a command ended; the numbers are a promise to scripts."""

    DONE = 0
    """Everything asked for was done; findings in plain lists included."""
    FAILED = 1
    """A negative verdict that was asked for, or a failure without a code of its own."""
    USAGE = 2
    """The command line itself is wrong."""
    UNREACHABLE = 3
    """The cluster cannot be reached or does not know us."""
    FORBIDDEN = 4
    """RBAC forbids it."""
    REFUSED = 5
    """A grant policy refuses it: maximum, self-approval, rate or lockout."""
    GONE = 6
    """It is expired, used up or not found."""
    CONFLICT = 7
    """It changed in the meantime; trying again may help."""
    TIMEOUT = 124
    """`--timeout` passed while waiting."""
    INTERRUPTED = 130
    """The user pressed Ctrl-C."""


def report(error: EngineError, *, err: TextIO | None = None, word: str = "error") -> None:
    """Print an error: `error: file:line: path: message`, then `help: …`; control characters are made visible."""
    place = str(error.at)
    if error.at.path and f"`{error.at.path}`" in error.message:
        place = place.removesuffix(error.at.path).removesuffix(": ")
    where = f"{place}: " if place else ""
    stream = sys.stderr if err is None else err
    print(f"{word}: {visible(where + error.message)}", file=stream)
    if error.help:
        print(f"help: {visible(error.help)}", file=stream)


def sentence(error: EngineError) -> str:
    """Return an error with its way out, on one line."""
    return f"{error.message}; {error.help}" if error.help else error.message


def explain(error: Exception, *, trace: bool = False, err: TextIO | None = None) -> int:
    """Print any exception that ended a command and return the exit code; `trace` adds where it came from."""
    from engine.errors import EngineError, reason_of

    stream = sys.stderr if err is None else err
    if trace:
        import traceback

        traceback.print_exception(error, file=stream)
    if isinstance(error, EngineError):
        report(error, err=stream)
    elif isinstance(error, OSError):
        place = f"`{error.filename}`: " if error.filename else ""
        print(f"error: {visible(place + reason_of(error))}", file=stream)
    else:
        print(f"error: internal error: {visible(f'{type(error).__name__}: {error}')}", file=stream)
        print(
            "help: this is a mistake in kpolicy; run again with -v and report what it prints",
            file=stream,
        )
    return ExitCode.FAILED


def visible(text: str) -> str:
    """Return a text that cannot steer a terminal: control characters as escapes, very long texts cut; line breaks stay."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return "\t" if char == "\t" else char.encode("unicode_escape").decode()
