"""`apply -p`: results as a report object, as Kyverno's CLI prints it (rows K-03, R-02, CC-16).

Results of cluster-wide policies stand in one ClusterReport called `merged`, those of a namespaced policy in a PolicyReport of
its own in that namespace. Their fields are those of the reports in a cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.store.reports import row_of, summary

from .names import reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from .rows import Row

_API = "openreports.io/v1alpha1"


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
        reports.append(_report("PolicyReport", place, below, now))
    return reports


def _report(
    kind: str, metadata: dict[str, str], rows: Sequence[Row], now: datetime
) -> dict[str, Any]:
    results = [_result(row, now) for row in rows]
    return {
        "apiVersion": _API,
        "kind": kind,
        "metadata": metadata,
        "results": results,
        "source": "kyverno",
        "summary": summary(results),
    }


def _result(row: Row, now: datetime) -> dict[str, Any]:
    """Return the row of a cluster's report, with the object and the status that the flags make of it."""
    made = row_of(row.result, row.policy, now)
    return {
        **made,
        "message": row.result.message,
        "resources": [reference(row.object)],
        "result": row.status,
        "scored": made["scored"] and row.status != "warn",
    }
