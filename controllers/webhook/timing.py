"""How long policies take, for Prometheus (`kyverno_policy_execution_duration_seconds`, row W-40): measured on a sample.

Policies are asked together, so their times cannot be told apart where requests wait for them. Of every hundred requests about a
kind one is asked again policy by policy after its answer, and counts for all of them; the others pay one look into a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from controllers.runtime.evaluating import LONG_SLICE
from controllers.runtime.figures import place_of, series_of
from controllers.runtime.metrics import Metrics, bucket_of
from controllers.runtime.slices import Slice, SliceOver
from engine.evaluate import CompiledPolicy, Inputs, PolicySet, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.model import Review, RuleResult, RuleType

EVERY: Final = 100
_MOST_KINDS: Final = 4096


@dataclass(frozen=True, slots=True)
class Sample:
    """What was asked and answered. `weight` is how many requests it stands for, `waited` the seconds that answers took."""

    policies: PolicySet
    review: Review
    inputs: Inputs
    results: Sequence[RuleResult]
    weight: int
    waited: float = 0.0


class Passed:
    """Requests about a kind since the last measurement of policies: the first is one, and then every hundredth."""

    __slots__ = ("_left", "_weight")

    def __init__(self) -> None:
        self._left, self._weight = 0, 1

    def due(self) -> int:
        """Count a request; return for how many a measurement of it now counts, 0 where none is due."""
        if self._left:
            self._left -= 1
            return 0
        weight, self._weight, self._left = self._weight, EVERY, EVERY - 1
        return weight


class _Known:
    """What is remembered of policies in force, as long as they are: requests of each kind, sets of one."""

    __slots__ = ("alone", "passed")

    def __init__(self) -> None:
        self.passed: dict[str, Passed] = {}
        self.alone: dict[int, PolicySet] = {}


class Timing:
    """Measures policies. What `passed` gives is asked for every request, `measure` called for those it chooses."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = perf_counter) -> None:
        self._metrics = metrics
        self._clock = clock
        self._known: WeakKeyDictionary[PolicySet, _Known] = WeakKeyDictionary()

    def passed(self, policies: PolicySet, kind: str) -> Passed:
        """Return what counts the requests about a kind that some policies are asked about."""
        known = self._of(policies).passed
        found = known.get(kind)
        if found is None:
            if len(known) >= _MOST_KINDS:
                known.clear()
            found = known[kind] = Passed()
        return found

    def measure(self, asked: Sample) -> None:
        """Ask policies one by one and count their times."""
        by_policy: dict[str, list[RuleResult]] = {}
        for result in asked.results:
            by_policy.setdefault(result.policy, []).append(result)
        seconds: dict[str, float] = {}
        for group in asked.policies.for_kind(asked.review.kind):
            for policy in group.policies:
                if policy.policy.key not in by_policy:
                    continue
                took = self._seconds(policy, asked, group.type)
                if took is not None:
                    key = policy.policy.key
                    seconds[key] = seconds.get(key, 0.0) + took
        waiting = sum(key not in seconds for key in by_policy)
        for key, results in by_policy.items():
            took = seconds[key] if key in seconds else asked.waited / waiting
            self._count(asked, results, took)

    def _seconds(self, policy: CompiledPolicy, asked: Sample, type_: RuleType) -> float | None:
        """Return how long a policy takes; None for one that waits for answers, which are not asked for again, or takes too long."""
        alone = self._set_of(policy, asked.policies)
        alone.plan(asked.review)
        began = self._clock()
        try:
            found = Slice(LONG_SLICE).run(
                evaluate, alone, asked.review, asked.inputs, types=(type_,)
            )
        except SliceOver:
            return None
        return None if found.missing else self._clock() - began

    def _set_of(self, policy: CompiledPolicy, among: PolicySet) -> PolicySet:
        """Return a set that holds one policy; the same one again, because it remembers its plans."""
        alone = self._of(among).alone
        if id(policy) not in alone:
            alone[id(policy)] = PolicySet((policy,))
        return alone[id(policy)]

    def _of(self, policies: PolicySet) -> _Known:
        known = self._known.get(policies)
        if known is None:
            known = self._known[policies] = _Known()
        return known

    def _count(self, asked: Sample, results: Sequence[RuleResult], seconds: float) -> None:
        """Count the time of a policy, shared by its rules, once for each request that the measurement stands for."""
        review, each = asked.review, seconds / len(results)
        place = place_of(review)
        for result in results:
            _, name, labels = series_of(result, place)
            times = self._metrics.histogram(name, labels)
            times.counts[bucket_of(each)] += asked.weight
            times.total += each * asked.weight
