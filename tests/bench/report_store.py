"""What the report store takes: `python -m tests.bench.report_store [--rows N] [--postgres]`.

Reports of five results each are written through the store, then pages are asked for as kubectl and `violations` ask for them: the first
500 reports that a selector chooses. Figures are of the store without HTTP.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from controllers.report_store.database import Postgres, Sqlite
from tests.controllers.report_store.postgres import running
from tests.controllers.report_store.stage import REPORTS, report, staged

if TYPE_CHECKING:
    from controllers.report_store.database import Database
    from tests.controllers.report_store.stage import Stage

_ROWS_EACH = 5
_AT_ONCE = 2048
_TURNS = 5
_WHERE = {
    "everything": {},
    "result=fail": {"fieldSelector": "results.result=fail"},
    "policy=p1 result=fail": {"fieldSelector": "results.policy=p1,results.result=fail"},
    "policy=rare (10 reports)": {"fieldSelector": "results.policy=rare"},
    "result=error (none)": {"fieldSelector": "results.result=error"},
    "severity=critical result!=pass": {
        "fieldSelector": "results.severity=critical,results.result!=pass"
    },
    "worst result=fail": {
        "fieldSelector": "results.result!=pass,results.result!=skip",
        "sortBy": "severity",
    },
    "worst policy=p1 result=fail": {
        "fieldSelector": "results.policy=p1,results.result=fail",
        "sortBy": "severity",
    },
    "worst policy=rare": {"fieldSelector": "results.policy=rare", "sortBy": "severity"},
    "worst result=error (none)": {"fieldSelector": "results.result=error", "sortBy": "severity"},
    "kind=Pod name": {"fieldSelector": "scope.kind=Pod,scope.name=pod-r000777"},
    "label": {"labelSelector": "team=t3"},
}


async def _load(store: Stage, count: int) -> float:
    """Write reports as the controllers do, many at once; return the seconds of processor time."""
    began = time.process_time()
    severities = ("low", "medium", "high", "critical")
    for numbers in _in_parts(count):
        asked = []
        for number in numbers:
            rows = [
                (
                    f"p{row}",
                    "fail" if (number + row) % 10 == 0 else "pass",
                    severities[(number + row) % 4],
                )
                for row in range(_ROWS_EACH - 1)
            ]
            rows.append(("rare" if number % (count // 10) == 0 else "p9", "pass", "low"))
            made = report(f"r{number:06}", *rows, labels={"team": f"t{number % 20}"})
            asked.append(
                store.ask("POST", f"{REPORTS}/namespaces/n{number % 100:02}/policyreports", made)
            )
        for status, found in await asyncio.gather(*asked):
            assert status == 201, found
    return time.process_time() - began


def _in_parts(count: int) -> list[range]:
    return [range(start, min(start + _AT_ONCE, count)) for start in range(0, count, _AT_ONCE)]


async def _measure(database: Database, rows: int) -> None:
    count = rows // _ROWS_EACH
    async with staged(database) as store:
        seconds = await _load(store, count)
        print(
            f"{rows:,} results in {count:,} reports: {seconds * 1000 / count:.2f} ms of processor time each",
            flush=True,
        )
        for name, query in _WHERE.items():
            taken = []
            for _ in range(_TURNS):
                began = time.monotonic()
                status, page = await store.ask(
                    "GET", f"{REPORTS}/policyreports", limit="500", **query
                )
                taken.append((time.monotonic() - began) * 1000)
                assert status == 200, page
            later = await _later(store, page, query)
            print(
                f"  first page, {name:32} {len(page['items']):4} reports  first {taken[0]:7.1f} ms, median {median(taken):7.1f} ms{later}",
                flush=True,
            )


async def _later(store: Stage, page: dict, query: dict) -> str:
    token = page["metadata"].get("continue")
    if not token:
        return ""
    began = time.monotonic()
    await store.ask("GET", f"{REPORTS}/policyreports", limit="500", **query, **{"continue": token})
    return f", next page {(time.monotonic() - began) * 1000:7.1f} ms"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.report_store", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="results (%(default)s)")
    parser.add_argument("--postgres", action="store_true", help="in PostgreSQL instead of SQLite")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kp") as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder)) if given.postgres else nullcontext() as server:
            database = Postgres(server.dsn) if server else Sqlite(Path(folder) / "reports.db")
            asyncio.run(_measure(database, given.rows))


if __name__ == "__main__":
    main()
