"""Test cases run one after the other or in several processes, their outcomes in the order of the cases, and how far it is.

A case is a value and so is its outcome, so that a process needs nothing of another one. Children are forked: they have every module
loaded and every file read that the parent has. Where there is no fork, and where clusters or registries are asked over connections
that cannot be shared, everything runs here.
"""

from __future__ import annotations

import io
import os
from multiprocessing import get_all_start_methods, get_context
from typing import TYPE_CHECKING, TextIO

from engine.errors import EngineError
from engine.record import record, replace
from kubectl_kpolicy.output.diagnostics import report

from .format import Declared, TestCase
from .loading import load_case
from .run import Selector, run_case
from .verdict import Asked, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from kubectl_kpolicy.apply.outside import Outside


WORTH_A_PROCESS = 16
"""Cases from which on a second process saves more than its start costs."""
_WIDTH = 30


@record
class RunOptions:
    """How cases are run: at which instant, which rows are looked at, and what may be asked beside files."""

    now: datetime
    selector: Selector
    resolve_values: bool = False
    outside: Outside | None = None


@record
class Ran:
    """What became of a case: its rows, what it applied to how much, words for standard error, whether its files could be read."""

    rows: tuple[Row, ...]
    policies: int = 0
    objects: int = 0
    exceptions: int = 0
    words: str = ""
    is_read: bool = True


def jobs_for(cases: int, wanted: int, options: RunOptions) -> int:
    """Return in how many processes cases are run; `wanted` 0 is as many as there are processors, once they are worth it."""
    if options.outside is not None or "fork" not in get_all_start_methods():
        return 1
    usual = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(wanted or usual, cases if wanted else cases // WORTH_A_PROCESS))


def outcomes(cases: Sequence[TestCase], options: RunOptions, jobs: int) -> Iterator[Ran]:
    """Yield what becomes of each case, in the order of the cases; raises nothing for a case that cannot be read."""
    if jobs == 1:
        for case in cases:
            yield run_one(case, options)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(jobs, get_context("fork"), _begin, (cases, options)) as pool:
        yield from pool.map(_numbered, range(len(cases)), chunksize=2)


_given: list[tuple[Sequence[TestCase], RunOptions]] = []
"""What a child was born with, so that cases need not be sent to it."""


def _begin(cases: Sequence[TestCase], options: RunOptions) -> None:
    _given.append((cases, options))


def _numbered(number: int) -> Ran:
    cases, options = _given[-1]
    return run_one(cases[number], options)


def run_one(case: TestCase, options: RunOptions) -> Ran:
    """Load and run a case; what cannot be read is a miss of every row that it expects."""
    words = io.StringIO()
    try:
        bench = load_case(case)
        bench = replace(bench, world=replace(bench.world, outside=options.outside))
        for problem in bench.loaded.problems:
            report(problem, err=words)
        rows = run_case(
            bench, now=options.now, selector=options.selector, resolve_values=options.resolve_values
        )
    except EngineError as error:
        report(error, err=words)
        rows = _unreadable(case, error)
        return Ran(tuple(rows), words=words.getvalue(), is_read=False)
    loaded = bench.loaded
    sizes = len(loaded.policies), len(bench.objects), len(loaded.exceptions)
    return Ran(tuple(rows), *sizes, words.getvalue())


def _unreadable(case: TestCase, error: EngineError) -> list[Row]:
    """Make the rows of a test whose files cannot be read: every one is a miss."""
    return [
        Asked(case.place, expected, declared, expected.operation).missing("Error", str(error))
        for expected in case.expectations
        for declared in expected.resources or (Declared("", ""),)
    ]


class Bar:
    """How far a run is, on a terminal and nowhere else; it is taken away before anything else is written."""

    def __init__(self, stream: TextIO, total: int, *, quiet: bool) -> None:
        self._stream, self._total, self._done = stream, total, 0
        self._on = total > 1 and not quiet and stream.isatty()

    def step(self) -> None:
        """Count one more and draw."""
        self._done += 1
        if self._on:
            filled = _WIDTH * self._done // self._total
            drawn = "#" * filled + "-" * (_WIDTH - filled)
            self._stream.write(f"\r[{drawn}] {self._done}/{self._total}")
            self._stream.flush()

    def clear(self) -> None:
        """Take the bar away."""
        if self._on:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
