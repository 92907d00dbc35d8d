"""What lint says of rules that name what is out of their policy's reach."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lint import lint_cleanup, lint_policy
from engine.parse import parse_cleanup_policy, parse_policy

VENDOR = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "name": "of-a-vendor"}  # fmt: skip
GRANT = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "name": "x", "namespace": "team"}
EXCEPTION = {"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "name": "x", "namespace": "team"}  # fmt: skip
CEL_EXCEPTION = {**EXCEPTION, "apiVersion": "policies.kyverno.io/v1"}
OURS = {**VENDOR, "name": "kyverno-resource-validating-webhook-cfg"}
NODE = {"apiVersion": "v1", "kind": "Node", "name": "x", "namespace": "team"}


def errors(kind: str, rule: dict[str, Any], severity: str = "error") -> list[str]:
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    metadata = {"name": "p", **({"namespace": "team"} if kind == "Policy" else {})}
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"background": False, "rules": [{"name": "r", "match": match, **rule}]},
    }
    return [one.message for one in lint_policy(parse_policy(document)) if one.severity == severity]


def changing(target: dict[str, Any]) -> dict[str, Any]:
    return {"mutate": {"targets": [target], "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}  # fmt: skip


def generating(obj: dict[str, Any]) -> dict[str, Any]:
    return {"generate": {**obj, "data": {}}}


def looping(obj: dict[str, Any]) -> dict[str, Any]:
    return {"generate": {"foreach": [{"list": "request.object.data", **obj, "data": {}}]}}


def listing(obj: dict[str, Any]) -> dict[str, Any]:
    return {"generate": {"namespace": "team", "cloneList": {"namespace": "team", "kinds": [f"{obj['apiVersion']}/{obj['kind']}"]}}}  # fmt: skip


@pytest.mark.parametrize("way", [changing, generating, looping, listing])
@pytest.mark.parametrize("obj", [VENDOR, GRANT, EXCEPTION, CEL_EXCEPTION, NODE])
def test_a_namespaced_policy_is_refused_what_is_no_matter_of_its_namespace(
    way: Any, obj: dict[str, Any]
) -> None:
    found = errors("Policy", way({**obj, "namespace": "team"}))

    assert any("a policy of namespace `team` may not" in one or "no policy may" in one for one in found), found  # fmt: skip


@pytest.mark.parametrize("way", [changing, generating, looping, listing])
def test_every_policy_is_refused_our_own_kinds(way: Any) -> None:
    found = errors("ClusterPolicy", way(GRANT))

    assert any("no policy may" in one and "objects of kpolicy.io" in one for one in found), found


@pytest.mark.parametrize("way", [changing, generating, looping])
def test_every_policy_is_refused_our_own_guards(way: Any) -> None:
    found = errors("ClusterPolicy", way(OURS))

    assert any("which guards what people decide" in one for one in found), found


@pytest.mark.parametrize("way", [changing, generating, looping, listing])
@pytest.mark.parametrize("obj", [VENDOR, EXCEPTION, CEL_EXCEPTION, NODE])
def test_a_policy_of_the_cluster_is_not(way: Any, obj: dict[str, Any]) -> None:
    assert not [one for one in errors("ClusterPolicy", way(obj)) if "may not" in one]


def test_what_a_variable_decides_is_for_whoever_carries_it_out() -> None:
    target = {"apiVersion": "{{ request.object.data.v }}", "kind": "{{ request.object.data.k }}", "namespace": "team", "name": "x"}  # fmt: skip
    assert not [one for one in errors("Policy", changing(target)) if "may not" in one]


@pytest.mark.parametrize(
    ("kind", "rule", "warned"),
    [
        ("Policy", {"match": {"any": [{"resources": {"kinds": ["kyverno.io/v2/PolicyException"]}}]}, "validate": {"message": "m", "deny": {}}}, True),
        ("ClusterPolicy", {"match": {"any": [{"resources": {"kinds": ["kyverno.io/v2/PolicyException"]}}]}, "validate": {"message": "m", "deny": {}}}, False),
        ("ClusterPolicy", {"match": {"any": [{"resources": {"kinds": ["kpolicy.io/*/Grant"]}}]}, "mutate": {"patchStrategicMerge": {"a": "b"}}}, True),
        ("ClusterPolicy", {"match": {"any": [{"resources": {"kinds": ["kpolicy.io/*/Grant"]}}]}, "validate": {"message": "m", "deny": {}}}, False),
    ],
)  # fmt: skip
def test_a_rule_that_will_never_apply_is_warned_of(
    kind: str, rule: dict[str, Any], warned: bool
) -> None:
    assert any("out of the reach" in one for one in errors(kind, rule, "warning")) is warned


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/api/v1/namespaces/team/configmaps", False),
        ("/api/v1/namespaces/team/configmaps/{{ request.object.metadata.name }}", False),
        ("/api/v1/namespaces/team", False),
        ("/api/v1/namespaces/other/configmaps?x=/namespaces/team/", True),
        ("/api/v1/namespaces/other/services/x/proxy/namespaces/team/", True),
        ("/apis/kyverno.io/v2/namespaces/team/policyexceptions", True),
        ("/apis/kpolicy.io/v1alpha1/namespaces/team/grants", True),
        ("{{ request.object.data.path }}/namespaces/team/", True),
    ],
)
def test_a_call_of_a_namespaced_policy_lies_in_its_namespace_as_the_server_reads_it(
    path: str, refused: bool
) -> None:
    rule = {"context": [{"name": "c", "apiCall": {"urlPath": path}}], "validate": {"message": "m", "deny": {}}}  # fmt: skip
    found = [one for one in errors("Policy", rule) if "must lie in" in one]

    assert bool(found) is refused


@pytest.mark.parametrize(
    ("kind", "text", "refused"),
    [
        ("CleanupPolicy", "kyverno.io/*/PolicyException", True),
        ("CleanupPolicy", "kyverno.io/*/Policy", True),
        ("CleanupPolicy", "kpolicy.io/*/Grant", True),
        ("CleanupPolicy", "Pod", False),
        ("CleanupPolicy", "*", False),
        ("ClusterCleanupPolicy", "kpolicy.io/*/Grant", True),
        ("ClusterCleanupPolicy", "kyverno.io/*/PolicyException", False),
        ("ClusterCleanupPolicy", "kyverno.io/*/UpdateRequest", True),
    ],
)
def test_a_clean_up_of_what_is_never_cleaned_up_is_refused(
    kind: str, text: str, refused: bool
) -> None:
    metadata = {"name": "p", **({"namespace": "team"} if kind == "CleanupPolicy" else {})}
    spec = {"schedule": "* * * * *", "match": {"any": [{"resources": {"kinds": [text]}}]}}
    document = {"apiVersion": "kyverno.io/v2", "kind": kind, "metadata": metadata, "spec": spec}
    found = [one for one in lint_cleanup(parse_cleanup_policy(document)) if "may" in one.message]

    assert bool(found) is refused
