"""`python -m tests.mutation [--sample N] [--seed S] [--jobs J]`: a random sample of mutants against the engine's tests.

Works on copies of the tree, so the checkout stays as it is. Prints each survivor and the share that was killed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from .mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
MODULES = (
    "engine/match",
    "engine/exceptions",
    "engine/evaluate/conditions.py",
    "engine/lang/operators",
    "engine/lang/operators.py",
    "engine/lang/pattern",
)
TESTS = (
    "tests/engine/match",
    "tests/engine/exceptions",
    "tests/engine/operators",
    "tests/engine/pattern",
    "tests/engine/evaluate",
    "tests/engine/observed",
)
TIMEOUT = 120


def main() -> int:
    """Run a sample and print the score; return 0 when at least 85 % were killed."""
    options = _options()
    mutants = _sample(options.sample, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        trees: Queue[Path] = Queue()
        for number in range(options.jobs):
            trees.put(_copy(Path(folder, str(number))))
        with ThreadPoolExecutor(options.jobs) as pool:
            killed = list(pool.map(lambda mutant: _try(mutant, trees), mutants))
    for mutant, dead in zip(mutants, killed, strict=True):
        if not dead:
            print(f"survived {mutant.path}:{mutant.line}: {mutant.change}")
    share = sum(killed) / len(killed)
    print(f"{sum(killed)} of {len(killed)} mutants killed: {share:.1%}")
    return 0 if share >= 0.85 else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def _sample(count: int, seed: int) -> list[Mutant]:
    paths = [ROOT / name for name in MODULES]
    files = sorted(
        file
        for path in paths
        if path.exists()
        for file in (path.rglob("*.py") if path.is_dir() else [path])
    )
    every = [
        mutant
        for file in files
        for mutant in mutants_of(str(file.relative_to(ROOT)), file.read_text())
    ]
    return random.Random(seed).sample(every, min(count, len(every)))


def _copy(target: Path) -> Path:
    ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, target, ignore=ignored)
    return target


def _try(mutant: Mutant, trees: Queue[Path]) -> bool:
    """Return whether the tests fail on a mutant."""
    tree = trees.get()
    file = tree / mutant.path
    before = file.read_text()
    try:
        file.write_text(mutant.source)
        return _fails(tree)
    finally:
        file.write_text(before)
        trees.put(tree)


def _fails(tree: Path) -> bool:
    tests = [test for test in TESTS if (tree / test).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
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
    import os

    return {**os.environ, "PYTHONPATH": ".", **more}


if __name__ == "__main__":
    sys.exit(main())
