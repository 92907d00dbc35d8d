"""Conditions of a CleanupPolicy ask about its own namespace only (row A-25; security.md, C01)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from controllers.loops.cleanup.conditions import TargetConditions
from engine.errors import NOWHERE, EvaluationError
from engine.evaluate import Answer, Inputs
from engine.parse import parse_cleanup_policy
from tests.controllers.kube.apiserver import run

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


class Everything:
    """Answers every question with the same ConfigMap."""

    async def resolve(self, lookups):
        return {lookup: Answer.found({"data": {"a": "x"}}) for lookup in lookups}


def conditions(kind: str, **metadata: str) -> TargetConditions:
    document = {"apiVersion": "kyverno.io/v2", "kind": kind, "metadata": metadata, "spec": SPEC}
    policy = parse_cleanup_policy(document, at=NOWHERE)
    return TargetConditions(policy, Everything(), Inputs(now=datetime(2026, 1, 1, tzinfo=UTC)))


def target(place: str):
    return {"kind": "Pod", "metadata": {"name": "p", "labels": {"place": place}}}


def test_a_cleanup_policy_reads_its_own_namespace() -> None:
    made = conditions("CleanupPolicy", name="c", namespace="dev")

    assert run(made.hold(target("dev"))) is True


def test_a_label_of_the_target_does_not_lead_elsewhere() -> None:
    made = conditions("CleanupPolicy", name="c", namespace="dev")

    with pytest.raises(EvaluationError, match="a policy of namespace `dev` may not read"):
        run(made.hold(target("ops")))


def test_a_cluster_cleanup_policy_reads_anywhere() -> None:
    assert run(conditions("ClusterCleanupPolicy", name="c").hold(target("ops"))) is True
