"""Figures of the requests that were answered (rows W-40, W-41).

Apart from deciding. The same few series are counted again and again, so they are looked up once and then only added to: by what
a request was about, and by the very results that most objects of its kind get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.runtime.figures import series_of
from controllers.runtime.logs import log_answer, logs_everything
from controllers.runtime.metrics import MOST_SERIES, Amount, Metrics, Times, bucket_of
from controllers.runtime.tracing import current_span

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controllers.runtime.figures import Place
    from controllers.runtime.sink import Stage
    from engine.model import Json, RuleResult

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
