"""What Pulse draws beside its numbers: failures by the hour and severity, and where they are: policies by namespaces.

Counted once for each change of the reports; the hour that has just passed is looked up, not counted again.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.fields import word
from engine.record import record
from kubectl_kpolicy.output.rows import SEVERITIES, severity_rank
from kubectl_kpolicy.session.kept import keep, path_of_context, read_kept

from . import celkinds, violations
from .policies import every_policy, policy_identity
from .pulse import HOURS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from .cache import ClusterCache

_HOUR = 3600
_POLICIES = (*violations.SOURCES, "clusterpolicies", "policies", celkinds.POLICIES)


def by_hour_and_severity(world: ClusterCache, now: datetime) -> list[dict[str, int]]:
    """Return how many of today's failures were reported in each of the last 24 hours of the clock, by severity, the oldest first."""
    counts = world.derived("failures by hour", violations.SOURCES, lambda: _hours(world))
    last = int(now.timestamp() // _HOUR)
    return [
        {name: count for name in SEVERITIES if (count := counts[hour, name])}
        for hour in range(last - HOURS + 1, last + 1)
    ]


def _hours(world: ClusterCache) -> Counter[tuple[int, str]]:
    found: Counter[tuple[int, str]] = Counter()
    for row in violations.all_rows(world):
        at = row.moment("age")
        if at is not None and violations.is_failure(row):
            severity = row.text("severity")
            found[int(at.timestamp() // _HOUR), severity if severity in SEVERITIES else ""] += 1
    return found


@record
class HeatMap:
    """Failures of policies (lines) in namespaces (columns), those with most of them first; `worst` is the severest of a place."""

    policies: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    counts: Mapping[tuple[str, str], int] = {}
    worst: Mapping[tuple[str, str], str] = {}


def heat_map(world: ClusterCache) -> HeatMap:
    """Return where failures are; an empty namespace stands for what belongs to none."""
    return world.derived("heat map", violations.SOURCES, lambda: _heat(world))


def _heat(world: ClusterCache) -> HeatMap:
    counts: Counter[tuple[str, str]] = Counter()
    worst: dict[tuple[str, str], str] = {}
    for row in violations.all_rows(world):
        if violations.is_failure(row):
            place, severity = (row.text("policy"), row.text("namespace")), row.text("severity")
            counts[place] += 1
            if severity_rank(severity) >= severity_rank(worst.get(place, "")):
                worst[place] = severity
    return HeatMap(_most(counts, 0), _most(counts, 1), counts, worst)


def _most(counts: Mapping[tuple[str, str], int], side: int) -> tuple[str, ...]:
    totals: Counter[str] = Counter()
    for place, count in counts.items():
        totals[place[side]] += count
    return tuple(sorted(totals, key=lambda name: (-totals[name], name)))


# Compliance: how much of what a framework's policies looked at is as they want it.


@record
class Framework:
    """One framework: results that pass and all that were judged (skipped ones are not), and its policies' categories."""

    name: str
    passed: int
    judged: int
    categories: tuple[str, ...] = ()

    @property
    def percent(self) -> int | None:
        """The share that passes, rounded down so that only all is 100; None where nothing was judged."""
        return self.passed * 100 // self.judged if self.judged else None


_WORDS = {"PSS": ("pod security standard", "pss"), "NSA": ("nsa", "cisa"), "CIS": ("cis",)}


def frameworks_of(category: str) -> list[str]:
    """Return the frameworks that a policy's category names: PSS, NSA and CIS by their words, any other as it is written."""
    found = []
    for part in filter(None, map(str.strip, category.replace(";", ",").split(","))):
        text = "".join(letter if letter.isalnum() else " " for letter in part.lower())
        named = [
            name
            for name, words in _WORDS.items()
            if any(f" {word} " in f" {text} " or f" {word}s " in f" {text} " for word in words)
        ]
        found += named or [part]
    return list(dict.fromkeys(found))


def compliance(world: ClusterCache) -> list[Framework]:
    """Return the frameworks of the policies there are: PSS, NSA and CIS first, then the others by the number of their results."""
    return world.derived("compliance", _POLICIES, lambda: _compliance(world))


def _compliance(world: ClusterCache) -> list[Framework]:
    categories = {
        policy_identity(policy): word(policy, "metadata", "annotations", vocabulary.CATEGORY)
        for policy in every_policy(world)
    }
    judged: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    named: dict[str, dict[str, None]] = {}
    for category in categories.values():
        for name in frameworks_of(category):
            named.setdefault(name, {})[category] = None
    for row in violations.all_rows(world):
        category = categories.get(celkinds.identity_of(row)) or row.text("category")
        for name in frameworks_of(category):
            named.setdefault(name, {})
            passed[name] += row.cells.get("result") == "pass"
            judged[name] += row.cells.get("result") != "skip"
    found = [
        Framework(name, passed[name], judged[name], tuple(categories))
        for name, categories in named.items()
    ]
    return sorted(found, key=_place)


def _place(one: Framework) -> tuple[bool, int, str]:
    known = list(_WORDS)
    is_other = one.name not in known
    return is_other, -one.judged if is_other else known.index(one.name), one.name


# What numbers were before: samples an hour apart, so that a tile can tell a difference and a framework its way.


@record
class Sample:
    """The numbers of an instant by their ids; a number that was not known then is not in it."""

    at: float
    numbers: Mapping[str, int]


def sampled(
    past: Sequence[Sample], numbers: Mapping[str, int | None], now: datetime
) -> list[Sample]:
    """Return samples with one of now in the place of one of the same hour; at most two weeks of them."""
    known = {name: value for name, value in numbers.items() if value is not None}
    at = now.timestamp()
    kept = [one for one in past if one.at // _HOUR != at // _HOUR and at - one.at < 14 * 24 * _HOUR]
    return [*kept, Sample(at, known)] if known else kept


def before(past: Iterable[Sample], name: str, now: datetime) -> tuple[int, float] | None:
    """Return what a number was a day ago, or as long ago as is known, and how many seconds ago; None where nobody knows.

    A sample of less than half an hour tells nothing yet.
    """
    found = [one for one in past if name in one.numbers and now.timestamp() - one.at >= _HOUR / 2]
    if not found:
        return None
    day = now.timestamp() - HOURS * _HOUR
    one = min(found, key=lambda sample: abs(sample.at - day))
    return one.numbers[name], now.timestamp() - one.at


def load_samples(context: str, environment: Mapping[str, str] = os.environ) -> list[Sample]:
    """Return the samples of earlier sittings; none where they cannot be read."""
    found = read_kept(path_of_context("numbers", context, environment))
    try:
        return [
            Sample(float(at), {str(name): int(number) for name, number in numbers.items()})
            for at, numbers in found
        ]
    except (ValueError, TypeError, AttributeError):
        return []


def save_samples(
    context: str, samples: Sequence[Sample], environment: Mapping[str, str] = os.environ
) -> None:
    """Keep samples for the next sitting."""
    path = path_of_context("numbers", context, environment)
    keep(path, [(one.at, one.numbers) for one in samples])


def numbers_of(world: ClusterCache, now: datetime) -> dict[str, int | None]:
    """Return what samples hold: the gauges, and the percents of frameworks where all reports were read."""
    from .knowledge import Sight, known
    from .pulse import gauges

    found = {
        one.id: one.value if one.knowledge.sight is Sight.WHOLE else None
        for one in gauges(world, now)
    }
    if known(world, violations.LISTING).sight is Sight.WHOLE:
        found |= {f"framework {one.name}": one.percent for one in compliance(world)}
    return found
