"""The `test` command: every test case found, run and shown, and the exit code that follows."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from engine.collector import collector_off
from engine.errors import EngineError, Location
from engine.record import record
from kubectl_kpolicy.apply.boxes import PLAIN, Brush, boxed, plain
from kubectl_kpolicy.apply.inputs import ApplyRequest, brought
from kubectl_kpolicy.apply.session import asking
from kubectl_kpolicy.output.diagnostics import report
from kubectl_kpolicy.output.findings import Case, junit_text
from kubectl_kpolicy.output.structured import json_text, yaml_text
from kubectl_kpolicy.output.table import Column, Table, wanted

from .loading import Broken, find_cases
from .parallel import Bar, Ran, RunOptions, jobs_for, outcomes
from .run import Selector, parse_selector
from .verdict import EXCLUDED, OK, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kubectl_kpolicy.apply.outside import Outside

    from .format import TestCase


@record
class TestRequest:
    """What `test` was told, by the names of its flags."""

    paths: tuple[str, ...] = (".",)
    file_name: str = "kyverno-test.yaml"
    test_case_selector: str = ""
    output: str = "table"
    fail_only: bool = False
    detailed_results: bool = False
    remove_color: bool = False
    color: str = "auto"
    quiet: bool = False
    require_tests: bool = False
    strict: bool = False
    git_branch: str = ""
    resolve_values: bool = False
    registry: bool = False
    jobs: int = 0


def run_command(flags: TestRequest, out: TextIO, err: TextIO) -> int:
    """Run `kubectl kpolicy test` and return its exit code: 1 where a row misses or a test cannot be read."""
    selector = parse_selector(flags.test_case_selector)
    with collector_off(), asking(ApplyRequest(registry=flags.registry)) as outside:
        return _Session(flags, selector, out, err, outside).run()


class _Session:
    """One run of the command: what was asked for, and the rows so far."""

    def __init__(
        self,
        flags: TestRequest,
        selector: Selector,
        out: TextIO,
        err: TextIO,
        outside: Outside | None,
    ) -> None:
        self._flags = flags
        self._outside = outside
        self._selector = selector
        self._out, self._err = out, err
        self._now = datetime.now(UTC)
        self._brush = Brush(on=not flags.remove_color and wanted(flags.color, out))
        self._tables = flags.output == "table"
        self._rows: list[Row] = []
        self._broken = 0

    def run(self) -> int:
        cases: list[TestCase] = []
        flags = self._flags
        places = brought([*flags.paths], flags.git_branch)
        for case in find_cases(map(Path, places), flags.file_name):
            if isinstance(case, Broken):
                self._broken += 1
                report(case.error, err=self._err)
            else:
                cases.append(case)
        options = RunOptions(self._now, self._selector, flags.resolve_values, self._outside)
        bar = Bar(self._err, len(cases), quiet=flags.quiet)
        ran = outcomes(cases, options, jobs_for(len(cases), flags.jobs, options))
        for case, one in zip(cases, ran, strict=True):
            bar.clear()
            self._take(case, one)
            bar.step()
        bar.clear()
        self._show()
        if not cases and not self._broken:
            none = EngineError("no test was found", help=f"tests are called {flags.file_name}")
            if flags.require_tests:
                raise none
            report(none, err=self._err, word="warning")
        return 1 if self._broken or any(self._failed(row) for row in self._rows) else 0

    def _failed(self, row: Row) -> bool:
        return (row.strict if self._flags.strict else row.verdict) != OK

    def _take(self, case: TestCase, ran: Ran) -> None:
        """Show what became of a case."""
        self._err.write(ran.words)
        self._broken += not ran.is_read and not ran.rows
        self._rows += ran.rows
        shown = (
            [row for row in ran.rows if self._failed(row)] if self._flags.fail_only else ran.rows
        )
        if shown or not (self._flags.fail_only or self._flags.quiet):
            self._say(f"Loading test {case.name} ( {case.place} ) ...")
            if not self._flags.quiet:
                self._say(*_steps(ran))
        if self._tables and shown:
            self._say("", self._table(shown), "")

    def _say(self, *lines: str) -> None:
        if self._tables:
            print(*lines, sep="\n", file=self._out)

    def _table(self, rows: Sequence[Row]) -> str:
        flags = self._flags
        return as_table(
            rows, brush=self._brush, detailed=flags.detailed_results, strict=flags.strict
        )

    def _show(self) -> None:
        if not self._tables:
            rows = self._rows
            if self._flags.fail_only:
                rows = [row for row in rows if self._failed(row)]
            self._out.write(FORMATS[self._flags.output](rows))
            return
        failed = [row for row in self._rows if self._failed(row)]
        if self._flags.fail_only:
            self._say(f"\nTest Summary: {len(failed)} out of {len(self._rows)} tests failed\n")
            return
        passed = len(self._rows) - len(failed)
        self._say(f"\nTest Summary: {passed} tests passed and {len(failed)} tests failed\n")
        if failed:
            self._say("Aggregated Failed Test Cases : ", self._table(failed))


def _steps(ran: Ran) -> tuple[str, ...]:
    """Return what is told about a run in upstream's words; nothing where its files could not be read."""
    if not ran.is_read:
        return ()
    return (
        "  Loading values/variables ...",
        "  Loading policies ...",
        "  Loading resources ...",
        "  Loading exceptions ...",
        (
            f"  Applying {ran.policies} {'policy' if ran.policies == 1 else 'policies'} to {ran.objects} "
            f"{'resource' if ran.objects == 1 else 'resources'} with {ran.exceptions} exceptions ..."
        ),
        "  Checking results ...",
    )


# The outcome of a test run as text: Kyverno's table and summary, JSON, YAML, Markdown, JUnit.

_COLUMNS = ("ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON")


def summary(rows: Sequence[Row]) -> dict[str, int]:
    """Return how many rows there are, how many hold by each of the two verdicts, and how many nobody answered."""
    verdicts = Counter(row.verdict for row in rows)
    strict = Counter(row.strict for row in rows)
    return {
        "rows": len(rows),
        "ok": verdicts[OK],
        "miss": len(rows) - verdicts[OK],
        "strictOk": strict[OK],
        "strictMiss": len(rows) - strict[OK],
        "noAnswer": sum(row.actual is None for row in rows),
    }


def _document(rows: Sequence[Row]) -> dict[str, Any]:
    """Return `{"summary": …, "rows": […]}`."""
    return {"summary": summary(rows), "rows": [asdict(row) for row in rows]}


def as_markdown(rows: Sequence[Row]) -> str:
    """Return a Markdown table."""
    columns = [Column(head) for head in (*_COLUMNS, "MESSAGE")]
    return Table(columns, _cells(rows, PLAIN, detailed=True, strict=False)).markdown()


def as_junit(rows: Sequence[Row]) -> str:
    """Return a JUnit report, one test suite for each file."""
    suites: dict[str, list[Case]] = {}
    for row in rows:
        name = f"{row.policy}/{row.rule}" if row.rule else row.policy
        failure = None if row.verdict == OK else f"{row.reason}: {row.message}"
        suites.setdefault(row.file, []).append(
            Case(name, row.resource, failure, Location(row.file))
        )
    return junit_text("kpolicy test", suites) + "\n"


def as_table(
    rows: Sequence[Row], *, brush: Brush = PLAIN, detailed: bool = False, strict: bool = False
) -> str:
    """Return Kyverno's box table of one test; `strict` decides by the strict verdict which rows failed."""
    columns = (*_COLUMNS, "MESSAGE") if detailed else _COLUMNS
    return boxed(columns, _cells(rows, brush, detailed=detailed, strict=strict), brush=brush)


def _cells(
    rows: Sequence[Row], brush: Brush, *, detailed: bool, strict: bool
) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = []
    for number, row in enumerate(rows, 1):
        holds = (row.strict if strict else row.verdict) == OK
        shown = (
            str(number),
            brush.name(row.policy),
            brush.name(row.rule),
            brush.name(row.resource),
            brush.status("Pass" if holds else "Fail"),
            brush.status("Skip", EXCLUDED) if row.reason == EXCLUDED else row.reason,
        )
        cells.append((*shown, plain(row.message)) if detailed else shown)
    return cells


FORMATS: dict[str, Callable[[Sequence[Row]], str]] = {
    "json": lambda rows: json_text(_document(rows)),
    "yaml": lambda rows: yaml_text(_document(rows)),
    "markdown": as_markdown,
    "junit": as_junit,
}
