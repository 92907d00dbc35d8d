"""Mutation at admission of what no policy, or no policy of a namespace, may touch: no patch, and a reason in the result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.evaluate import Inputs, PolicySet, evaluate
from engine.model import Status, review_of
from engine.parse import parse_policy

from .staging import body, mutating, patch_of, policy, staged

GRANTED = {"kpolicy.io/grant": "shop/hot-fix"}
CHANGE = {"patchStrategicMerge": {"metadata": {"annotations": {"changed": "yes"}}}}


def decided(verdict: str = "deny") -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": "Grant",
        "metadata": {"name": "hot-fix", "namespace": "shop"},
        "spec": {"decisions": [{"by": "alice", "verdict": verdict}]},
    }


def exception(version: str = "kyverno.io/v2", **annotations: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "shop", "annotations": annotations}
    return {"apiVersion": version, "kind": "PolicyException", "metadata": metadata, "spec": {}}


def changing(kind: str, mutate: dict[str, Any], *kinds: str) -> dict[str, Any]:
    made = mutating()
    made["kind"] = kind
    if kind == "Policy":
        made["metadata"]["namespace"] = "shop"
    made["spec"]["rules"] = [
        {"name": "change", "match": {"any": [{"resources": {"kinds": list(kinds)}}]}, "mutate": mutate}
    ]  # fmt: skip
    return made


APPROVING = {
    "foreach": [
        {
            "list": "request.object.spec.decisions",
            "patchesJson6902": "- {op: replace, path: '/spec/decisions/{{elementIndex}}/verdict', value: approve}",
        }
    ]
}


def response_of(made: dict[str, Any], obj: dict[str, Any], **fields: Any) -> dict[str, Any]:
    async def play() -> dict[str, Any]:
        async with staged(made) as stage:
            return await stage.ask("mutate", body(obj, **fields))

    return asyncio.run(play())


@pytest.mark.parametrize("kind", ["Policy", "ClusterPolicy"])
@pytest.mark.parametrize("kinds", [("kpolicy.io/v1alpha1/Grant",), ("Grant",), ("*",)])
def test_nobodys_decision_is_rewritten(kind: str, kinds: tuple[str, ...]) -> None:
    response = response_of(changing(kind, APPROVING, *kinds), decided(), operation="UPDATE", oldObject=decided())  # fmt: skip

    assert response["allowed"] is True
    assert "patch" not in response


@pytest.mark.parametrize(
    ("kind", "obj", "old"),
    [
        ("ClusterPolicy", exception(**GRANTED), None),
        ("ClusterPolicy", exception("policies.kyverno.io/v1", **GRANTED), None),
        ("ClusterPolicy", exception(), exception(**GRANTED)),
        ("ClusterPolicy", {**decided(), "kind": "AuditNote"}, None),
        ("Policy", exception(), None),
        ("Policy", exception("policies.kyverno.io/v1"), None),
        ("Policy", {**exception(), "kind": "CleanupPolicy"}, None),
    ],
)
@pytest.mark.parametrize("kinds", ["*", "PolicyException"])
@pytest.mark.parametrize(
    "mutate",
    [
        CHANGE,
        {"patchesJson6902": "- {op: add, path: /spec/more, value: yes}"},
        {"patchStrategicMerge": {"spec": {"more": "{{ request.object.metadata.name }}"}}},
    ],
)
def test_what_is_out_of_reach_gets_no_patch_even_where_a_review_of_it_comes(
    kind: str, obj: dict[str, Any], old: dict[str, Any] | None, kinds: str, mutate: dict[str, Any]
) -> None:
    operation = {"operation": "UPDATE", "oldObject": old} if old else {}
    response = response_of(changing(kind, mutate, kinds), obj, **operation)

    assert response["allowed"] is True
    assert "patch" not in response


def test_a_policy_of_the_cluster_changes_exceptions_without_a_grant() -> None:
    response = response_of(changing("ClusterPolicy", CHANGE, "PolicyException"), exception())

    assert patch_of(response) == [
        {"op": "add", "path": "/metadata/annotations/changed", "value": "yes"}
    ]


def test_no_policy_gives_an_exception_a_grant() -> None:
    giving = {"patchStrategicMerge": {"metadata": {"annotations": GRANTED}}}

    assert "patch" not in response_of(changing("ClusterPolicy", giving, "*"), exception())


def test_a_rule_that_is_kept_from_an_object_is_skipped_and_says_why() -> None:
    made = parse_policy(changing("ClusterPolicy", CHANGE, "PolicyException"))
    [result] = evaluate(PolicySet.compile([made]), review_of(exception(**GRANTED)), Inputs()).results  # fmt: skip

    assert result.status is Status.SKIP
    assert result.message == "rule is skipped: no policy may mutate an exception that carries a grant"  # fmt: skip


def test_a_policy_of_a_namespace_cannot_refuse_what_people_decide_there() -> None:
    made = policy()
    made["kind"], made["metadata"]["namespace"] = "Policy", "shop"
    made["spec"]["rules"][0]["match"] = {"any": [{"resources": {"kinds": ["*"]}}]}

    async def play() -> list[bool]:
        async with staged(made) as stage:
            reviews = (body(one) for one in (decided("approve"), exception(), {**exception(), "apiVersion": "v1", "kind": "ConfigMap"}))  # fmt: skip
            return [(await stage.ask("validate", one))["allowed"] for one in reviews]

    assert asyncio.run(play()) == [True, True, False]
