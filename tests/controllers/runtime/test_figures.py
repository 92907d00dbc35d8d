"""Figures: each that is declared is counted somewhere, under upstream's names, for every kind of policy."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import controllers
from controllers.kube import connect
from controllers.kube.access import Access
from controllers.kube.kinds import PODS
from controllers.runtime import metrics as tables
from controllers.runtime.figures import (
    ADMISSION,
    SCAN,
    count_problems,
    count_queries,
    count_scanned,
    series_of,
    show_process,
)
from controllers.runtime.metrics import CEL_EXECUTION, CEL_RESULTS, EXECUTION, RESULTS, Metrics
from engine.model import Review, RuleResult, RuleType, Status

PLACE = ("Pod", "shop", "create")
DERIVED = {RESULTS, EXECUTION, *CEL_RESULTS.values(), *CEL_EXECUTION.values()}


def said(metrics: Metrics) -> dict[Any, float]:
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (one.name, tuple(sorted(one.labels.items(), key=str))): one.value
        for family in families
        for one in family.samples
    }


def result(kind: str = "ClusterPolicy", policy: str = "team", **more: Any) -> RuleResult:
    fields = {"type": RuleType.VALIDATION, "status": Status.FAIL, "policy_kind": kind, **more}
    return RuleResult(policy=policy, rule="r", **fields)


def test_every_figure_that_is_declared_is_counted_somewhere() -> None:
    root = Path(controllers.__file__).parent
    texts: set[str] = set()
    for path in root.rglob("*.py"):
        if path != Path(tables.__file__) and "sandbox" not in path.parts:
            nodes = ast.walk(ast.parse(path.read_text()))
            texts |= {
                one.value
                for one in nodes
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            }
    declared = {*tables.COUNTERS, *tables.HISTOGRAMS, *tables.GAUGES}
    assert declared - texts - DERIVED == set()


@pytest.mark.parametrize(
    ("kind", "policy", "cause", "expected"),
    [
        (
            "ClusterPolicy",
            "team",
            ADMISSION,
            (
                "kyverno_policy_results",
                (
                    "team",
                    "-",
                    "cluster",
                    "audit",
                    "true",
                    "r",
                    "Validation",
                    "fail",
                    "admission_request",
                    *PLACE,
                ),
            ),
        ),
        (
            "Policy",
            "shop/team",
            SCAN,
            (
                "kyverno_policy_results",
                (
                    "team",
                    "shop",
                    "namespaced",
                    "audit",
                    "true",
                    "r",
                    "Validation",
                    "fail",
                    "background_scan",
                    *PLACE,
                ),
            ),
        ),
        (
            "ValidatingPolicy",
            "team",
            ADMISSION,
            (
                "kyverno_validating_policy_results",
                ("team", "", "true", "Audit", *PLACE, "admission_request", "fail"),
            ),
        ),
        (
            "NamespacedValidatingPolicy",
            "shop/team",
            SCAN,
            (
                "kyverno_validating_policy_results",
                ("team", "shop", "true", "Audit", *PLACE, "background_scan", "fail"),
            ),
        ),
        (
            "MutatingPolicy",
            "team",
            ADMISSION,
            (
                "kyverno_mutating_policy_results",
                ("team", "", "true", "Audit", *PLACE, "admission_request", "fail"),
            ),
        ),
        (
            "ImageValidatingPolicy",
            "team",
            ADMISSION,
            (
                "kyverno_image_validating_policy_results",
                ("team", "", "true", "Audit", *PLACE, "admission_request", "fail"),
            ),
        ),
        (
            "GeneratingPolicy",
            "team",
            ADMISSION,
            ("kyverno_generating_policy_results", ("team", "", *PLACE, "background_scan", "fail")),
        ),
    ],
)
def test_a_result_is_counted_under_upstreams_name_for_its_kind(
    kind: str, policy: str, cause: str, expected: Any
) -> None:
    counter, histogram, labels = series_of(result(kind, policy), PLACE, cause)
    assert (counter, labels) == expected
    assert len(labels) == len(tables.COUNTERS[counter]) == len(tables.HISTOGRAMS[histogram])
    assert histogram == counter.replace("_results", "_execution_duration_seconds")


def test_a_scan_counts_our_results_and_not_those_of_the_api_servers_own_policies() -> None:
    metrics = Metrics()
    review = Review(kind="Pod", operation="CREATE", object={"metadata": {"namespace": "shop"}})
    count_scanned(metrics, review, [result(), result("ValidatingAdmissionPolicy")])
    counted = {name for name, _ in said(metrics)}
    assert "kyverno_policy_results_total" in counted
    assert [
        value
        for (name, _), value in said(metrics).items()
        if name == "kyverno_policy_results_total"
    ] == [1]


def test_gauges_of_workers_are_shown_beside_those_of_their_parent_and_added_up() -> None:
    def with_tasks(process: str, tasks: float) -> Metrics:
        made = Metrics()
        made.gauge("kpolicy_process_tasks", lambda: [((process,), tasks)])
        return made

    parent = with_tasks("parent", 5)
    parent.show("worker 0", with_tasks("worker", 7).dump())
    parent.show("worker 1", with_tasks("worker", 8).dump())
    found = said(parent)
    assert found["kpolicy_process_tasks", (("process", "parent"),)] == 5
    assert found["kpolicy_process_tasks", (("process", "worker"),)] == 15


def test_a_process_tells_what_it_takes() -> None:
    async def go() -> dict[Any, float]:
        metrics = Metrics()
        show_process(metrics, "parent")
        return said(metrics)

    found = {name: value for (name, _), value in asyncio.run(go()).items()}
    assert found["kpolicy_process_resident_memory_bytes"] > 10_000_000
    assert found["kpolicy_process_open_files"] >= 3
    assert found["kpolicy_process_tasks"] == 1


def test_questions_to_the_api_server_are_counted_and_problems_of_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answered(*_: Any, **__: Any) -> bytes:
        return b'{"items": []}'

    async def go(metrics: Metrics) -> None:
        client = connect(Access("https://127.0.0.1:1"))
        monkeypatch.setattr(client._transport, "send", answered)
        count_queries(metrics, client)
        await client.get(PODS, "a", "shop")
        await client.list(PODS)
        await client.delete(PODS, "a", "shop")

    metrics = Metrics()
    asyncio.run(go(metrics))
    for operation, namespace in (("get", "shop"), ("list", "-"), ("delete", "shop")):
        assert (
            metrics.value("kyverno_client_queries", (operation, "dynamic", "Pod", namespace)) == 1
        )

    told: list[str] = []
    tell = count_problems(metrics, lambda _, problem: told.append(problem))
    for problem in ("gone", "", "gone"):
        tell(PODS, problem)
    assert metrics.value("kpolicy_watch_problems", ("", "pods")) == 2
    assert told == ["gone", "", "gone"]
