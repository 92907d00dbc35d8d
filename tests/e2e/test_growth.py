"""What a soak says of what it saw: a line through the figures after the warm-up, and a verdict only of what is long enough."""

from __future__ import annotations

import pytest

from .growth import Seen, grows, report, slope

MEMORY = "kpolicy_process_resident_memory_bytes"
MIB = 1024 * 1024


def growing(mib_an_hour: float, seconds: float, warming: float = 0.0) -> Seen:
    """Return what is seen of a process that grows steadily, and by `warming` MiB in the first tenth."""
    seen = Seen()
    points = [float(at) for at in range(0, int(seconds), 10)]
    seen.measured[MEMORY, "worker"] = [
        (at, (100 + at / 3600 * mib_an_hour + warming * min(at / (seconds / 10), 1)) * MIB)
        for at in points
    ]
    return seen


def test_a_line_goes_through_what_lies_on_one() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2)
    assert slope([(0, 1)]) == slope([(1, 1), (1, 2)]) == 0


@pytest.mark.parametrize(
    ("mib", "seconds", "warming", "verdict"),
    [
        (0.5, 3600, 0, False),
        (5, 3600, 0, True),
        (5, 600, 0, False),
        (0, 3600, 50, False),
        (-3, 3600, 0, False),
    ],
)
def test_memory_that_grows_is_told_from_warming_up_and_from_too_short_a_run(
    mib: float, seconds: float, warming: float, verdict: bool
) -> None:
    assert grows(growing(mib, seconds, warming), seconds) is verdict


def test_the_report_names_growth_audit_and_every_wrong_answer() -> None:
    seen = growing(5, 3600)
    seen.done["admissions"] = 7200
    seen.times = [0.01] * 99 + [2.0]
    seen.audit = [(0, 1, 1024), (3600, 3, 4096)]
    seen.wrong += ["a bad Pod was let in"] * 2
    seen.cut_off = 3
    text = "\n".join(report(seen, 3600))
    assert "2 requests a second for 60 minutes" in text
    assert "worker: resident memory 101.0 -> 105.0 MiB, +5.0 MiB an hour" in text
    assert "audit trail: 1 -> 3 segments, 1 -> 4 KiB" in text
    assert "refused because a replica was killed that had them in hand: 3" in text
    assert "wrong answers: 2" in text
    assert "a bad Pod was let in (2)" in text
