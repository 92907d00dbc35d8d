"""`python -m tests.fuzz.guided TARGET …`: one target under atheris, in a process of its own, because libFuzzer ends its process.

Half of the inputs are made by the target's generator, the others are changed by libFuzzer, which keeps what reaches new code.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import atheris

with atheris.instrument_imports(include=["engine", "controllers"], enable_loader_override=False):
    from tests.fuzz import plain
    from tests.fuzz.findings import Findings
    from tests.fuzz.target import SECONDS, Finding, trial
    from tests.fuzz.targets import TARGETS

_WRITTEN_EVERY = 500
_SLOWER = 3
"""How much slower code is that counts what it reaches."""

_LONGEST = 16 * 1024


def main(name: str, folder: str, seconds: int, inputs: int, seed: int) -> None:
    """Run one target; what came of its inputs is written to `counts.json` in the folder as it goes."""
    target, place = TARGETS[name], Path(folder)
    findings, counts = Findings(place / "findings"), Counter[str]()
    kept = place / "corpus" / name
    kept.mkdir(parents=True, exist_ok=True)

    def one(data: bytes) -> None:
        try:
            counts[trial(target, data, _SLOWER * SECONDS)] += 1
        except Finding as finding:
            counts["finding"] += 1
            findings.add(name, str(finding), data)
        if counts.total() % _WRITTEN_EVERY == 0:
            (place / f"{name}.json").write_text(json.dumps(counts))

    def change(data: bytes, most: int, seed: int) -> bytes:
        chance = Random(seed)
        if chance.random() < 0.5:
            made = plain.made(target, chance)
            return made if len(made) <= most else made[:most]
        return bytes(atheris.Mutate(data, most))

    seeds = Path(__file__).parent / "corpus" / name
    bounds = [f"-max_total_time={seconds}"] if seconds else [f"-runs={inputs}"]
    words = [sys.argv[0], str(kept), str(seeds), *bounds, f"-seed={seed}", f"-max_len={_LONGEST}", "-timeout=60",
             "-rss_limit_mb=2048", "-verbosity=0", f"-artifact_prefix={place}/{name}-"]  # fmt: skip
    atheris.Setup(words, one, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
