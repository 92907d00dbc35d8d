"""What a soak saw, and whether anything grows: a line through what was measured after the warm-up, in words and as a verdict."""

from __future__ import annotations

import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator

WARM_UP = 0.2
"""Share of the time that is not measured: what a process learns first stays."""
MOST_GROWTH = 1.0
"""MiB an hour by which memory may grow; a run of less than half an hour cannot tell, and only prints it."""
_TELLS_AFTER = 1800
_MIB = 1024 * 1024


@dataclass(slots=True)
class Seen:
    """What happened: how often what was done, what was wrong, how long answers took, and what processes took at which second."""

    done: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    measured: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    audit: list[tuple[float, int, int]] = field(default_factory=list)
    watch_problems: float = 0.0
    cut_off: int = 0


def scraped(port: int) -> list[tuple[str, float, dict[str, str]]]:
    """Return name, value and labels of each figure of a replica, none where it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError:
        return []
    families = text_string_to_metric_families(text)
    return [(one.name, one.value, one.labels) for family in families for one in family.samples]


def slope(points: list[tuple[float, float]]) -> float:
    """Return by how much the second grows when the first grows by one, by least squares; 0 for fewer than two points."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def report(seen: Seen, seconds: float) -> Iterator[str]:
    """Yield what was seen in words, line by line."""
    yield f"{seen.done['admissions'] / seconds:.0f} requests a second for {seconds / 60:.0f} minutes"
    yield ", ".join(f"{what}: {count}" for what, count in sorted(seen.done.items()))
    if seen.times:
        ordered = sorted(seen.times)
        half, last = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
        yield f"an answer took {half * 1000:.0f} ms, one of a hundred {last * 1000:.0f} ms, the longest {ordered[-1]:.1f} s"
    for (name, process), points in sorted(seen.measured.items()):
        kept = [point for point in points if point[0] >= seconds * WARM_UP]
        if not kept:
            continue
        scale, unit = (_MIB, " MiB") if name.endswith("_bytes") else (1, "")
        first, last = kept[0][1] / scale, kept[-1][1] / scale
        what = name.removeprefix("kpolicy_process_").removesuffix("_bytes").replace("_", " ")
        yield f"{process}: {what} {first:.1f} -> {last:.1f}{unit}, {slope(kept) * 3600 / scale:+.1f}{unit} an hour"
    if seen.audit:
        (_, first, size), (_, number, bytes_) = seen.audit[0], seen.audit[-1]
        yield f"audit trail: {first} -> {number} segments, {size / 1024:.0f} -> {bytes_ / 1024:.0f} KiB"
    yield f"watches that broke, at the replica that ran all the time: {seen.watch_problems:.0f}"
    for text, count in seen.problems.most_common(8):
        yield f"not answered or left aside, {count} times: {text}"
    yield f"refused because a replica was killed that had them in hand: {seen.cut_off}"
    yield f"wrong answers: {len(seen.wrong)}"
    yield from (f"    {text} ({count})" for text, count in Counter(seen.wrong).most_common(10))


def grows(seen: Seen, seconds: float) -> bool:
    """Tell whether memory grows by more than it may, where the run was long enough to tell."""
    if seconds < _TELLS_AFTER:
        return False
    series = (
        points for (name, _), points in seen.measured.items() if name.endswith("memory_bytes")
    )
    kept = ([point for point in points if point[0] >= seconds * WARM_UP] for points in series)
    return any(slope(points) * 3600 / _MIB > MOST_GROWTH for points in kept)
