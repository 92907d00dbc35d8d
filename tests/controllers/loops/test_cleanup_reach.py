"""Conditions of a CleanupPolicy ask about its own namespace only (row A-25)."""

from __future__ import annotations

from datetime import UTC, datetime

from engine.cleanup.plan import Decision, compile_cleanup, plan
from engine.errors import NOWHERE
from engine.evaluate import Answer, Inputs
from engine.evaluate.asking import conclude
from engine.parse import parse_cleanup_policy

SPEC = {
    "schedule": "* * * * *",
    "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
    "context": [
        {
            "name": "found",
            "configMap": {"name": "settings", "namespace": "{{ target.metadata.labels.place }}"},
        }
    ],
    "conditions": {"all": [{"key": "{{ found.data.a }}", "operator": "Equals", "value": "x"}]},
}


def decided(place: str, kind: str, **metadata: str) -> Decision:
    """Return what becomes of a Pod with a label, where every question has the same ConfigMap as its answer."""
    document = {"apiVersion": "kyverno.io/v2", "kind": kind, "metadata": metadata, "spec": SPEC}
    cleanup = compile_cleanup(parse_cleanup_policy(document, at=NOWHERE))
    target = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "dev", "labels": {"place": place}}}  # fmt: skip
    asking = plan(cleanup, [target], Inputs(now=datetime(2026, 1, 1, tzinfo=UTC)))
    answer = Answer.found({"data": {"a": "x"}})
    [decision] = conclude(asking, lambda lookups: dict.fromkeys(lookups, answer)).decisions
    return decision


def test_a_cleanup_policy_reads_its_own_namespace() -> None:
    assert decided("dev", "CleanupPolicy", name="c", namespace="dev").goes


def test_a_label_of_the_target_does_not_lead_elsewhere() -> None:
    found = decided("ops", "CleanupPolicy", name="c", namespace="dev")
    assert not found.goes
    assert "a policy of namespace `dev` may not read" in found.reason


def test_a_cluster_cleanup_policy_reads_anywhere() -> None:
    assert decided("ops", "ClusterCleanupPolicy", name="c").goes
