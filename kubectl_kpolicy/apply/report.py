"""`apply -p`: results as a report object, as Kyverno's CLI prints it (rows K-03, R-02, R-11).

Results of cluster-wide policies stand in one ClusterReport called `merged`, those of a namespaced policy in a Report of
its own in that namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .names import reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from .rows import Row

_API = "openreports.io/v1alpha1"
_ANNOTATIONS = {
    "category": "policies.kyverno.io/category",
    "severity": "policies.kyverno.io/severity",
}


def reports_of(rows: Iterable[Row], now: datetime) -> list[dict[str, Any]]:
    """Return the reports of a run, the cluster-wide one first; none where there are no results."""
    clustered: list[Row] = []
    namespaced: dict[str, list[Row]] = {}
    for row in rows:
        if row.policy.namespace:
            namespaced.setdefault(row.policy.key, []).append(row)
        else:
            clustered.append(row)
    reports = [_report("ClusterReport", {"name": "merged"}, clustered, now)] if clustered else []
    for below in namespaced.values():
        policy = below[0].policy
        place = {"name": policy.name, "namespace": policy.namespace}
        reports.append(_report("Report", place, below, now))
    return reports


def _report(
    kind: str, metadata: dict[str, str], rows: Sequence[Row], now: datetime
) -> dict[str, Any]:
    summary = dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0)
    for row in rows:
        summary[row.status] += 1
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": metadata,
        "results": [_result(row, int(now.timestamp())) for row in rows],
        "source": "kyverno",
        "summary": summary,
    }


def _result(row: Row, seconds: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "description": row.result.message,
        "policy": row.policy.key,
        "result": row.status,
        "rule": row.result.rule,
        "scored": row.status != "warn",
        "source": "kyverno",
        "subjects": [reference(row.object)],
        "timestamp": {"nanos": 0, "seconds": seconds},
    }
    for field, annotation in _ANNOTATIONS.items():
        if row.policy.annotations.get(annotation):
            result[field] = row.policy.annotations[annotation]
    properties = _properties(row)
    if properties:
        result["properties"] = properties
    return result


def _properties(row: Row) -> dict[str, str]:
    """Return the properties of a result; exceptions are named without their namespaces (row X-06)."""
    names = ",".join(key.rpartition("/")[2] for key in row.result.exceptions)
    return {**row.result.properties, **({"exceptions": names} if names else {})}
