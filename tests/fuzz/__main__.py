"""`python -m tests.fuzz --seconds 60 [TARGET …]`: every target for so long, each in a process of its own.

Findings are printed, their inputs kept in a folder, and decide the exit code.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz import plain
from tests.fuzz.findings import Findings
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run the targets one after another; return 1 when something was found."""
    given = _options()
    is_guided = importlib.util.find_spec("atheris") is not None and not given.plain
    if not is_guided and not given.plain:
        print("atheris is not installed: inputs from the generators, unguided", flush=True)
    folder = Path(given.folder or tempfile.mkdtemp(prefix="kpolicy-fuzz-"))
    found, total = 0, 0
    for name in given.targets or TARGETS:
        began = time.monotonic()
        run = _guided if is_guided else _plain
        counts, count = run(name, folder, given)
        seconds = time.monotonic() - began
        shown = dict(counts.most_common(8))
        print(f"{name}: {counts.total()} inputs in {seconds:.0f} s, {count} kinds of findings; {shown}", flush=True)  # fmt: skip
        found, total = found + count, total + counts.total()
    print(f"{total} inputs, {found} kinds of findings{f', kept in {folder}' if found else ''}")
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=0, help="of each target")
    parser.add_argument("--inputs", type=int, default=0, help="of each target, instead")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="unguided, even where atheris is installed")  # fmt: skip
    parser.add_argument("--folder", help="where findings and what reached new code are kept")
    given = parser.parse_args()
    if not given.seconds and not given.inputs:
        given.seconds = 60
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    return given


def _plain(name: str, folder: Path, given: argparse.Namespace) -> tuple[Counter[str], int]:
    findings = Findings(folder / "findings")
    counts = plain.run(TARGETS[name], findings, seconds=given.seconds, inputs=given.inputs, seed=given.seed)  # fmt: skip
    return counts, len(findings)


def _guided(name: str, folder: Path, given: argparse.Namespace) -> tuple[Counter[str], int]:
    """Run a target under atheris; a process that was ended (out of memory, hung in foreign code) is a finding."""
    words = [sys.executable, "-m", "tests.fuzz.guided", name, str(folder), str(given.seconds), str(given.inputs), str(given.seed)]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    found = [line for line in lines if line.startswith("FOUND ")]
    for line in found:
        print(line, flush=True)
    if done.returncode:
        found.append("ended")
        print(f"FOUND {name}: the process ended with {done.returncode}", *lines[-15:], sep="\n  ", flush=True)  # fmt: skip
    written = folder / f"{name}.json"
    return Counter(json.loads(written.read_text()) if written.exists() else {}), len(found)


if __name__ == "__main__":
    sys.exit(main())
