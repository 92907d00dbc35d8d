"""What figures are about: results of rules as labels, and gauges that are read at every scrape.

Gauges are of rules, exceptions in force and when they end, and of what the process itself takes.
"""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Final

from controllers.manifests.choice import VERSION
from engine.model.kinds import BY_NAME, NATIVE

from .metrics import CEL_EXECUTION, CEL_RESULTS, EXECUTION, RESULTS, WITHOUT_MODES, Labels, Metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

    from controllers.kube import Client, Clock, Kind
    from engine.model import Review, RuleResult

    from .cluster_cache import ClusterCache

    Place = tuple[str, str, str]
    Series = tuple[str, str, Labels]

ADMISSION: Final = "admission_request"
SCAN: Final = "background_scan"
"""Why a rule was asked."""
_OWN: Final = Path("/proc/self")


def place_of(review: Review) -> Place:
    """Return the labels of what a review is about: kind, namespace, operation."""
    return (review.kind, review.namespace or "-", review.operation.lower())


def series_of(result: RuleResult, place: Place, cause: str = ADMISSION) -> Series:
    """Return what a result is counted under: the counter, the histogram, and the labels of both (rows W-41, CR-08)."""
    namespace, _, name = result.policy.rpartition("/")
    kind = BY_NAME.get(result.policy_kind)
    family = kind.family.kind if kind is not None else ""
    if family in CEL_RESULTS:
        said = (*place, SCAN if family in WITHOUT_MODES else cause, result.status.value)
        modes = () if family in WITHOUT_MODES else ("true", "Deny" if result.enforce else "Audit")
        return CEL_RESULTS[family], CEL_EXECUTION[family], (name, namespace, *modes, *said)
    mode = "enforce" if result.enforce else "audit"
    scope = "namespaced" if namespace else "cluster"
    policy = (name, namespace or "-", scope, mode, "true", result.rule, result.type.value)
    return RESULTS, EXECUTION, (*policy, result.status.value, cause, *place)


def count_scanned(metrics: Metrics, review: Review, results: Iterable[RuleResult]) -> None:
    """Count what a background scan found; the API server's own policies are not ours to count."""
    for result in results:
        if result.policy_kind not in NATIVE:
            counter, _, labels = series_of(result, place_of(review), SCAN)
            metrics.count(counter, labels)


def count_queries(metrics: Metrics, client: Client) -> None:
    """Have every question that a client puts to the API server counted; one that speaks to none has nothing to count."""

    def count(operation: str, kind: Kind, namespace: str) -> None:
        labels = (operation, "dynamic", kind.kind, namespace or "-")
        metrics.count("kyverno_client_queries", labels)

    if hasattr(client, "on_query"):
        client.on_query = count


def count_problems(
    metrics: Metrics, tell: Callable[[Kind, str], None]
) -> Callable[[Kind, str], None]:
    """Return what tells of a kind's watch, with each problem counted."""

    def told(kind: Kind, problem: str) -> None:
        if problem:
            metrics.count("kpolicy_watch_problems", (kind.group, kind.plural))
        tell(kind, problem)

    return told


def show_process(metrics: Metrics, name: str) -> None:
    """Let the gauges of this process be read: its memory, open files and tasks."""
    metrics.gauge("kpolicy_process_resident_memory_bytes", lambda: [((name,), _resident())])
    metrics.gauge("kpolicy_process_open_files", lambda: [((name,), _open_files())])
    metrics.gauge("kpolicy_process_tasks", lambda: [((name,), float(len(asyncio.all_tasks())))])


def _resident() -> float:
    try:
        pages = (_OWN / "statm").read_text().split()[1]
    except OSError:
        # a system without /proc tells the most that there ever was, in KiB
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    return float(pages) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> float:
    folder = _OWN / "fd"
    return float(sum(1 for _ in (folder if folder.is_dir() else Path("/dev/fd")).iterdir()))


def show_world(metrics: Metrics, cache: ClusterCache, clock: Clock) -> None:
    """Let the gauges of policies and exceptions be read from a ClusterCache."""
    metrics.gauge("kyverno_policy_rule_info_total", lambda: _rules(cache))
    metrics.gauge(
        "kpolicy_exceptions_in_force",
        lambda: (((key,), float(end is None or clock.now() < end)) for key, end in _ends(cache)),
    )
    metrics.gauge(
        "kpolicy_exception_expiry_timestamp_seconds",
        lambda: (((key,), end.timestamp()) for key, end in _ends(cache) if end is not None),
    )
    metrics.gauge("kyverno_info", lambda: [((VERSION,), 1.0)])


def _rules(cache: ClusterCache) -> Iterator[tuple[Labels, float]]:
    for compiled in cache.policies.snapshot.compiled.values():
        policy = compiled.policy
        namespace, name = policy.namespace, policy.name
        kind = "namespaced" if namespace else "cluster"
        shared = (
            name,
            namespace or "-",
            kind,
            policy.failure_action.lower(),
            str(policy.background).lower(),
        )
        for rule in compiled.rules:
            yield (*shared, rule.rule.name, rule.type.value, "true"), 1.0


def _ends(cache: ClusterCache) -> Iterator[tuple[str, datetime | None]]:
    """Yield the exceptions of both groups that count, by `namespace/name`, with their ends."""
    snapshot = cache.policies.snapshot
    yield from ((one.key, one.expires_at) for one in snapshot.exceptions)
    yield from ((one.key, one.ends) for one in snapshot.cel_exceptions)
