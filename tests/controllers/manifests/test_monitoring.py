"""Alert rules and dashboard: they name what is counted, Prometheus reads them, and alerts fire when they must."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from controllers.manifests import monitoring
from controllers.runtime.metrics import COUNTERS, GAUGES, HISTOGRAMS

if TYPE_CHECKING:
    from pathlib import Path

DECLARED = {
    **{f"{name}_total": labels for name, labels in COUNTERS.items()},
    **dict(GAUGES.items()),
    **{
        f"{name}_{part}": (*labels, "le")
        for name, labels in HISTOGRAMS.items()
        for part in ("bucket", "sum", "count")
    },
}
QUERIES = {
    **{one.name: one.expression for one in monitoring.ALERTS},
    **{
        f"{panel.title} ({name})": query
        for panel in monitoring.PANELS
        for name, query in panel.queries.items()
    },
}
OF_TARGETS = {"instance"}
"""Labels that Prometheus adds to what it scrapes."""
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not here")


def named(query: str) -> set[str]:
    return set(re.findall(r"\b(?:kyverno|kpolicy)_\w+", query))


def labels_in(query: str) -> set[str]:
    grouped = re.findall(r"\bby \(([^)]*)\)", query)
    matched = re.findall(r"(\w+)=~?\"", query)
    return {label.strip() for one in grouped for label in one.split(",")} | set(matched)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_asked_for_is_counted_with_the_labels_it_is_asked_by(name: str) -> None:
    query = QUERIES[name]
    assert named(query)
    for metric in named(query):
        assert metric in DECLARED
        own = labels_in(query) - OF_TARGETS
        # parts that are joined by `or` may group by labels of their own
        if " or " not in query:
            assert own <= set(DECLARED[metric])


@pytest.mark.parametrize("alert", monitoring.ALERTS, ids=lambda one: one.name)
def test_what_an_alert_says_names_labels_that_it_has(alert: monitoring.Alert) -> None:
    told = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.help))
    grouped = labels_in(alert.expression)
    assert told <= (grouped or {"exception"})
    assert alert.severity in {monitoring.CRITICAL, monitoring.WARNING, monitoring.INFO}


def test_panels_have_ids_of_their_own_and_do_not_lie_on_each_other() -> None:
    panels = monitoring.dashboard()["panels"]
    assert [one["id"] for one in panels] == list(range(1, len(panels) + 1))
    taken: set[tuple[int, int]] = set()
    for one in panels:
        place = one["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells
    assert json.loads(monitoring.dashboard_file()["kpolicy.json"]) == monitoring.dashboard()


def series(name: str, values: str) -> dict[str, str]:
    return {"series": name, "values": values}


LEADS = series('kpolicy_leading{instance="a"}', "0x60")
TESTS: dict[str, tuple[list[dict[str, str]], str, dict[str, str]]] = {
    "KpolicyAbsent": ([LEADS], "6m", {}),
    "KpolicyNoLeader": ([LEADS, series('kpolicy_leading{instance="b"}', "0x60")], "3m", {}),
    "KpolicyReviewsUndecided": (
        [series('kpolicy_reviews_refused_total{reason="overload"}', "0+6x60")],
        "11m",
        {"reason": "overload"},
    ),
    "KpolicyReviewsSlow": (
        [
            series(
                f'kyverno_admission_review_duration_seconds_bucket{{le="{bound}"}}', f"0+{more}x60"
            )
            for bound, more in (("1.0", 1), ("2.5", 60), ("+Inf", 60))
        ],
        "16m",
        {},
    ),
    "KpolicyCertificateEnds": (
        [
            series(
                'kpolicy_certificate_expiry_timestamp_seconds{certificate="webhook"}', "600000x60"
            )
        ],
        "11m",
        {},
    ),
    "KpolicyPolicyErrs": (
        [
            series(
                'kyverno_validating_policy_results_total{policy_name="team",result="error"}',
                "0+1x60",
            )
        ],
        "31m",
        {"policy_name": "team"},
    ),
    "KpolicyAuditRegressed": (
        [series("kpolicy_audit_regressions_total", "0 0 1 1 1 1 1")],
        "5m",
        {},
    ),
}


@needs_promtool
@pytest.mark.parametrize("is_wrong", [True, False])
def test_alerts_fire_when_something_is_wrong_and_not_otherwise(
    tmp_path: Path, is_wrong: bool
) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(monitoring.alert_rules()))
    said = {one.name: (one.severity, one.summary, one.help) for one in monitoring.ALERTS}
    tests: list[dict[str, Any]] = []
    fine = [
        series('kyverno_info{version="1"}', "1x60"),
        series('kpolicy_leading{instance="a"}', "1x60"),
        series('kpolicy_reviews_refused_total{reason="overload"}', "7x60"),
        series(
            'kpolicy_certificate_expiry_timestamp_seconds{certificate="webhook"}', "99999999x60"
        ),
        series("kpolicy_audit_regressions_total", "1x60"),
    ]
    for name, (input_series, at, labels) in TESTS.items():
        severity, summary, help_ = said[name]
        shown = summary
        for key, value in labels.items():
            shown = shown.replace(f"{{{{ $labels.{key} }}}}", value)
        expected = {
            "exp_labels": {"severity": severity, **labels},
            "exp_annotations": {"summary": shown, "description": help_},
        }
        case = {"eval_time": at, "alertname": name, "exp_alerts": [expected] if is_wrong else []}
        given = input_series if is_wrong else fine
        tests.append({"interval": "1m", "input_series": given, "alert_rule_test": [case]})
    (tmp_path / "tests.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests})
    )
    done = subprocess.run(
        ["promtool", "test", "rules", "tests.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
