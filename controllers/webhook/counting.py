"""Figures of the requests that were answered (rows W-40, W-41).

Apart from deciding. The same few series are counted again and again, so they are looked up once and then only added to: by what
a request was about, and by the very results that most objects of its kind get.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from controllers.runtime.bounded_evaluation import LONG_SLICE
from controllers.runtime.figures import place_of, series_of
from controllers.runtime.logs import log_answer, logs_everything
from controllers.runtime.metrics import MOST_SERIES, Amount, Metrics, Times, bucket_of
from controllers.runtime.slices import Slice, SliceOver
from controllers.runtime.tracing import current_span
from engine.evaluate import CompiledPolicy, Inputs, PolicySet, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controllers.runtime.figures import Place
    from controllers.runtime.sink import Stage
    from engine.model import Json, Review, RuleResult, RuleType

    Usual = list[tuple[Sequence[RuleResult], list[Amount]]]
    _Request = tuple[str, Stage, str | None, str | None, str | None, bool]

_REQUESTS, _REVIEWS = "kyverno_http_requests", "kyverno_admission_requests"
_REQUEST_TIMES = "kyverno_http_requests_duration_seconds"
_REVIEW_TIMES = "kyverno_admission_review_duration_seconds"
_USUAL: Final = 4
"""How many lists of results are remembered of requests of a sort: what passes, and some that are refused."""


class Counting:
    """Counts requests and results of rules."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._requests: dict[_Request, tuple[tuple[Amount, Times], ...]] = {}
        self._shapes: dict[tuple[object, ...], Amount] = {}

    def request(
        self,
        stage: Stage,
        route_path: str,
        request: Mapping[str, Json],
        is_allowed: bool,
        seconds: float,
    ) -> None:
        """Count a request that was answered after so many seconds."""
        namespace, operation = request.get("namespace"), request.get("operation")
        place = (route_path, stage, request["kind"].get("kind"), namespace, operation, is_allowed)
        known = self._requests.get(place)
        if known is None:
            known = self._series(place)
        bucket = bucket_of(seconds)
        for amount, times in known:
            amount.value += 1
            times.counts[bucket] += 1
            times.total += seconds
        if not is_allowed or logs_everything():
            log_answer(request, served_at(stage, route_path), seconds, is_allowed=is_allowed)
        span = current_span.get()
        if span is not None:
            span.describe(
                allowed=is_allowed,
                kind=place[2] or "",
                namespace=namespace or "",
                operation=operation or "",
            )

    def _series(self, place: _Request) -> tuple[tuple[Amount, Times], ...]:
        route_path, stage, kind, namespace, operation, is_allowed = place
        served = ("POST", served_at(stage, route_path))
        said = "true" if is_allowed else "false"
        labels = (kind or "", namespace or "-", (operation or "").lower(), said, stage)
        metrics = self._metrics
        found = (
            (metrics.counter(_REQUESTS, served), metrics.histogram(_REQUEST_TIMES, served)),
            (metrics.counter(_REVIEWS, labels), metrics.histogram(_REVIEW_TIMES, labels)),
        )
        if len(self._requests) >= MOST_SERIES:
            self._requests.clear()
        self._requests[place] = found
        return found

    def results(self, usual: Usual, place: Place, results: Sequence[RuleResult]) -> None:
        """Count what rules said of a request; `usual` remembers what they say of most requests of its sort."""
        for known, amounts in usual:
            if known == results:
                for amount in amounts:
                    amount.value += 1
                return
        amounts = [self._amount(result, place) for result in results]
        for amount in amounts:
            amount.value += 1
        if not any(one.patched or one.exceptions or one.targets for one in results):
            usual[:] = [(results, amounts), *usual[: _USUAL - 1]]
            return
        for result in results:
            for exception in result.exceptions:
                labels = (exception, result.policy, result.rule)
                self._metrics.count("kpolicy_exceptions_used", labels)

    def _amount(self, result: RuleResult, place: Place) -> Amount:
        shape = (result.identity, result.rule, result.status, result.enforce, place)
        found = self._shapes.get(shape)
        if found is None:
            name, _, labels = series_of(result, place)
            found = self._metrics.counter(name, labels)
            if len(self._shapes) >= MOST_SERIES:
                self._shapes.clear()
            self._shapes[shape] = found
        return found


def served_at(stage: Stage, route_path: str) -> str:
    """Return the path of a webhook as figures, logs and traces name it, without the secret part that it may have."""
    return f"/{stage}/{route_path}"


# How long policies take, for Prometheus (`kyverno_policy_execution_duration_seconds`, row W-40): measured on a sample.
#
# Policies are asked together, so their times cannot be told apart where requests wait for them. Of every hundred requests about a
# kind one is asked again policy by policy after its answer, and counts for all of them; the others pay one look into a table.

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
