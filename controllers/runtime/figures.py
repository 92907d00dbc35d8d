"""Gauges that are read from the cache at every scrape: rules, exceptions in force and when they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from controllers.kube import Clock

    from .cluster_cache import ClusterCache
    from .metrics import Labels, Metrics

VERSION = "0.1.0"


def show_world(metrics: Metrics, cache: ClusterCache, clock: Clock) -> None:
    """Let the gauges of policies and exceptions be read from a ClusterCache."""
    metrics.gauge("kyverno_policy_rule_info_total", lambda: _rules(cache))
    metrics.gauge("kpolicy_exceptions_in_force", lambda: _in_force(cache, clock))
    metrics.gauge("kpolicy_exception_expiry_timestamp_seconds", lambda: _expiring(cache))
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


def _in_force(cache: ClusterCache, clock: Clock) -> Iterator[tuple[Labels, float]]:
    now = clock.now()
    for key, end in _ends(cache):
        yield (key,), float(end is None or now < end)


def _expiring(cache: ClusterCache) -> Iterator[tuple[Labels, float]]:
    for key, end in _ends(cache):
        if end is not None:
            yield (key,), end.timestamp()


def _ends(cache: ClusterCache) -> Iterator[tuple[str, datetime | None]]:
    """Yield the exceptions of both groups that count, by `namespace/name`, with their ends."""
    snapshot = cache.policies.snapshot
    yield from ((one.key, one.expires_at) for one in snapshot.exceptions)
    yield from ((one.key, one.ends) for one in snapshot.cel_exceptions)
