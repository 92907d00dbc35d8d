"""`python -m tests.branches [PATH…]`: which share of each package's branches the tests take; `make coverage` runs it over all.

It is no part of `make test`: on Python 3.11 and 3.12 each branch is noted by a tracer, which takes half as long again and more. What
runs in processes of its own (the start-up of commands, the workers of the webhook, a real API server) is not counted, for coverage in
those would change what they import and how long they take.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_TIMEOUT = "600"
"""Seconds for one test: those that end in time without a tracer do so with one, too."""


FLOORS = {
    "engine": 91,
    "engine.cleanup": 98,
    "engine.evaluate": 84,
    "engine.generate": 85,
    "engine.grants": 90,
    "engine.images": 91,
    "engine.lang": 94,
    "engine.lint": 94,
    "engine.manifests": 90,
    "engine.match": 99,
    "engine.model": 92,
    "engine.mutate": 95,
    "engine.native": 86,
    "engine.parse": 95,
    "engine.podsecurity": 97,
}
"""Percent of each package's branches that `tests/engine` takes alone: what a run over all tests does not fall below."""


class Taken(NamedTuple):
    """Branches of some modules, and how many of them were taken."""

    branches: int = 0
    taken: int = 0

    @property
    def share(self) -> float:
        """The share that was taken, in percent; all where nothing branches."""
        return 100 * self.taken / self.branches if self.branches else 100.0


def main(paths: list[str]) -> int:
    """Run tests under coverage, print the table, and return what the tests came to."""
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    data, found = folder / "coverage", folder / "coverage.json"
    coverage = [sys.executable, "-m", "coverage"]
    run = [*coverage, "run", f"--data-file={data}", "-m", "pytest", "--timeout", _TIMEOUT, *paths]
    code = subprocess.run(run, cwd=ROOT, check=False).returncode
    told = [*coverage, "json", f"--data-file={data}", "--quiet", "-o", str(found)]
    subprocess.run(told, cwd=ROOT, check=True)
    packages = by_package(json.loads(found.read_text())["files"])
    print(table(packages))
    if paths or not (low := below(packages)):
        return code
    print(f"error: fewer branches than before: {', '.join(low)}", file=sys.stderr)
    return code or 1


def by_package(files: dict[str, Any]) -> dict[str, Taken]:
    """Add the modules of a report up by package: the first two words of their names."""
    found: dict[str, Taken] = defaultdict(Taken)
    for path, told in files.items():
        parts = Path(path).parts
        name = ".".join(parts[:2] if len(parts) > 2 else parts[:1])
        before, sums = found[name], told["summary"]
        found[name] = Taken(
            before.branches + sums["num_branches"], before.taken + sums["covered_branches"]
        )
    return dict(found)


def below(packages: dict[str, Taken]) -> list[str]:
    """Return the packages whose share is below their floor."""
    return [name for name, floor in FLOORS.items() if packages[name].share < floor]


def table(packages: dict[str, Taken]) -> str:
    """Return one line for each package, the least covered first, and one for all."""
    whole = Taken(*map(sum, zip(*packages.values(), strict=True))) if packages else Taken()
    ordered = sorted(packages.items(), key=lambda one: (one[1].share, one[0]))
    return "\n".join(
        f"{name:32} {one.taken:6} of {one.branches:6} branches {one.share:6.1f} %"
        for name, one in [*ordered, ("all", whole)]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
