"""How long policies take, for Prometheus (`kyverno_policy_execution_duration_seconds`, row W-40): measured on a sample.

Policies are asked together, so their times cannot be told apart where requests wait for them. Of every hundred requests about a
kind one is asked again policy by policy after its answer, and counts for all of them; the others pay one look into a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final

from controllers.runtime.bounded_evaluation import LONG_SLICE
from controllers.runtime.metrics import bucket_of
from controllers.runtime.slices import Slice, SliceOver
from engine.evaluate import PolicySet, evaluate

from .counting import labels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controllers.runtime.metrics import Metrics
    from engine.evaluate import CompiledPolicy, Inputs
    from engine.model import Review, RuleResult, RuleType

NAME: Final = "kyverno_policy_execution_duration_seconds"
EVERY: Final = 100
_MOST_KNOWN: Final = 4096


@dataclass(frozen=True, slots=True)
class Sample:
    """What was asked and answered. `weight` is how many requests it stands for, `waited` the seconds that answers took."""

    policies: PolicySet
    review: Review
    inputs: Inputs
    results: Sequence[RuleResult]
    weight: int
    waited: float = 0.0


class Timing:
    """Measures policies. `due` is asked for every request, `measure` called for those it chooses."""

    def __init__(self, metrics: Metrics, clock: Callable[[], float] = perf_counter) -> None:
        self._metrics = metrics
        self._clock = clock
        self._passed: dict[tuple[int, str], int] = {}
        self._alone: dict[int, tuple[CompiledPolicy, PolicySet]] = {}

    def due(self, policies: PolicySet, kind: str) -> int:
        """Return for how many requests about a kind a measurement now counts: the first, then every hundredth."""
        place = (id(policies), kind)
        passed = self._passed.get(place, EVERY - 1) + 1
        if passed < EVERY:
            self._passed[place] = passed
            return 0
        weight = EVERY if place in self._passed else 1
        if len(self._passed) >= _MOST_KNOWN:
            self._passed.clear()
        self._passed[place] = 0
        return weight

    def measure(self, asked: Sample) -> None:
        """Ask policies one by one and count their times."""
        seconds: dict[str, float] = {}
        for group in asked.policies.for_kind(asked.review.kind):
            for policy in group.policies:
                took = self._seconds(policy, asked, group.type)
                if took is not None:
                    key = policy.policy.key
                    seconds[key] = seconds.get(key, 0.0) + took
        by_policy: dict[str, list[RuleResult]] = {}
        for result in asked.results:
            by_policy.setdefault(result.policy, []).append(result)
        waiting = sum(key not in seconds for key in by_policy)
        for key, results in by_policy.items():
            took = seconds[key] if key in seconds else asked.waited / waiting
            self._count(asked, results, took)

    def _seconds(self, policy: CompiledPolicy, asked: Sample, type_: RuleType) -> float | None:
        """Return how long a policy takes; None for one that waits for answers, which are not asked for again, or takes too long."""
        alone = self._set_of(policy)
        alone.plan(asked.review)
        began = self._clock()
        try:
            found = Slice(LONG_SLICE).run(
                evaluate, alone, asked.review, asked.inputs, types=(type_,)
            )
        except SliceOver:
            return None
        return None if found.missing else self._clock() - began

    def _set_of(self, policy: CompiledPolicy) -> PolicySet:
        """Return a set that holds one policy; the same one again, because it remembers its plans."""
        known = self._alone.get(id(policy))
        if known is not None and known[0] is policy:
            return known[1]
        if len(self._alone) >= _MOST_KNOWN:
            self._alone.clear()
        made = PolicySet((policy,))
        self._alone[id(policy)] = (policy, made)
        return made

    def _count(self, asked: Sample, results: Sequence[RuleResult], seconds: float) -> None:
        """Count the time of a policy, shared by its rules, once for each request that the measurement stands for."""
        review, each = asked.review, seconds / len(results)
        place = (review.kind, review.namespace or "-", review.operation.lower())
        for result in results:
            times = self._metrics.histogram(NAME, labels_of(result, place))
            times.counts[bucket_of(each)] += asked.weight
            times.total += each * asked.weight
