"""Figures of the requests that were answered (rows W-40, W-41).

Apart from deciding. The same few series are counted again and again, so they are looked up once and then only added to: by what
a request was about, and by the very results that most objects of its kind get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.runtime.metrics import MOST_SERIES, bucket_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.runtime.metrics import Amount, Metrics, Times
    from controllers.runtime.sink import Stage
    from engine.model import Json, Review, RuleResult

    Place = tuple[str, str, str]
    _Request = tuple[str, Stage, str | None, str | None, str | None, bool]

_REQUESTS, _REVIEWS = "kyverno_http_requests", "kyverno_admission_requests"
_REQUEST_TIMES = "kyverno_http_requests_duration_seconds"
_REVIEW_TIMES = "kyverno_admission_review_duration_seconds"


class Counting:
    """Counts requests and results of rules."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._requests: dict[_Request, tuple[Amount, Times, Amount, Times]] = {}
        self._shapes: dict[tuple[object, ...], Amount] = {}
        self._results: dict[tuple[str, ...], tuple[Sequence[RuleResult], list[Amount]]] = {}

    def request(
        self,
        stage: Stage,
        lane_name: str,
        request: Mapping[str, Json],
        is_allowed: bool,
        seconds: float,
    ) -> None:
        """Count a request that was answered after so many seconds."""
        namespace, operation = request.get("namespace"), request.get("operation")
        place = (lane_name, stage, request["kind"].get("kind"), namespace, operation, is_allowed)
        known = self._requests.get(place)
        if known is None:
            known = self._series(place)
        requests, request_times, reviews, review_times = known
        bucket = bucket_of(seconds)
        requests.value += 1
        reviews.value += 1
        request_times.add(bucket, seconds)
        review_times.add(bucket, seconds)

    def _series(self, place: _Request) -> tuple[Amount, Times, Amount, Times]:
        lane_name, stage, kind, namespace, operation, is_allowed = place
        served = ("POST", f"/{stage}/{lane_name}")
        said = "true" if is_allowed else "false"
        labels = (kind or "", namespace or "-", (operation or "").lower(), said, stage)
        metrics = self._metrics
        found = (
            metrics.counter(_REQUESTS, served),
            metrics.histogram(_REQUEST_TIMES, served),
            metrics.counter(_REVIEWS, labels),
            metrics.histogram(_REVIEW_TIMES, labels),
        )
        if len(self._requests) >= MOST_SERIES:
            self._requests.clear()
        self._requests[place] = found
        return found

    def results(self, review: Review, results: Sequence[RuleResult]) -> None:
        """Count what rules said."""
        place = (review.kind, review.namespace or "-", review.operation.lower())
        usual = (*place, results[0].type) if results else place
        known = self._results.get(usual)
        if known is not None and known[0] == results:
            for amount in known[1]:
                amount.value += 1
            return
        amounts = [self._amount(result, place) for result in results]
        for amount in amounts:
            amount.value += 1
        if not any(one.patched or one.exceptions or one.targets for one in results):
            if len(self._results) >= MOST_SERIES:
                self._results.clear()
            self._results[usual] = (results, amounts)
            return
        for result in results:
            for exception in result.exceptions:
                labels = (exception, result.policy, result.rule)
                self._metrics.count("kpolicy_exceptions_used", labels)

    def _amount(self, result: RuleResult, place: Place) -> Amount:
        shape = (result.policy, result.rule, result.status, result.enforce, place)
        found = self._shapes.get(shape)
        if found is None:
            labels = labels_of(result, place)
            found = self._metrics.counter("kyverno_policy_results", labels)
            if len(self._shapes) >= MOST_SERIES:
                self._shapes.clear()
            self._shapes[shape] = found
        return found


def labels_of(result: RuleResult, place: Place) -> tuple[str, ...]:
    """Return the labels of a result's figure (row W-41)."""
    namespace, _, name = result.policy.rpartition("/")
    mode = "enforce" if result.enforce else "audit"
    kind = "namespaced" if namespace else "cluster"
    policy = (name, namespace or "-", kind, mode, "true", result.rule, result.type.value)
    return (*policy, result.status.value, "admission_request", *place)
