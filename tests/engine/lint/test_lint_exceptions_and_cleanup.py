"""Exceptions and cleanup policies that admission refuses or warns of."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint import lint_cleanup, lint_exception
from engine.parse import parse_cleanup_policy, parse_exception

PODS = {"any": [{"resources": {"kinds": ["Pod"]}}]}
BY_USER = {
    "any": [{"resources": {"kinds": ["Pod"]}, "subjects": [{"kind": "User", "name": "jane"}]}]
}


def exception(
    version: str = "v2", metadata: dict[str, Any] | None = None, **spec: Any
) -> list[str]:
    doc = {
        "apiVersion": f"kyverno.io/{version}",
        "kind": "PolicyException",
        "metadata": {"name": "e", "namespace": "n"} | (metadata or {}),
        "spec": {"exceptions": [{"policyName": "p", "ruleNames": ["r"]}], "match": PODS} | spec,
    }
    return [f"{item.severity}: {item}" for item in lint_exception(parse_exception(doc))]


def cleanup(kind: str = "ClusterCleanupPolicy", **spec: Any) -> list[str]:
    doc = {
        "apiVersion": "kyverno.io/v2",
        "kind": kind,
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"schedule": "*/5 * * * *", "match": PODS} | spec,
    }
    return [f"{item.severity}: {item}" for item in lint_cleanup(parse_cleanup_policy(doc))]


def test_plain_ones_have_no_findings() -> None:
    assert exception() == []
    assert cleanup() == []


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_user_filters_need_background_off(version: str) -> None:
    assert exception(version, match=BY_USER) == [
        "error: spec.match.any[0].subjects: Forbidden: Usage of user info is forbidden"
    ]
    assert exception(version, match=BY_USER, background=False) == []


def test_the_oldest_version_is_only_warned_of_user_filters() -> None:
    said = exception("v2alpha1", match=BY_USER)

    assert len(said) == 1
    assert said[0].startswith("warning: spec.match: background scans know no requester")
    assert exception("v2alpha1", match=BY_USER, background=False) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"exceptions": []}, "error: spec.exceptions: Required value"),
        (
            {"exceptions": [{"policyName": "", "ruleNames": []}]},
            "error: spec.exceptions[0].policyName: Required value",
        ),
        ({"match": {}}, "warning: spec.match: an empty match covers nothing"),
        (
            {"match": {"any": PODS["any"], "all": PODS["any"]}},
            "error: spec.match: Invalid value: Can't specify any and all",
        ),
        (
            {"match": {"any": [{"resources": {"kinds": ["Pod"], "selector": {}}}]}},
            "error: spec.match.any[0].selector: Invalid value: {}",
        ),
        (
            {"conditions": {"any": [{"key": "a", "operator": "equals", "value": "a"}]}},
            "error: spec.conditions.any[0]: entered value of `operator`",
        ),
        (
            {"podSecurity": [{"controlName": "Capabilities"}]},
            "error: spec.podSecurity[0].controlName: Invalid value",
        ),
    ],
)
def test_exceptions_that_cannot_work(spec: dict[str, Any], expected: str) -> None:
    said = exception(**spec)

    assert any(text.startswith(expected) for text in said), said


def test_an_expiry_must_be_an_instant() -> None:
    key = "kpolicy.io/expires-at"

    assert exception(metadata={"annotations": {key: "2026-01-01T00:00:00Z"}}) == []
    assert exception(metadata={"annotations": {key: "soon"}}) == [
        f'error: metadata.annotations.{key}: Invalid value: "soon": must be an instant as in RFC 3339, with a time zone'
    ]


def test_a_ttl_that_cannot_be_read_is_warned_of() -> None:
    key = "cleanup.kyverno.io/ttl"

    assert exception(metadata={"labels": {key: "2h"}}) == []
    assert exception(metadata={"labels": {key: "soon"}})[0].startswith(
        f"warning: metadata.labels.{key}: "
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedule": "* * *"}, "error: spec.schedule: Invalid value"),
        (
            {"match": BY_USER},
            "error: spec.match.any[0].subjects: Forbidden: Usage of user info is forbidden",
        ),
        ({"exclude": BY_USER}, "error: spec.exclude.any[0].subjects: Forbidden"),
        (
            {"match": {"any": [{"resources": {"names": ["x"]}}]}},
            "error: spec.match.any[0]: at least one element",
        ),
        ({"match": {}}, "error: spec.match.resources: match resources not specified"),
        (
            {"context": [{"name": "x", "configMap": {"name": "c"}}]},
            "error: spec.context[0].configMap: Forbidden",
        ),
        (
            {"context": [{"name": "x", "imageRegistry": {"reference": "r"}}]},
            "error: spec.context[0].imageRegistry: Forbidden",
        ),
        (
            {"conditions": {"any": [{"key": "a"}]}},
            "error: spec.conditions.any[0]: entered value of `key`",
        ),
    ],
)
def test_cleanup_policies_that_cannot_work(spec: dict[str, Any], expected: str) -> None:
    said = cleanup(**spec)

    assert any(text.startswith(expected) for text in said), said


def test_a_namespaced_cleanup_policy_stays_in_its_namespace() -> None:
    filtered = {"any": [{"resources": {"kinds": ["Pod"], "namespaces": ["x"]}}]}
    cluster = {"any": [{"resources": {"kinds": ["Namespace"]}}]}

    assert cleanup(match=filtered) == []
    assert cleanup(match=cluster) == []
    assert "Filtering namespaces not allowed" in cleanup("CleanupPolicy", match=filtered)[0]
    assert "cluster-scoped kind `Namespace`" in cleanup("CleanupPolicy", match=cluster)[0]
    assert "Filtering namespaces not allowed" in cleanup("CleanupPolicy", exclude=filtered)[0]
