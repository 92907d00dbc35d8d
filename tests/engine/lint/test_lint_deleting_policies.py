"""Deleting policies that admission refuses or warns of (rows CP-31, CP-35)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint.deleting import lint_deleting
from engine.parse.celpolicies import parse_cel_policy

PODS = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
PATH = "spec.matchConstraints.resourceRules[0]"


def said(kind: str = "DeletingPolicy", rule: Any = PODS, **spec: Any) -> list[str]:
    constraints = {"resourceRules": [rule]} if rule else {}
    document = {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": kind,
        "metadata": {"name": "d", "namespace": "n"},
        "spec": {"schedule": "*/5 * * * *", "matchConstraints": constraints, **spec},
    }
    found = lint_deleting(parse_cel_policy(document))
    return [f"{item.severity}: {item}" for item in found]


@pytest.mark.parametrize("kind", ["DeletingPolicy", "NamespacedDeletingPolicy"])
def test_a_plain_one_has_no_findings(kind: str) -> None:
    assert said(kind) == []
    variables = [{"name": "v", "expression": "object.metadata.name"}]
    conditions = [{"name": "c", "expression": "variables.v == 'a'"}]
    assert said(kind, variables=variables, conditions=conditions) == []


@pytest.mark.parametrize("kind", ["DeletingPolicy", "NamespacedDeletingPolicy"])
def test_what_upstream_refuses_is_refused_of_both_kinds(kind: str) -> None:
    assert said(kind, rule=None) == [
        "error: spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"
    ]
    assert said(kind, schedule="") == ["error: spec.schedule: Required value: schedule is required"]
    [text] = said(kind, schedule="soon")
    assert 'spec.schedule: Invalid value: "soon"' in text
    assert "schedule spec in the deletingPolicy is not in proper cron format: " in text


def test_conditions_are_compiled() -> None:
    [text] = said(conditions=[{"name": "c", "expression": "object."}])
    assert text.startswith("error: spec.conditions[0].expression")
    [text] = said(conditions=[{"name": "c", "expression": "nobody.x == 1"}])[:1]
    assert text.startswith("error: spec.conditions[0].expression")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resources", ["*"]),
        ("apiGroups", ["*"]),
        ("apiVersions", ["*"]),
        ("resources", ["pods/log"]),
    ],
)
def test_what_never_deletes_anything_is_warned_of(field: str, value: list[str]) -> None:
    found = said(rule={**PODS, field: value})
    assert [one.split(":")[0] for one in found] == ["warning"]
    assert f"{PATH}.{field}" in found[0]


@pytest.mark.parametrize(
    ("group", "resource", "kind", "refused"),
    [
        ("kpolicy.io", "grants", "DeletingPolicy", True),
        ("kyverno.io", "updaterequests", "DeletingPolicy", True),
        ("kyverno.io", "clusterpolicies", "DeletingPolicy", False),
        ("kyverno.io", "policyexceptions", "NamespacedDeletingPolicy", True),
        ("", "namespaces", "NamespacedDeletingPolicy", True),
        ("", "namespaces", "DeletingPolicy", False),
        ("rbac.authorization.k8s.io", "clusterroles", "NamespacedDeletingPolicy", True),
        ("rbac.authorization.k8s.io", "roles", "NamespacedDeletingPolicy", False),
    ],
)
def test_what_is_out_of_reach_is_refused(group: str, resource: str, kind: str, refused: bool) -> None:  # fmt: skip
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}
    found = said(kind, rule=rule)
    assert any("error" in one and "Forbidden" in one for one in found) is refused
