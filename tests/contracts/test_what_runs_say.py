"""What is printed after tests: which branches they took, and which of them were skipped for want of published files."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.branches import FLOORS, Taken, below, by_package, table

from .source import ROOT


def report(branches: int, taken: int) -> dict[str, dict[str, int]]:
    return {"summary": {"num_branches": branches, "covered_branches": taken}}


def test_modules_are_added_up_by_package() -> None:
    files = {
        "engine/match/a.py": report(4, 3),
        "engine/match/in/b.py": report(2, 2),
        "engine/errors.py": report(0, 0),
    }

    assert by_package(files) == {"engine.match": Taken(6, 5), "engine": Taken(0, 0)}


def test_the_least_covered_package_comes_first_and_the_sum_last() -> None:
    lines = table({"a": Taken(4, 4), "b": Taken(4, 1), "c": Taken()}).splitlines()

    assert [line.split()[0] for line in lines] == ["b", "a", "c", "all"]
    assert lines[0].endswith("25.0 %")
    assert lines[-1].endswith("62.5 %")


def test_a_package_that_falls_below_its_floor_is_named() -> None:
    kept = {name: Taken(100, floor) for name, floor in FLOORS.items()}

    assert below(kept) == []
    assert below({**kept, "engine.lang": Taken(100, FLOORS["engine.lang"] - 1)}) == ["engine.lang"]


def last_line(**more: str) -> str:
    tests = "tests/engine/images/test_image_references.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tests],
        cwd=ROOT,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


def test_the_last_line_says_what_was_skipped_for_want_of_published_files(tmp_path) -> None:
    (tmp_path / "observed").mkdir()

    assert "tests were skipped: they read published files" in last_line(
        KPOLICY_SHARED=str(tmp_path)
    )
