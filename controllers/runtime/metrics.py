"""Figures under upstream's names (rows W-40, W-41), counted in plain dicts and shaped only when somebody asks.

Counting happens for every rule of every request, scraping every few seconds: so the first is a dict entry and the second
builds what Prometheus wants. Label values come from requests, so the number of series is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from engine.model.kinds import FAMILIES, Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

MOST_SERIES = 10_000
"""Series of one metric; what comes beyond is counted under `overflow`."""

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0)
_RESOURCE = ("resource_kind", "resource_namespace", "resource_request_operation")
_RULE = (
    "policy_name", "policy_namespace", "policy_type", "policy_validation_mode", "policy_background_mode",
    "rule_name", "rule_type", "rule_result", "rule_execution_cause",
)  # fmt: skip
RESULTS: Final = "kyverno_policy_results"
"""Counter of what rules of classic policies say; policies written in CEL have one for each family (row CR-08)."""
EXECUTION: Final = "kyverno_policy_execution_duration_seconds"
_MODES = ("policy_background_mode", "policy_validation_mode")


def _of_cel(family: Family) -> str:
    """Return what upstream's figures of a family written in CEL begin with."""
    name = family.kind.removesuffix("Policy")
    words = "".join(f"_{one.lower()}" if one.isupper() else one for one in name)
    return f"kyverno{words}_policy"


_CEL: Final = {one.kind: _of_cel(one) for one in FAMILIES if one.is_cel and not one.is_timed}
CEL_RESULTS: Final = {kind: f"{name}_results" for kind, name in _CEL.items()}
CEL_EXECUTION: Final = {kind: f"{name}_execution_duration_seconds" for kind, name in _CEL.items()}
"""Names of the figures by the kind of the family; those whose policies work by a schedule have others (row DP-07)."""
WITHOUT_MODES: Final = frozenset({"GeneratingPolicy"})
"""Families whose figures do not tell in which mode a policy is."""


def _cel_labels(kind: str) -> tuple[str, ...]:
    modes = () if kind in WITHOUT_MODES else _MODES
    return ("policy_name", "policy_namespace", *modes, *_RESOURCE, "execution_cause", "result")


COUNTERS: dict[str, tuple[str, ...]] = {
    "kyverno_admission_requests": (*_RESOURCE, "request_allowed", "request_webhook"),
    RESULTS: (*_RULE, *_RESOURCE),
    **{name: _cel_labels(kind) for kind, name in CEL_RESULTS.items()},
    "kyverno_policy_changes": ("policy_name", "policy_namespace", "policy_type", "policy_change_type"),
    "kyverno_http_requests": ("http_method", "http_url"),
    "kyverno_client_queries": ("operation", "client_type", "resource_kind", "resource_namespace"),
    "kyverno_controller_reconcile": ("controller_name",),
    "kyverno_controller_requeue": ("controller_name", "num_requeues"),
    "kyverno_cleanup_controller_deletedobjects": ("policy_name", "policy_namespace", "policy_type", *_RESOURCE[:2]),
    "kyverno_cleanup_controller_errors": ("policy_name", "policy_namespace", "policy_type", *_RESOURCE[:2]),
    "kyverno_deleting_controller_deletedobjects": ("policy_name", "policy_type", "policy_namespace", *_RESOURCE[:2], "deletion_propagation"),
    "kyverno_deleting_controller_errors": ("policy_name", "policy_type", "policy_namespace", *_RESOURCE[:2], "deletion_propagation"),
    "kyverno_ttl_controller_deletedobjects": ("resource_group", "resource_version", "resource_resource", "resource_namespace"),
    "kyverno_ttl_controller_errors": ("resource_group", "resource_version", "resource_resource", "resource_namespace"),
    "kyverno_events_dropped": ("reason",),
    "kyverno_breaker_total": ("circuit_name",),
    "kyverno_breaker_drops": ("circuit_name",),
    "kyverno_updaterequest": ("request_type", "status"),
    "kpolicy_reviews_refused": ("reason",),
    "kpolicy_audit_regressions": (),
    "kpolicy_code_keys_rotated": ("how",),
    "kpolicy_code_uses_pruned": (),
    "kpolicy_exceptions_used": ("exception", "policy_name", "rule_name"),
    "kpolicy_trace_spans_dropped": ("reason",),
    "kpolicy_watch_problems": ("resource_group", "resource_resource"),
}  # fmt: skip
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "kyverno_admission_review_duration_seconds": (*_RESOURCE, "request_allowed", "request_webhook"),
    "kyverno_http_requests_duration_seconds": ("http_method", "http_url"),
    EXECUTION: (*_RULE, *_RESOURCE),
    **{name: _cel_labels(kind) for kind, name in CEL_EXECUTION.items()},
}
GAUGES: dict[str, tuple[str, ...]] = {
    "kyverno_policy_rule_info_total": (*_RULE[:7], "status_ready"),
    "kyverno_ttl_controller_info": ("resource_group", "resource_version", "resource_resource"),
    "kpolicy_ttl_rights_missing": (
        "resource_group",
        "resource_version",
        "resource_resource",
        "verb",
    ),
    "kyverno_info": ("version",),
    "kpolicy_exceptions_in_force": ("exception",),
    "kpolicy_grants": ("state",),
    "kpolicy_grant_expiry_timestamp_seconds": ("grant",),
    "kpolicy_audit_head": (),
    "kpolicy_exception_expiry_timestamp_seconds": ("exception",),
    "kpolicy_certificate_expiry_timestamp_seconds": ("certificate",),
    "kpolicy_leading": (),
    "kpolicy_process_resident_memory_bytes": ("process",),
    "kpolicy_process_open_files": ("process",),
    "kpolicy_process_tasks": ("process",),
}
Labels = tuple[str, ...]
Dump = dict[str, list[Any]]


@dataclass(slots=True)
class Amount:
    """What one series of a counter stands at."""

    value: float = 0.0


@dataclass(slots=True)
class Times:
    """Durations of one series: how many at most as long as each bound, and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, bucket: int, seconds: float) -> None:
        """Take in one duration; `bucket` is its `bucket_of`."""
        self.counts[bucket] += 1
        self.total += seconds


bucket_of: Final[Callable[[float], int]] = partial(bisect_left, BUCKETS)
"""Returns the place of a duration among the bounds."""


class Metrics:
    """All figures of one process."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[Labels, Amount]] = {name: {} for name in COUNTERS}
        self._times: dict[str, dict[Labels, Times]] = {name: {} for name in HISTOGRAMS}
        self._others: dict[str, Dump] = {}
        self._gauges: dict[str, Callable[[], Iterable[tuple[Labels, float]]]] = {}

    def count(self, name: str, labels: Labels = (), amount: float = 1) -> None:
        """Add to a counter of `COUNTERS`; `labels` are values in its order."""
        self.counter(name, labels).value += amount

    def counter(self, name: str, labels: Labels = ()) -> Amount:
        """Return a series of a counter, for those who add to it often."""
        series = self._counters[name]
        found = series.get(labels)
        if found is None:
            found = series.setdefault(_bounded(series, labels), Amount())
        return found

    def histogram(self, name: str, labels: Labels) -> Times:
        """Return a series of a histogram, for those who add to it often."""
        series = self._times[name]
        found = series.get(labels)
        if found is None:
            found = series.setdefault(_bounded(series, labels), Times())
        return found

    def gauge(self, name: str, read: Callable[[], Iterable[tuple[Labels, float]]]) -> None:
        """Let a gauge of `GAUGES` be read from `read` at every scrape."""
        if name not in GAUGES:
            raise KeyError(name)
        self._gauges[name] = read

    def value(self, name: str, labels: Labels = ()) -> float:
        """Return what a counter stands at."""
        found = self._counters[name].get(labels)
        return found.value if found is not None else 0.0

    def dump(self) -> Dump:
        """Return all figures as plain values, for another process to show them with its own."""
        return {
            "gauges": [
                [name, list(labels), value]
                for name, read in self._gauges.items()
                for labels, value in read()
            ],
            "counters": [
                [name, list(labels), amount.value]
                for name, series in self._counters.items()
                for labels, amount in series.items()
            ],
            "times": [
                [name, list(labels), times.counts, times.total]
                for name, durations in self._times.items()
                for labels, times in durations.items()
            ],
        }

    def show(self, place: str, dump: Dump) -> None:
        """Show what another process dumped with our own figures; of one place the last dump counts."""
        self._others[place] = dump

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format, counters with the `_total` ending."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(_collector()(self._with_others() if self._others else self))
        return generate_latest(registry)

    def _with_others(self) -> Metrics:
        """Return our figures and those of other processes, added up."""
        total = Metrics()
        gauges: dict[str, dict[Labels, float]] = {}
        for dump in (self.dump(), *self._others.values()):
            for name, labels, value in dump["gauges"]:
                series = gauges.setdefault(name, {})
                series[tuple(labels)] = series.get(tuple(labels), 0.0) + value
            for name, labels, value in dump["counters"]:
                total.count(name, tuple(labels), value)
            for name, labels, counts, seconds in dump["times"]:
                times = total._times[name].setdefault(tuple(labels), Times())
                times.counts = [
                    one + other for one, other in zip(times.counts, counts, strict=True)
                ]
                times.total += seconds
        for name, series in gauges.items():
            total.gauge(name, series.items)
        return total

    def families(self) -> Iterator[Metric]:
        """Yield the figures as Prometheus' families."""
        from prometheus_client.metrics_core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for name, series in self._counters.items():
            counter = CounterMetricFamily(name, name, labels=COUNTERS[name])
            for labels, amount in series.items():
                counter.add_metric(labels, amount.value)
            yield counter
        for name, durations in self._times.items():
            histogram = HistogramMetricFamily(name, name, labels=HISTOGRAMS[name])
            for labels, times in durations.items():
                histogram.add_metric(labels, _buckets(times), times.total)
            yield histogram
        for name, read in self._gauges.items():
            gauge = GaugeMetricFamily(name, name, labels=GAUGES[name])
            for labels, value in read():
                gauge.add_metric(labels, value)
            yield gauge


def _bounded(series: Mapping[Labels, object], labels: Labels) -> Labels:
    """Return the labels of a new series, or those of what comes on top of the most there may be."""
    return labels if len(series) < MOST_SERIES else ("overflow",) * len(labels)


def _buckets(times: Times) -> list[tuple[str, float]]:
    bounds = [*map(str, BUCKETS), "+Inf"]
    total, made = 0, []
    for bound, count in zip(bounds, times.counts, strict=True):
        total += count
        made.append((bound, float(total)))
    return made


@cache
def _collector() -> Callable[[Metrics], Collector]:
    """Return what makes a collector; a class that is made for each answer would be garbage in cycles."""
    from prometheus_client.registry import Collector

    class _All(Collector):
        def __init__(self, metrics: Metrics) -> None:
            self._metrics = metrics

        def collect(self) -> Iterator[Metric]:
            return self._metrics.families()

    return _All
