"""Handing a code to the person who issues it: on a terminal when asked to, or into a file that nobody else may read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from engine.errors import EngineError, reason_of
from engine.record import record
from kubectl_kpolicy.output.misuse import Misuse


@record
class Handover:
    """How a code is handed over: shown, written to `file`, or sealed to the key in `recipient` (into the file, or printed)."""

    show: bool = False
    file: str = ""
    recipient: str = ""


def check_handover(handover: Handover) -> None:
    """Refuse, before a code is made, to hand it over where others read it; raises EngineError."""
    if handover.show == bool(handover.file or handover.recipient):
        raise Misuse(
            "say where the code goes", help="--show on a terminal, --out-file FILE, or --seal-to KEY; --show goes with neither"
        )  # fmt: skip
    if handover.show and not sys.stdout.isatty():
        raise EngineError(
            "a code is shown on a terminal only", help="write it with --out-file FILE instead"
        )


def hand_over(handover: Handover, text: str) -> None:
    """Show a code or write it to a new file with mode 0600; raises EngineError where the file exists."""
    if handover.show or (handover.recipient and not handover.file):
        sys.stdout.write(f"{text}\n")
        return
    try:
        file = os.open(handover.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise EngineError(f"cannot write `{handover.file}`: {reason_of(error)}") from error
    with os.fdopen(file, "w") as out:
        out.write(f"{text}\n")


def probe(handover: Handover) -> None:
    """Refuse a file that exists already or cannot, before a code is made for it; raises EngineError."""
    if handover.file and os.path.lexists(handover.file):
        raise EngineError(f"`{handover.file}` exists", help="name a new file")
    folder = Path(handover.file).parent
    if not folder.is_dir():
        raise EngineError(f"there is no folder `{folder}`", help="make it, or name another file")


def read_code(*, may_ask: bool = True) -> str:
    """Return a code from a prompt, or from standard input where that is no terminal; raises EngineError."""
    from engine.codes import canonical

    if sys.stdin.isatty():
        if not may_ask:
            raise EngineError("there is no code on standard input, and nobody is to be asked", help="pipe it in, or leave out --non-interactive")  # fmt: skip
        from getpass import getpass

        text = getpass("code: ")
    else:
        text = sys.stdin.readline()
    found = canonical(text.strip())
    if found is None:
        raise EngineError("that is no code", help="it has twenty letters and digits, as XXXX-XXXX-XXXX-XXXX-XXXX")  # fmt: skip
    return found
