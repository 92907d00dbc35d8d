"""`python -m tests.e2e.chainsaw [--area AREA…] [--sample N] [--shards N] [--out FILE] [TEST…]`: upstream's end-to-end tests on the real tier.

Reads the published tests from `KPOLICY_CHAINSAW` or ../shared/chainsaw and needs the program `chainsaw` (see its README): from the
path, `KPOLICY_TEST_CHAINSAW`, or the cache. Prints a line per test and a score per area; `--out` keeps them with their causes.
Every shard has an API server of its own and what its tests ask of it; shards take from the same tests until none is left. Tests that
need a node run only where they are named.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from engine.model.kinds import KINDS

from . import engine, tiers
from .chainsaw_setups import Setup, furnish, home, needed
from .server import binaries

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEFT_BEHIND = (
    *(f"{kind.plural}.{kind.group}" for kind in KINDS),
    "policyexceptions.kyverno.io",
    "policyexceptions.policies.kyverno.io",
    "globalcontextentries.kyverno.io",
    "updaterequests.kyverno.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
)
_LONGEST = 240
Test = dict[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test went; `cause` is the last error of a failed one."""

    file: str
    area: str
    passed: bool
    seconds: float
    cause: str = ""


def program() -> Path:
    """Return the runner; exits with a message when there is none."""
    built = Path.home() / ".cache" / "kpolicy" / "bin" / "chainsaw"
    for candidate in (os.environ.get("KPOLICY_TEST_CHAINSAW"), shutil.which("chainsaw"), built):
        if candidate and Path(candidate).exists():
            return Path(candidate)
    sys.exit(f"error: there is no chainsaw; `{home() / 'install-chainsaw'}` builds it")


def main() -> int:
    """Run the tests and print scores; exits with a message when the tests or their runner are not here."""
    args = _arguments()
    if not (home() / "index.json").exists():
        sys.exit(f"error: {home()} is not here; set KPOLICY_CHAINSAW to the folder that holds it")
    tests = _chosen(args)
    began = time.monotonic()
    run = Run(program(), Path(tempfile.mkdtemp(prefix="kpolicy-chainsaw-")), args.out)
    print(f"{len(tests)} tests, logs in {run.folder}", flush=True)
    groups: dict[Setup, deque[Test]] = {}
    for test in tests:
        groups.setdefault(needed(test), deque()).append(test)
    # the small ones first, and each as often as there are shards to share it
    jobs = deque(sorted(groups.items(), key=lambda job: len(job[1])) * args.shards)
    with ThreadPoolExecutor(args.shards) as pool:
        shards = [pool.submit(run.shard, number, jobs) for number in range(args.shards)]
        try:
            for shard in shards:
                shard.result()
        finally:
            jobs.clear()
            for left in groups.values():
                left.clear()
    summarize(run.outcomes)
    print(f"{args.shards} shards, {time.monotonic() - began:.0f} s")
    return 0


@dataclass(slots=True)
class Run:
    """A run of all shards: where its logs are, and what came of the tests, kept in `out`."""

    runner: Path
    folder: Path
    out: Path | None
    outcomes: list[Outcome] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def shard(self, number: int, jobs: deque[tuple[Setup, deque[Test]]]) -> None:
        """Play the tests of job after job, each on a cluster of its own, until there are none."""
        # some tests write files beside themselves
        upstream = Path(shutil.copytree(home(), self.folder / f"{number}" / "upstream"))
        for setup, tests in _taken(jobs):
            if tests:
                where = self.folder / f"{number}" / setup.name
                self._play(number, upstream, setup, tests, where)

    def _play(
        self, number: int, upstream: Path, setup: Setup, tests: deque[Test], folder: Path
    ) -> None:
        began = time.monotonic()
        with tiers.real_tier(folder, binaries.ready(), setup.runtime_config) as tier:
            host = f"127.0.0.{43 + number}"
            reached: dict[str, Any] = (
                {"port": 443, "address": "", "host": host} if setup.as_service else {}
            )
            furnish(tier, setup, host)
            process = engine.start(tier, "engine", *setup.flags, **reached)
            self._tell(f"shard {number}: {setup.name} after {time.monotonic() - began:.0f} s")
            try:
                for test in _taken(tests):
                    if not process.is_running:
                        self._tell("the engine ended; it is started again")
                        process = engine.start(tier, "engine", *setup.flags, **reached)
                    self._tell("", play(self.runner, tier, upstream, test))
            finally:
                process.stop()
        self._tell(f"shard {number}: {setup.name} took {time.monotonic() - began:.0f} s")

    def _tell(self, words: str, outcome: Outcome | None = None) -> None:
        with self._lock:
            if outcome:
                self.outcomes.append(outcome)
                write(self.out, self.outcomes)
                words = line(outcome)
            print(words, flush=True)


def _taken(queue: deque[_T]) -> Iterator[_T]:
    """Yield what is left in a queue that other shards take from, too."""
    with suppress(IndexError):
        while True:
            yield queue.popleft()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.chainsaw", description=__doc__)
    parser.add_argument("--area", action="append", help="all areas, where none is named")
    parser.add_argument("--sample", type=int, default=0, help="so many of each area, by chance")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shards", type=int, default=1, help="so many clusters beside each other")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="parts of file names")
    return parser.parse_args()


def _chosen(args: argparse.Namespace) -> list[Test]:
    tests = json.loads((home() / "index.json").read_text())
    if args.tests:
        return [test for test in tests if any(part in test["file"] for part in args.tests)]
    chance = random.Random(args.seed)
    chosen = []
    for area in args.area or dict.fromkeys(test["area"] for test in tests):
        found = [one for one in tests if one["area"] == area and not one["tier"].startswith("2")]
        chosen += chance.sample(found, min(args.sample, len(found))) if args.sample else found
    return chosen


def play(
    runner: Path, tier: tiers.Tier, upstream: Path, test: Test, programs: Path | None = None
) -> Outcome:
    """Run one test of the copy in `upstream`, with more programs on its path; clears away what it left."""
    began = time.monotonic()
    where = upstream / Path(test["file"]).parent
    command = [
        runner,
        "test",
        "--config",
        upstream / "config.yaml",
        "--test-dir",
        where,
        "--no-color",
        f"--template={'true' if _is_template(where, upstream) else 'false'}",
    ]
    path = {"PATH": f"{programs}:{os.environ['PATH']}"} if programs else {}
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, "KUBECONFIG": str(_kubeconfig(tier)), **path},
            cwd=tier.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST,
        )
        output, passed = done.stdout + done.stderr, done.returncode == 0
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        output, passed = said if isinstance(said, str) else said.decode("utf-8", "replace"), False
        output += "\nit took too long"
    log = tier.folder / "tests" / f"{Path(test['file']).parent.as_posix().replace('/', '_')}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text(output)
    _clear(tier)
    seconds = time.monotonic() - began
    return Outcome(test["file"], test["area"], passed, seconds, "" if passed else _cause(output))


def line(outcome: Outcome) -> str:
    """Return the line that is printed for a test."""
    word = "ok  " if outcome.passed else "FAIL"
    return f"{word} {outcome.seconds:5.1f} {outcome.file} {outcome.cause[:300]}"


def _kubeconfig(tier: tiers.Tier) -> Path:
    """Return a kubeconfig that holds the authority's certificate itself: scripts of tests read it out of there."""
    whole = tier.folder / "tests.kubeconfig"
    if not whole.exists():
        whole.write_text(tier.kubectl("config", "view", "--raw", "--flatten"))
    return whole


def _is_template(where: Path, upstream: Path) -> bool:
    """Tell whether values in parentheses are expressions of the runner, as the settings of the folder say; they are CEL in some."""
    for folder in (where, *where.parents):
        settings = folder / ".chainsaw.yaml"
        if settings.exists():
            spec = (yaml.safe_load(settings.read_text()) or {}).get("spec") or {}
            return (spec.get("templating") or {}).get("enabled") is not False
        if folder == upstream:
            break
    return True


def _cause(output: str) -> str:
    """Return the lines of a run that say what went wrong."""
    lines = output.splitlines()
    found = [number for number, line in enumerate(lines) if "| ERROR" in line or "ERROR |" in line]
    if not found:
        return " ".join(lines[-6:])
    first = found[0]
    return " / ".join(line.strip() for line in lines[first : first + 12])


def _clear(tier: tiers.Tier) -> None:
    """Delete the policies that a test left behind, so that the next does not meet them."""
    words = ("--all", "--all-namespaces", "--wait=false", "--ignore-not-found")
    with suppress(RuntimeError):
        tier.kubectl("delete", ",".join(_LEFT_BEHIND), *words)


def write(path: Path | None, outcomes: list[Outcome]) -> None:
    """Keep what came of each test in a file, where one is named."""
    if path is not None:
        rows = [{name: getattr(one, name) for name in Outcome.__slots__} for one in outcomes]
        path.write_text(json.dumps(rows, indent=1))


def summarize(outcomes: list[Outcome]) -> None:
    """Print a score per area."""
    run = Counter(one.area for one in outcomes)
    good = Counter(one.area for one in outcomes if one.passed)
    for area in run:
        print(f"{area:24} {good[area]:3} of {run[area]:3}")
    print(f"{'all':24} {good.total():3} of {run.total():3}")


if __name__ == "__main__":
    sys.exit(main())
