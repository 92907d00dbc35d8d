"""Alerts and the dashboard on the figures of the controllers: for the Prometheus operator, for Prometheus alone, and for Grafana.

`controllers.runtime.metrics` declares the figures, under upstream's names where upstream has them; a test holds every name and
label that is used here to what is declared there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CRITICAL, WARNING, INFO = "critical", "warning", "info"
_DAY: Final = 86_400
CEL: Final = ("validating", "mutating", "image_validating", "generating")
"""What upstream's figures name the families of policies in CEL by that say something of requests."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert: when it fires, after how long, and what is said of it; `help` tells what to do."""

    name: str
    expression: str
    after: str
    summary: str
    help: str
    severity: str = WARNING


def _rate(metric: str, by: str = "", window: str = "5m", where: str = "") -> str:
    """Return how fast a counter grows, for each value of some labels."""
    grown = f"rate({metric}_total{where and f'{{{where}}}'}[{window}])"
    return f"sum by ({by}) ({grown})" if by else f"sum({grown})"


def _quantile(share: str, metric: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({metric}_bucket[5m])))"


_REVIEW: Final = "kyverno_admission_review_duration_seconds"
_EXECUTION: Final = "kyverno_policy_execution_duration_seconds"
_CERTIFICATE_LEFT: Final = "min(kpolicy_certificate_expiry_timestamp_seconds) - time()"
_BROKEN_WATCHES: Final = "sum by (resource_resource) (increase(kpolicy_watch_problems_total[15m]))"
_OF_PROCESSES: Final = "sum by (instance, process)"
_FAILS: Final = 'rule_result="fail"'


def _errors_of_rules() -> str:
    classic = _rate("kyverno_policy_results", "policy_name", "15m", 'rule_result="error"')
    cel = (
        _rate(f"kyverno_{one}_policy_results", "policy_name", "15m", 'result="error"')
        for one in CEL
    )
    return " or ".join(f"{one} > 0" for one in (classic, *cel))


def _errors_of_clean_ups() -> str:
    names = ("cleanup", "deleting", "ttl")
    parts = (_rate(f"kyverno_{one}_controller_errors", window="15m") for one in names)
    return " or ".join(f"{one} > 0" for one in parts)


ALERTS: Final = (
    Alert(
        "KpolicyAbsent",
        "absent(kyverno_info)",
        "5m",
        "no controller is scraped",
        "Without controllers, requests about what policies fail closed on are refused: `kubectl kpolicy doctor`.",
        CRITICAL,
    ),
    Alert(
        "KpolicyNoLeader",
        "sum(kpolicy_leading) == 0",
        "2m",
        "no replica leads",
        "Nothing is generated, cleaned up, granted or sealed: read the Lease `kyverno` and what replicas log of it.",
        CRITICAL,
    ),
    Alert(
        "KpolicyReviewsUndecided",
        f"{_rate('kpolicy_reviews_refused', 'reason')} > 0",
        "5m",
        "requests are answered by their failure policy ({{ $labels.reason }})",
        "`overload` wants more replicas, `deadline` cheaper policies or a longer time-out, `not ready` a look at what is not listed.",
    ),
    Alert(
        "KpolicyReviewsSlow",
        f"{_quantile('0.99', _REVIEW)} > 1",
        "10m",
        "one of a hundred reviews takes more than a second",
        "The panel on policies shows which take the time; what they look up outside is part of it.",
    ),
    Alert(
        "KpolicyCertificateOld",
        f"{_CERTIFICATE_LEFT} < {12 * _DAY}",
        "1h",
        "the webhook's certificate was not renewed when it was due",
        "The leader renews it 15 days before its end: read what it logs.",
    ),
    Alert(
        "KpolicyCertificateEnds",
        f"{_CERTIFICATE_LEFT} < {7 * _DAY}",
        "10m",
        "the webhook's certificate ends within a week",
        "From then on the API server cannot ask, and what fails closed is refused. Deleting its Secret has another one made.",
        CRITICAL,
    ),
    Alert(
        "KpolicyPolicyErrs",
        _errors_of_rules(),
        "15m",
        "policy {{ $labels.policy_name }} errs",
        "Its reports and Events say why: `kubectl kpolicy violations`.",
    ),
    Alert(
        "KpolicyRequestsFail",
        'sum(rate(kyverno_updaterequest_total{status="failed"}[15m])) > 0',
        "15m",
        "what is to be generated or mutated fails",
        "The status of the UpdateRequests says why; mostly rights of the background account are missing.",
    ),
    Alert(
        "KpolicyCleanUpsFail",
        _errors_of_clean_ups(),
        "15m",
        "objects that are to be deleted stay",
        "Events on the policies and objects say why; mostly rights of the clean-up account are missing.",
    ),
    Alert(
        "KpolicyResultsLost",
        f"{_rate('kyverno_breaker_drops', 'circuit_name')} > 0",
        "10m",
        "results are dropped because too many wait ({{ $labels.circuit_name }})",
        "The background scan comes to them later; more replicas take more.",
    ),
    Alert(
        "KpolicyEventsLost",
        f"{_rate('kyverno_events_dropped', 'reason', '15m')} > 0",
        "15m",
        "Events are dropped ({{ $labels.reason }})",
        "`--omitEvents` leaves out those that nobody reads.",
        INFO,
    ),
    Alert(
        "KpolicyWatchesBreak",
        f"{_BROKEN_WATCHES} > 10",
        "5m",
        "{{ $labels.resource_resource }} cannot be followed",
        "Decisions go by what was known before: look at the API server, and at the rights that the log names.",
    ),
    Alert(
        "KpolicyAuditRegressed",
        "increase(kpolicy_audit_regressions_total[1h]) > 0",
        "0m",
        "the audit trail is shorter than it was",
        "Somebody restored or deleted records: `kubectl kpolicy audit verify`.",
        CRITICAL,
    ),
    Alert(
        "KpolicyExceptionEnds",
        f"kpolicy_exception_expiry_timestamp_seconds - time() < {_DAY} and kpolicy_exception_expiry_timestamp_seconds > time()",
        "0m",
        "exception {{ $labels.exception }} ends within a day",
        "What it covers is refused from then on: `kubectl kpolicy grant extend`, or mend what needs it.",
        INFO,
    ),
)


def alert_rules() -> dict[str, Any]:
    """Return the alert rules as a file of Prometheus has them."""
    return {"groups": [{"name": "kpolicy", "rules": [_rule(one) for one in ALERTS]}]}


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.after,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.help},
    }


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the dashboard: queries by the legend of each; `unit` is Grafana's name of one."""

    title: str
    unit: str
    queries: Mapping[str, str]
    kind: str = "timeseries"
    width: int = 12


def _stat(title: str, unit: str, queries: Mapping[str, str]) -> Panel:
    return Panel(title, unit, queries, "stat", 6)


def _rates(title: str, metric: str, by: str, unit: str = "ops") -> Panel:
    """Return a panel of how fast a counter grows, named by the values of its labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return Panel(title, unit, {legend: _rate(metric, by)})


PANELS: Final = (
    _stat(
        "Replicas", "short", {"scraped": "count(kyverno_info)", "leading": "sum(kpolicy_leading)"}
    ),
    _stat("Certificate", "s", {"until its end": _CERTIFICATE_LEFT}),
    _stat(
        "Policies' rules",
        "short",
        {
            "rules": "count(max by (policy_name, policy_namespace, rule_name) (kyverno_policy_rule_info_total))"
        },
    ),
    _stat(
        "Exceptions in force",
        "short",
        {"exceptions": "sum(max by (exception) (kpolicy_exceptions_in_force))"},
    ),
    Panel(
        "Requests",
        "reqps",
        {"allowed: {{request_allowed}}": _rate("kyverno_admission_requests", "request_allowed")},
    ),
    Panel(
        "How long answers take",
        "s",
        {"half": _quantile("0.5", _REVIEW), "99 of 100": _quantile("0.99", _REVIEW)},
    ),
    _rates("Answered by failure policy", "kpolicy_reviews_refused", "reason", "reqps"),
    Panel(
        "Slowest policies",
        "s",
        {"{{policy_name}}": f"topk(10, {_quantile('0.99', _EXECUTION, 'le, policy_name')})"},
    ),
    _rates("Results of classic policies", "kyverno_policy_results", "rule_result"),
    Panel(
        "Results of policies in CEL",
        "ops",
        {f"{one}: {{{{result}}}}": _rate(f"kyverno_{one}_policy_results", "result") for one in CEL},
    ),
    Panel(
        "Denying most",
        "ops",
        {
            "{{policy_name}}": f"topk(10, {_rate('kyverno_policy_results', 'policy_name', '15m', _FAILS)})"
        },
    ),
    Panel(
        "Uses of exceptions",
        "ops",
        {"{{exception}}": f"topk(10, {_rate('kpolicy_exceptions_used', 'exception', '15m')})"},
    ),
    Panel("Grants", "short", {"{{state}}": "max by (state) (kpolicy_grants)"}),
    Panel("Audit trail", "short", {"records": "max(kpolicy_audit_head)"}),
    _rates("Generated and mutated", "kyverno_updaterequest", "request_type, status"),
    Panel(
        "Deleted",
        "ops",
        {
            "clean-up policies": _rate("kyverno_cleanup_controller_deletedobjects"),
            "deleting policies": _rate("kyverno_deleting_controller_deletedobjects"),
            "TTLs": _rate("kyverno_ttl_controller_deletedobjects"),
        },
    ),
    Panel(
        "Kinds whose TTLs are not seen for want of rights",
        "short",
        {"kinds": "count(max by (resource_group, resource_resource) (kpolicy_ttl_rights_missing))"},
    ),
    Panel("Watches that broke", "short", {"{{resource_resource}}": _BROKEN_WATCHES}),
    Panel(
        "Loops",
        "ops",
        {
            "{{controller_name}}": _rate("kyverno_controller_reconcile", "controller_name"),
            "{{controller_name}} again": _rate("kyverno_controller_requeue", "controller_name"),
        },
    ),
    _rates("Questions to the API server", "kyverno_client_queries", "operation"),
    Panel(
        "Memory",
        "bytes",
        {"{{instance}} {{process}}": f"{_OF_PROCESSES} (kpolicy_process_resident_memory_bytes)"},
    ),
    Panel(
        "Open files and tasks",
        "short",
        {
            "{{instance}} {{process}} files": f"{_OF_PROCESSES} (kpolicy_process_open_files)",
            "{{instance}} {{process}} tasks": f"{_OF_PROCESSES} (kpolicy_process_tasks)",
        },
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
        for index, (name, query) in enumerate(panel.queries.items())
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
