"""`python -m tests.mutation [--room NAME] [--sample N] [--seed S] [--jobs J]`: a random sample of mutants against their tests.

A room is some modules and the tests that are there for them: `match` says what policies concern, `guards` is what keeps people
from getting through us what they may not do: redemption, guards, reach, approvals, audit. Works on copies of the tree, so the
checkout stays as it is. Prints each survivor and the share that was killed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

from .mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
TIMEOUT = 120


class Part(NamedTuple):
    """Modules, and the tests by which their mutants are to be noticed; the quickest first."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


class Room(NamedTuple):
    """Parts, of which a sample is drawn in equal shares, and the share of mutants that must be killed."""

    parts: tuple[Part, ...]
    least: float


_MATCH = Part(
    (
        "engine/match",
        "engine/exceptions.py",
        "engine/evaluate/conditions.py",
        "engine/lang/operators",
        "engine/lang/pattern",
    ),
    (
        "tests/engine/match",
        "tests/engine/exceptions",
        "tests/engine/operators",
        "tests/engine/pattern",
        "tests/engine/evaluate",
        "tests/engine/observed",
    ),
)
_WEBHOOK = "tests/controllers/webhook"
_REDEMPTION = Part(
    (
        "engine/codes",
        "controllers/store/uses.py",
        "controllers/webhook/one_time_codes.py",
        "controllers/webhook/code_offers.py",
        "controllers/webhook/code_bindings.py",
    ),
    (
        "tests/engine/codes",
        "tests/controllers/store/test_uses.py",
        f"{_WEBHOOK}/test_codes_at_admission.py",
        f"{_WEBHOOK}/test_strict_codes.py",
        f"{_WEBHOOK}/test_code_limits.py",
        f"{_WEBHOOK}/test_code_approvals.py",
        f"{_WEBHOOK}/test_existing_violations.py",
        f"{_WEBHOOK}/test_block_messages.py",
        f"{_WEBHOOK}/test_unproven_callers.py",
        f"{_WEBHOOK}/test_crashes_while_redeeming.py",
        "tests/controllers/loops/test_codes.py",
        "tests/controllers/loops/test_crashes_while_confirming.py",
    ),
)
_GUARDS = Part(
    ("controllers/manifests/guards.py", "controllers/webhook/grants.py"),
    (
        "tests/controllers/manifests/test_guards.py",
        f"{_WEBHOOK}/test_grant_admission.py",
        f"{_WEBHOOK}/test_granted_exceptions.py",
        "tests/controllers/sandbox/test_sandbox_guards.py",
    ),
)
_REACH = Part(
    ("engine/reach.py",),
    (
        "tests/engine/test_reach.py",
        "tests/controllers/webhook/test_mutations_out_of_reach.py",
        "tests/controllers/webhook/test_author_rights.py",
        "tests/controllers/loops/test_cleanup_reach.py",
    ),
)
_APPROVALS = Part(
    (
        "engine/grants/approvals.py",
        "engine/grants/lifecycle.py",
        "controllers/webhook/approvals.py",
    ),
    ("tests/engine/grants", f"{_WEBHOOK}/test_code_approvals.py"),
)
_AUDIT = Part(
    ("engine/audit.py", "controllers/store/audit.py"),
    (
        "tests/engine/audit",
        "tests/controllers/store/test_audit_trail.py",
        "tests/controllers/loops/test_auditing.py",
        "tests/controllers/loops/test_code_upkeep.py",
        "tests/controllers/loops/test_grants.py",
        "tests/controllers/loops/test_notices.py",
        f"{_WEBHOOK}/test_audit_recorder.py",
        "tests/plugin/codes/test_the_audit_command.py",
    ),
)
ROOMS = {
    "match": Room((_MATCH,), 0.85),
    "guards": Room((_REDEMPTION, _GUARDS, _REACH, _APPROVALS, _AUDIT), 0.9),
}


class Trial(NamedTuple):
    """A mutant and the tests that are to notice it."""

    mutant: Mutant
    tests: tuple[str, ...]


def main() -> int:
    """Run a sample and print the score; return 0 when enough were killed."""
    options, began = _options(), time.monotonic()
    room = ROOMS[options.room]
    trials = _sample(room, options.sample, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue[Path] = Queue()
        for number in range(options.jobs):
            trees.put(_copy(Path(folder, str(number))))
        with ThreadPoolExecutor(options.jobs) as pool:
            _check(pool, room, trees, "before")
            killed = list(pool.map(lambda trial: _try(trial, trees), trials))
            _check(pool, room, trees, "after")
    for trial, dead in zip(trials, killed, strict=True):
        if not dead:
            mutant = trial.mutant
            print(f"survived {mutant.path}:{mutant.line}: {mutant.change}")
    share = sum(killed) / len(killed)
    took = time.monotonic() - began
    print(
        f"{options.room}: {sum(killed)} of {len(killed)} mutants killed: {share:.1%}, {took:.0f} s"
    )
    return 0 if share >= room.least else 1


def _check(pool: ThreadPoolExecutor, room: Room, trees: Queue[Path], when: str) -> None:
    """Leave where tests fail without any mutant: what they notice then says nothing."""

    def fails(part: Part) -> bool:
        tree = trees.get()
        try:
            return _fails(tree, part.tests)
        finally:
            trees.put(tree)

    for part, is_failing in zip(room.parts, pool.map(fails, room.parts), strict=True):
        if is_failing:
            sys.exit(f"error: the tests of {part.modules[0]} fail without a mutant, {when} the mutants")  # fmt: skip


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--room", choices=sorted(ROOMS), default="match")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def _sample(room: Room, count: int, seed: int) -> list[Trial]:
    """Draw as many mutants of each part, so that a small part that matters is not lost in a large one."""
    chance, found = random.Random(seed), []
    for part in room.parts:
        every = list(_mutants(part))
        share = min(-(-count // len(room.parts)), len(every))
        found += [Trial(one, part.tests) for one in chance.sample(every, share)]
    return found


def _mutants(part: Part) -> list[Mutant]:
    paths = [ROOT / name for name in part.modules]
    files = sorted(
        file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])
    )
    return [
        mutant
        for file in files
        for mutant in mutants_of(str(file.relative_to(ROOT)), file.read_text())
    ]


def _copy(target: Path) -> Path:
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, target, ignore=ignored)
    return target


def _try(trial: Trial, trees: Queue[Path]) -> bool:
    """Return whether the tests fail on a mutant."""
    tree, mutant = trees.get(), trial.mutant
    file = tree / mutant.path
    before = file.read_text()
    try:
        file.write_text(mutant.source)
        return _fails(tree, trial.tests)
    finally:
        file.write_text(before)
        trees.put(tree)


def _fails(tree: Path, asked: tuple[str, ...]) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *asked]
    environment = {"KPOLICY_SHARED": str(ROOT.parent / "shared"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            capture_output=True,
            check=False,
            timeout=TIMEOUT,
            env=_environment(environment),
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": ".", **more}


if __name__ == "__main__":
    sys.exit(main())
