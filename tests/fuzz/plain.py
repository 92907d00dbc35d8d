"""Inputs from the generators and from seeds with bytes changed, unguided: what runs where atheris is not installed."""

from __future__ import annotations

import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.corpora import seeds_of
from tests.fuzz.target import Finding, trial

if TYPE_CHECKING:
    from tests.fuzz.findings import Findings
    from tests.fuzz.target import Target


def run(
    target: Target, findings: Findings, *, seconds: float, inputs: int, seed: int
) -> Counter[str]:
    """Run a target for so many seconds, or so many inputs; return how often what came of them."""
    chance, counts = Random(seed), Counter[str]()
    end = time.monotonic() + seconds if seconds else float("inf")
    while (not inputs or counts.total() < inputs) and time.monotonic() < end:
        data = made(target, chance)
        try:
            counts[trial(target, data)] += 1
        except Finding as finding:
            counts["finding"] += 1
            findings.add(target.name, str(finding), data)
    return counts


def made(target: Target, chance: Random) -> bytes:
    """Return an input: nine in ten from the target's generator, the others seeds with bytes changed."""
    if chance.random() < 0.9:
        return target.made(chance)
    data = bytearray(chance.choice(seeds_of(target.name)))
    for _ in range(chance.choice((1, 2, 8))):
        at = chance.randrange(len(data) + 1)
        data[at : at + chance.choice((0, 1, 1, 4))] = chance.randbytes(chance.choice((0, 1, 1, 4)))
    return bytes(data)
