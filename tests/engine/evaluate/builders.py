"""Small policies and objects for tests of whole evaluations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from engine.errors import NOWHERE
from engine.evaluate import Answer, Evaluation, Inputs, Lookup, PolicySet, evaluate
from engine.model import NOBODY, UserInfo, review_of
from engine.parse import parse_exception, parse_policy

NOW = datetime(2026, 11, 21, 10, 18, tzinfo=UTC)


def policy(*rules: dict[str, Any], name: str = "p", namespace: str = "", **spec: Any) -> Any:
    """Return a parsed policy; rules match ConfigMaps unless they say otherwise."""
    match = {"any": [{"resources": {"kinds": ["ConfigMap"]}}]}
    document = {
        "apiVersion": "kyverno.io/v1",
        "kind": "Policy" if namespace else "ClusterPolicy",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"rules": [{"match": match, **rule} for rule in rules], **spec},
    }
    return parse_policy(document, at=NOWHERE)


def exception(*rules: str, policy_name: str = "p", name: str = "e", **more: Any) -> Any:
    """Return a parsed exception for ConfigMaps; `annotations` and `labels` go into its metadata."""
    metadata = {"name": name, "namespace": "dev"}
    for key in ("annotations", "labels", "creationTimestamp"):
        if key in more:
            metadata[key] = more.pop(key)
    document = {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": metadata,
        "spec": {
            "exceptions": [{"policyName": policy_name, "ruleNames": list(rules)}],
            "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
            **more,
        },
    }
    return parse_exception(document, at=NOWHERE)


def config_map(**data: Any) -> dict[str, Any]:
    """Return a ConfigMap `dev/c` with `data`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "dev"},
        "data": data,
    }


def decide(
    policies: Any,
    obj: dict[str, Any],
    *,
    exceptions: Any = (),
    user: UserInfo = NOBODY,
    answers: dict[Lookup, Answer] | None = None,
    now: datetime = NOW,
    trace: bool = False,
    **review: Any,
) -> Evaluation:
    """Evaluate `policies` (one or a list) on `obj`."""
    listed = policies if isinstance(policies, list) else [policies]
    compiled = PolicySet.compile(listed, exceptions)
    assert not compiled.problems, compiled.problems
    inputs = Inputs(now=now, answers=answers or {})
    return evaluate(compiled, review_of(obj, user=user, **review), inputs, trace=trace)


def deny(name: str = "r", **more: Any) -> dict[str, Any]:
    """Return a rule that always fails."""
    return {"name": name, "validate": {"message": f"no {name}", "deny": {}}, **more}
