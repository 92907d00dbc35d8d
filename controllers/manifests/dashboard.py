"""The dashboard on the figures of the controllers, as Grafana imports it.

Names and labels are those that `controllers.runtime.metrics` declares; a test holds them to that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from .alerts import CEL


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the dashboard: queries with the legend of each; `unit` is Grafana's name of one."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 12


def _quantile(share: str, metric: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket[5m])))"


_REVIEW: Final = "kyverno_admission_review_duration_seconds"
_EXECUTION: Final = "kyverno_policy_execution_duration_seconds"
PANELS: Final = (
    Panel(
        "Replicas",
        "short",
        (("count(kyverno_info)", "scraped"), ("sum(kpolicy_leading)", "leading")),
        "stat",
        6,
    ),
    Panel(
        "Certificate",
        "s",
        (("min(kpolicy_certificate_expiry_timestamp_seconds) - time()", "until its end"),),
        "stat",
        6,
    ),
    Panel(
        "Policies' rules",
        "short",
        (
            (
                "count(max by (policy_name, policy_namespace, rule_name) (kyverno_policy_rule_info_total))",
                "rules",
            ),
        ),
        "stat",
        6,
    ),
    Panel(
        "Exceptions in force",
        "short",
        (("sum(max by (exception) (kpolicy_exceptions_in_force))", "exceptions"),),
        "stat",
        6,
    ),
    Panel(
        "Requests",
        "reqps",
        (
            (
                "sum by (request_allowed) (rate(kyverno_admission_requests_total[5m]))",
                "allowed: {{request_allowed}}",
            ),
        ),
    ),
    Panel(
        "How long answers take",
        "s",
        ((_quantile("0.5", _REVIEW), "half"), (_quantile("0.99", _REVIEW), "99 of 100")),
    ),
    Panel(
        "Answered by failure policy",
        "reqps",
        (("sum by (reason) (rate(kpolicy_reviews_refused_total[5m]))", "{{reason}}"),),
    ),
    Panel(
        "Slowest policies",
        "s",
        ((f"topk(10, {_quantile('0.99', _EXECUTION, 'le, policy_name')})", "{{policy_name}}"),),
    ),
    Panel(
        "Results of classic policies",
        "ops",
        (("sum by (rule_result) (rate(kyverno_policy_results_total[5m]))", "{{rule_result}}"),),
    ),
    Panel(
        "Results of policies in CEL",
        "ops",
        tuple(
            (
                f"sum by (result) (rate(kyverno_{one}_policy_results_total[5m]))",
                f"{one}: {{{{result}}}}",
            )
            for one in CEL
        ),
    ),
    Panel(
        "Denying most",
        "ops",
        (
            (
                'topk(10, sum by (policy_name) (rate(kyverno_policy_results_total{rule_result="fail"}[15m])))',
                "{{policy_name}}",
            ),
        ),
    ),
    Panel(
        "Uses of exceptions",
        "ops",
        (
            (
                "topk(10, sum by (exception) (rate(kpolicy_exceptions_used_total[15m])))",
                "{{exception}}",
            ),
        ),
    ),
    Panel("Grants", "short", (("max by (state) (kpolicy_grants)", "{{state}}"),)),
    Panel("Audit trail", "short", (("max(kpolicy_audit_head)", "records"),)),
    Panel(
        "Generated and mutated",
        "ops",
        (
            (
                "sum by (request_type, status) (rate(kyverno_updaterequest_total[5m]))",
                "{{request_type}} {{status}}",
            ),
        ),
    ),
    Panel(
        "Deleted",
        "ops",
        (
            ("sum(rate(kyverno_cleanup_controller_deletedobjects_total[5m]))", "clean-up policies"),
            (
                "sum(rate(kyverno_deleting_controller_deletedobjects_total[5m]))",
                "deleting policies",
            ),
            ("sum(rate(kyverno_ttl_controller_deletedobjects_total[5m]))", "TTLs"),
        ),
    ),
    Panel(
        "Kinds whose TTLs are not seen for want of rights",
        "short",
        (
            (
                "count(max by (resource_group, resource_resource) (kpolicy_ttl_rights_missing))",
                "kinds",
            ),
        ),
    ),
    Panel(
        "Watches that broke",
        "short",
        (
            (
                "sum by (resource_resource) (increase(kpolicy_watch_problems_total[15m]))",
                "{{resource_resource}}",
            ),
        ),
    ),
    Panel(
        "Loops",
        "ops",
        (
            (
                "sum by (controller_name) (rate(kyverno_controller_reconcile_total[5m]))",
                "{{controller_name}}",
            ),
            (
                "sum by (controller_name) (rate(kyverno_controller_requeue_total[5m]))",
                "{{controller_name}} again",
            ),
        ),
    ),
    Panel(
        "Questions to the API server",
        "ops",
        (("sum by (operation) (rate(kyverno_client_queries_total[5m]))", "{{operation}}"),),
    ),
    Panel(
        "Memory",
        "bytes",
        (
            (
                "sum by (instance, process) (kpolicy_process_resident_memory_bytes)",
                "{{instance}} {{process}}",
            ),
        ),
    ),
    Panel(
        "Open files and tasks",
        "short",
        (
            (
                "sum by (instance, process) (kpolicy_process_open_files)",
                "{{instance}} {{process}} files",
            ),
            (
                "sum by (instance, process) (kpolicy_process_tasks)",
                "{{instance}} {{process}} tasks",
            ),
        ),
    ),
)
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS: Final = 24


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana imports it; it asks for the source of its data."""
    variable = {
        "name": "datasource",
        "type": "datasource",
        "query": "prometheus",
        "label": "Data source",
    }
    return {
        "title": "kpolicy",
        "uid": "kpolicy",
        "tags": ["kpolicy", "kyverno"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": _panels(),
    }


def _panels() -> list[dict[str, Any]]:
    """Return the panels, from left to right and from above."""
    made = []
    column = row = 0
    for number, panel in enumerate(PANELS, 1):
        height = 4 if panel.kind == "stat" else 8
        place = {"x": column, "y": row, "w": panel.width, "h": height}
        made.append(_panel(number, panel, place))
        column = (column + panel.width) % _COLUMNS
        if not column:
            row += height
    return made


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": query, "legendFormat": name}
        for index, (query, name) in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def dashboard_file() -> dict[str, str]:
    """Return the data of the ConfigMap by which Grafana's sidecar finds the dashboard."""
    return {"kpolicy.json": json.dumps(dashboard(), sort_keys=True)}
