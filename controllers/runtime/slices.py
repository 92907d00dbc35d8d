"""A slice of processor time for pure evaluation: when it is over, the evaluation is cut off where it stands.

A timer of the process ticks with the processor time it uses, and its handler raises only while an evaluation runs; whatever else
the process does, the tick passes by. Nothing is set or reset around an evaluation, so an ordinary one pays for two assignments.
What cannot be cut is a single call into C; the engine counts the bytes that it will touch before (`engine.lang.work`), and one that
would take longer than the slice does not begin here.
"""

from __future__ import annotations

import atexit
import gc
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar
from weakref import WeakSet, WeakValueDictionary

from engine.lang.work import UNCUT, Meter, meter

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_T = TypeVar("_T")
_P = ParamSpec("_P")

TICK: Final = 0.01
"""Seconds of processor time between two ticks; the kernel rounds them up to its own."""
_WORK: Final = 10_000_000
"""Work that may begin in place for each tick, in the engine's units: a call into C cannot be cut off once it has begun."""
_IMPORTS: Final = "<frozen importlib"
_OF_WEAK_REFERENCES: Final = frozenset(
    one.__init__.__code__.co_filename for one in (WeakSet, WeakValueDictionary)
)


class SliceOver(BaseException):
    """The time for an evaluation is used up."""


class Slice(Meter):
    """The time of one evaluation, and the work that may begin in it: `ticks` are those that fell into it, `most` is how many may."""

    __slots__ = ("most", "ticks")

    def __init__(self, most: int) -> None:
        self.left, self.over = most * _WORK, SliceOver
        self.most, self.ticks = most, 0

    @property
    def seconds(self) -> float:
        """About how much processor time was used; less than a tick shows as nothing."""
        return self.ticks * TICK

    def run(self, work: Callable[_P, _T], *given: _P.args, **named: _P.kwargs) -> _T:
        """Return what `work` gives for the arguments behind it, which must be pure evaluation; raises SliceOver when it takes too long.

        In other threads than the main one nothing is cut off, because signals do not come there.
        """
        if not _timer.is_running:
            _timer.start()
        try:
            _timer.current = self
            token = meter.set(self)
            try:
                return work(*given, **named)
            finally:
                _timer.current = None
                meter.reset(token)
        except SliceOver:
            # the tick may also have come between the end of the work and the line above
            _timer.current = None
            raise


class _Timer:
    """The one timer of the process."""

    __slots__ = ("current", "is_running")

    def __init__(self) -> None:
        self.current: Slice | None = None
        self.is_running = False

    def start(self) -> None:
        """Let the process tick from now on; without effect outside the main thread and where there are no such timers."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.is_running = True
        with suppress(AttributeError, ValueError, OSError):
            signal.signal(signal.SIGPROF, self._tick)
            signal.setitimer(signal.ITIMER_PROF, TICK, TICK)
            atexit.register(self.stop)

    def stop(self) -> None:
        """Let it tick no more; what ends later than the handler would be ended by the tick."""
        self.is_running = False
        with suppress(AttributeError, ValueError, OSError):
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_IGN)

    def _tick(self, _signal: int, frame: FrameType | None) -> None:
        current = self.current
        if current is None:
            return
        current.ticks += 1
        if current.ticks >= current.most and not _is_better_cut_later(frame):
            raise SliceOver


def _is_better_cut_later(frame: FrameType | None) -> bool:
    """Return whether the next tick, which comes soon, is a better moment to cut off what runs in `frame`.

    A module that is cut off while it is imported would have to be imported again. The interpreter drops what is raised in
    `__del__`, in callbacks of its garbage collection and in those of weak references, which are of two modules' making. What
    calls a library that does so is marked by the engine.
    """
    tidying = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_IMPORTS) or code.co_filename in _OF_WEAK_REFERENCES:
            return True
        if code.co_name == "__del__" or code in tidying or code in UNCUT:
            return True
        frame = frame.f_back
    return False


_timer: Final = _Timer()


def never_again() -> None:
    """Forget the slice under way: in a child, which is bounded otherwise."""
    _timer.current = None
