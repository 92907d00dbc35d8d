"""Alerts on the figures of the controllers, for the Prometheus operator and for whoever has Prometheus alone.

`controllers.runtime.metrics` declares the figures, under upstream's names where upstream has them; a test holds every name and
label that is used here to what is declared there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

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
    severity: str
    summary: str
    help: str


def _errors_of_rules() -> str:
    classic = 'sum by (policy_name) (rate(kyverno_policy_results_total{rule_result="error"}[15m]))'
    cel = (
        f'sum by (policy_name) (rate(kyverno_{one}_policy_results_total{{result="error"}}[15m]))'
        for one in CEL
    )
    return " or ".join(f"{one} > 0" for one in (classic, *cel))


def _errors_of_clean_ups() -> str:
    names = ("cleanup", "deleting", "ttl")
    parts = (f"sum(rate(kyverno_{one}_controller_errors_total[15m])) > 0" for one in names)
    return " or ".join(parts)


ALERTS: Final = (
    Alert(
        "KpolicyAbsent",
        "absent(kyverno_info)",
        "5m",
        CRITICAL,
        "no controller is scraped",
        "Without controllers, requests about what policies fail closed on are refused: `kubectl kpolicy doctor`.",
    ),
    Alert(
        "KpolicyNoLeader",
        "sum(kpolicy_leading) == 0",
        "2m",
        CRITICAL,
        "no replica leads",
        "Nothing is generated, cleaned up, granted or sealed: read the Lease `kyverno` and what replicas log of it.",
    ),
    Alert(
        "KpolicyReviewsUndecided",
        "sum by (reason) (rate(kpolicy_reviews_refused_total[5m])) > 0",
        "5m",
        WARNING,
        "requests are answered by their failure policy ({{ $labels.reason }})",
        "`overload` wants more replicas, `deadline` cheaper policies or a longer time-out, `not ready` a look at what is not listed.",
    ),
    Alert(
        "KpolicyReviewsSlow",
        "histogram_quantile(0.99, sum by (le) (rate(kyverno_admission_review_duration_seconds_bucket[5m]))) > 1",
        "10m",
        WARNING,
        "one of a hundred reviews takes more than a second",
        "The panel on policies shows which take the time; what they look up outside is part of it.",
    ),
    Alert(
        "KpolicyCertificateOld",
        f"min(kpolicy_certificate_expiry_timestamp_seconds) - time() < {12 * _DAY}",
        "1h",
        WARNING,
        "the webhook's certificate was not renewed when it was due",
        "The leader renews it 15 days before its end: read what it logs.",
    ),
    Alert(
        "KpolicyCertificateEnds",
        f"min(kpolicy_certificate_expiry_timestamp_seconds) - time() < {7 * _DAY}",
        "10m",
        CRITICAL,
        "the webhook's certificate ends within a week",
        "From then on the API server cannot ask, and what fails closed is refused. Deleting its Secret has another one made.",
    ),
    Alert(
        "KpolicyPolicyErrs",
        _errors_of_rules(),
        "15m",
        WARNING,
        "policy {{ $labels.policy_name }} errs",
        "Its reports and Events say why: `kubectl kpolicy violations`.",
    ),
    Alert(
        "KpolicyRequestsFail",
        'sum(rate(kyverno_updaterequest_total{status="failed"}[15m])) > 0',
        "15m",
        WARNING,
        "what is to be generated or mutated fails",
        "The status of the UpdateRequests says why; mostly rights of the background account are missing.",
    ),
    Alert(
        "KpolicyCleanUpsFail",
        _errors_of_clean_ups(),
        "15m",
        WARNING,
        "objects that are to be deleted stay",
        "Events on the policies and objects say why; mostly rights of the clean-up account are missing.",
    ),
    Alert(
        "KpolicyResultsLost",
        "sum by (circuit_name) (rate(kyverno_breaker_drops_total[5m])) > 0",
        "10m",
        WARNING,
        "results are dropped because too many wait ({{ $labels.circuit_name }})",
        "The background scan comes to them later; more replicas take more.",
    ),
    Alert(
        "KpolicyEventsLost",
        "sum by (reason) (rate(kyverno_events_dropped_total[15m])) > 0",
        "15m",
        INFO,
        "Events are dropped ({{ $labels.reason }})",
        "`--omitEvents` leaves out those that nobody reads.",
    ),
    Alert(
        "KpolicyWatchesBreak",
        "sum by (resource_resource) (increase(kpolicy_watch_problems_total[15m])) > 10",
        "5m",
        WARNING,
        "{{ $labels.resource_resource }} cannot be followed",
        "Decisions go by what was known before: look at the API server, and at the rights that the log names.",
    ),
    Alert(
        "KpolicyAuditRegressed",
        "increase(kpolicy_audit_regressions_total[1h]) > 0",
        "0m",
        CRITICAL,
        "the audit trail is shorter than it was",
        "Somebody restored or deleted records: `kubectl kpolicy audit verify`.",
    ),
    Alert(
        "KpolicyExceptionEnds",
        f"kpolicy_exception_expiry_timestamp_seconds - time() < {_DAY} and kpolicy_exception_expiry_timestamp_seconds > time()",
        "0m",
        INFO,
        "exception {{ $labels.exception }} ends within a day",
        "What it covers is refused from then on: `kubectl kpolicy grant extend`, or mend what needs it.",
    ),
)


def rules() -> dict[str, Any]:
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
