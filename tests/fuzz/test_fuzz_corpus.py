"""Seeds of the fuzz targets, replayed: none raises what is not the engine's, none takes a second or a hundred MiB."""

from __future__ import annotations

import resource
import time
from collections import Counter
from random import Random

import pytest

from tests.fuzz import plain
from tests.fuzz.corpora import CORPUS, seeds_of
from tests.fuzz.findings import Findings
from tests.fuzz.target import SECONDS, Finding, Target, trial
from tests.fuzz.targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_no_seed_passes_a_bound(name: str) -> None:
    outcomes = Counter(trial(TARGETS[name], data) for data in seeds_of(name))

    assert len(outcomes) > 1, "seeds that all come to the same reach nothing"


@pytest.mark.parametrize("name", TARGETS)
def test_no_made_input_passes_a_bound(name: str) -> None:
    chance = Random(name)

    for _ in range(100):
        trial(TARGETS[name], plain.made(TARGETS[name], chance))


def test_every_folder_of_seeds_has_a_target_and_every_target_seeds() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)


def test_what_raises_foreign_errors_or_takes_too_long_is_found(tmp_path) -> None:
    def slow(data: bytes) -> str:
        end = time.process_time() + 1.5 * SECONDS
        while time.process_time() < end:
            pass
        return ""

    def large(data: bytes) -> str:
        # growth is of the peak, which other tests of this process may have left high
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return str(len(b"x" * (peak + 200 * 2**20)))

    def foreign(data: bytes) -> str:
        raise KeyError(data)

    findings = Findings(tmp_path)
    # so much memory takes long to fill, which is not what it is to be found for
    for run, seconds in ((slow, SECONDS), (large, 60.0), (foreign, SECONDS)):
        with pytest.raises(Finding) as found:
            trial(Target("a", run, lambda chance: b""), b"x", seconds)
        findings.add("a", str(found.value), b"x")
    assert len(findings) == 3
    assert (tmp_path / next(iter(tmp_path.iterdir())).name).read_bytes() == b"x"
