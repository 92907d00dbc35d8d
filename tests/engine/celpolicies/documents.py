"""Small policies written in CEL, their exceptions and bindings, and one way to put objects before them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.evaluate import Evaluation, Inputs, PolicySet, evaluate
from engine.model import review_of
from engine.parse.celpolicies import parse_binding, parse_cel_exception, parse_cel_policy

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)
KUBERNETES = "admissionregistration.k8s.io/v1"
KYVERNO = "policies.kyverno.io/v1"


def rule(*resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    """Return a resource rule for CREATE and UPDATE of v1 of a group."""
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": list(resources),
        **more,
    }


def document(api_version: str, kind: str, name: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    """Return a document."""
    head = {"apiVersion": api_version, "kind": kind}
    return {**head, "metadata": {"name": name, **metadata}, "spec": spec}


def validating(expression: str = "false", *, namespace: str = "", **spec: Any) -> Any:
    """Return a ValidatingPolicy for ConfigMaps, or a namespaced one."""
    kind = "NamespacedValidatingPolicy" if namespace else "ValidatingPolicy"
    body = {
        "matchConstraints": {"resourceRules": [rule("configmaps")]},
        "validations": [{"expression": expression, "message": "no"}],
        **spec,
    }
    place = {"namespace": namespace} if namespace else {}
    return parse_cel_policy(document(KYVERNO, kind, "p", body, **place))


def exception(**spec: Any) -> Any:
    """Return an exception for the ValidatingPolicy `p`; `annotations` and `labels` go into its metadata."""
    marks = {name: spec.pop(name, {}) for name in ("annotations", "labels")}
    metadata = {"namespace": "ops", **marks}
    body = {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}], **spec}
    return parse_cel_exception(document(KYVERNO, "PolicyException", "e", body, **metadata))


def admission(kind: str = "ValidatingAdmissionPolicy", **spec: Any) -> Any:
    """Return a native policy `p` for ConfigMaps."""
    body = {"matchConstraints": {"resourceRules": [rule("configmaps")]}, **spec}
    return parse_cel_policy(document(KUBERNETES, kind, "p", body))


def binding(kind: str = "ValidatingAdmissionPolicyBinding", **spec: Any) -> Any:
    """Return a binding of the native policy `p`."""
    return parse_binding(document(KUBERNETES, kind, "b", {"policyName": "p", **spec}))


def config_map(name: str = "c", *, labels: Any = None, **data: Any) -> dict[str, Any]:
    """Return a ConfigMap in namespace `dev`."""
    metadata = {"name": name, "namespace": "dev", **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def pod(image: str = "good", **labels: str) -> dict[str, Any]:
    """Return a Pod in namespace `dev` with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "dev", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": image}]},
    }


def decide(
    policy: Any,
    obj: Any,
    *,
    exceptions: Any = (),
    bindings: Any = (),
    answers: Any = None,
    now: datetime = NOW,
    trace: bool = False,
    **review: Any,
) -> Evaluation:
    """Evaluate one policy on one object."""
    compiled = PolicySet.compile([policy], exceptions, bindings)
    assert not compiled.problems, compiled.problems
    inputs = Inputs(now=now, answers=answers or {})
    return evaluate(compiled, review_of(obj, **review), inputs, trace=trace)


def statuses(*given: Any, **more: Any) -> list[str]:
    """Return the statuses of `decide`."""
    return [str(result.status) for result in decide(*given, **more).results]
