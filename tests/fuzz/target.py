"""One target: what is done with an input, and the bounds that no input may pass.

What counts as found: an exception that is not the engine's own, more than a second of processor time, a process that grew by
more than 100 MiB, and whatever the target itself asserts.
"""

from __future__ import annotations

import resource
import signal
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SECONDS = 1.0
"""Processor time that no input may take, whatever its budget."""

GROWTH_KIB = 100 * 1024
"""What a process may grow by for one input."""

_HANGS = 10.0
_LONGEST = 64 * 1024


class Hung(BaseException):
    """An input that took so long that it was interrupted; no handler of the code under test may swallow it."""


class Finding(Exception):  # noqa: N818 - it is what was looked for, not a failure of the run
    """An input that passed a bound, or raised what is not the engine's."""


@dataclass(frozen=True, slots=True)
class Target:
    """`run` says in a word what came of an input; `made` makes inputs that bytes alone would never become."""

    name: str
    run: Callable[[bytes], str]
    made: Callable[[Random], bytes]


def trial(target: Target, data: bytes, seconds: float = SECONDS) -> str:
    """Return what came of an input in a word; raises Finding. Code that counts what it reaches needs more `seconds`."""
    spent, grown, outcome = _measured(target, data)
    if spent > seconds:
        # once more: what was compiled, imported or collected meanwhile is not the input's doing
        spent = min(spent, _measured(target, data)[0])
    if spent > seconds:
        raise Finding(f"{spent:.1f} s of processor time")
    if grown > GROWTH_KIB:
        raise Finding(f"grew by {grown // 1024} MiB")
    return outcome


def _measured(target: Target, data: bytes) -> tuple[float, int, str]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    if signal.getsignal(signal.SIGVTALRM) is not _interrupt:
        signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, _HANGS)
    try:
        outcome = target.run(data[:_LONGEST])
    except EngineError as error:
        if "internal error" in error.message:
            raise Finding(f"hides an error: {error.message[:200]}") from error
        outcome = type(error).__name__
    except Hung:
        raise Finding(f"still at it after {_HANGS:.0f} s of processor time") from None
    except Exception as error:
        raise Finding(f"{type(error).__name__} at {_place(error)}: {str(error)[:200]}") from error
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    spent = time.process_time() - began
    return spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, outcome


def _interrupt(number: int, frame: object) -> None:
    raise Hung


def _place(error: BaseException) -> str:
    """Return the innermost place of an error: what tells findings apart."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    code = frame.tb_frame.f_code if frame else None
    return f"{code.co_filename.rpartition('/')[2]}:{frame.tb_lineno}" if code and frame else "?"
