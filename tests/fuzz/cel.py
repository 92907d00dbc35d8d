"""`python -m tests.fuzz.cel --inputs 1000000`: CEL inputs of all kinds, none of which may raise what is not the engine's.

One process, one core; the seed makes a run repeatable. Findings are printed with their seed, and decide the exit code.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from engine.lang.cel import program
from tests.fuzz.expressions import bindings, expression
from tests.fuzz.trial import outcome

ROUND = 1000
"""Inputs per seed, which share their data."""

SLOW = 3.0
"""Seconds of processor time that no input may take, whatever its budget."""


def main() -> int:
    """Run so many inputs and print what came of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cel", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--findings", type=int, default=20, help="end after so many")
    given = parser.parse_args()
    began = time.monotonic()
    counts: Counter[str] = Counter()
    slowest = (0.0, "")
    for seed in range(given.seed, given.seed + -(-given.inputs // ROUND)):
        slowest = max(slowest, _round(seed, counts))
        if counts["finding"] >= given.findings:
            break
    seconds = time.monotonic() - began
    total = counts.total()
    print(
        f"{total} inputs in {seconds:.0f} s ({total / seconds:.0f} a second): {dict(counts.most_common())}"
    )
    print(f"slowest: {slowest[0] * 1e3:.0f} ms of processor time, {slowest[1][:200]!r}")
    return 1 if counts["finding"] else 0


def _round(seed: int, counts: Counter[str]) -> tuple[float, str]:
    chance = Random(seed)
    data = bindings(chance)
    before = _shown(data)
    slowest = (0.0, "")
    for _ in range(ROUND):
        text = expression(chance)
        began = time.process_time()
        try:
            counts[outcome(text, data)] += 1
        except Exception as error:
            counts["finding"] += 1
            print(f"seed {seed}: {type(error).__name__}: {str(error)[:200]}\n  {text[:300]!r}")
        spent = time.process_time() - began
        slowest = max(slowest, (spent, text))
        if spent > SLOW:
            counts["finding"] += 1
            print(f"seed {seed}: {spent:.1f} s\n  {text[:300]!r}")
    if _shown(data) != before:
        counts["finding"] += 1
        print(f"seed {seed}: data was changed")
    program._compiled.cache_clear()
    return slowest


def _shown(data: dict[str, Any]) -> str:
    """Return the data as text, but for what nests too deep to have one."""
    return repr({name: value for name, value in data.items() if name != "z"})


if __name__ == "__main__":
    sys.exit(main())
