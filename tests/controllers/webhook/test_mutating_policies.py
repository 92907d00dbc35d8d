"""MutatingPolicies in the webhook: patches, denials, webhooks asked for, checks of the policies and of their authors."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import orjson
import pytest

from controllers.kube import Discovery
from controllers.kube.kinds import CONFIG_MAPS, PODS
from controllers.runtime.configuration import read_configuration
from controllers.runtime.policy_cache import PolicyCache
from controllers.webhook.address import Address
from controllers.webhook.author_needs import needs_of_author
from controllers.webhook.configurations import configurations
from engine.lint import lint_cel_policy
from engine.parse.celpolicies import parse_cel_policy
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

from .staging import body, pod, staged

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
TARGET = {**RULE, "resources": ["configmaps"]}
SEEN = "Object{metadata: Object.metadata{labels: Object.metadata.labels{seen: 'yes'}}}"


def mpol(expression: str = SEEN, *, namespace: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "seen", **({"namespace": namespace} if namespace else {})}
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedMutatingPolicy" if namespace else "MutatingPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {"resourceRules": [RULE]},
            "mutations": [mutation],
            "autogen": {"podControllers": {"controllers": []}},
            **spec,
        },
    }


def answer(*objects: dict[str, Any], route: str = "fail/mpol") -> dict[str, Any]:
    async def go() -> dict[str, Any]:
        async with staged(*objects) as stage:
            return await stage.ask("mutate", body(pod()), route)

    return asyncio.run(go())


def test_the_patch_is_answered() -> None:
    response = answer(mpol())

    patch = orjson.loads(base64.b64decode(response["patch"]))
    assert response["allowed"] is True
    assert [(one["op"], one["path"]) for one in patch] == [("add", "/metadata/labels")]
    assert patch[0]["value"]["seen"] == "yes"


def test_an_error_denies_in_upstreams_words_where_the_policy_fails_closed() -> None:
    broken = "Object{metadata: Object.metadata{labels: {'x': object.spec.nothing}}}"
    response = answer(mpol(broken))

    assert response["allowed"] is False
    assert response["status"]["message"] == (
        "Resource: shop/web, Kind: Pod, Errors: "
        "[Policy seen: failed to evaluate policy: no such key: nothing]"
    )
    assert answer(mpol(broken, failurePolicy="Ignore"), route="ignore/mpol")["allowed"] is True


def test_a_policy_that_names_targets_leaves_the_request_alone() -> None:
    existing = {"mutateExisting": {"enabled": True}}
    targets = {"resourceRules": [TARGET]}

    response = answer(mpol(evaluation=existing, targetMatchConstraints=targets))
    assert response["allowed"] is True
    assert "patch" not in response


def webhooks(*objects: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    cache = PolicyCache()
    for obj in objects:
        cache.put_policy(obj)
    discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS))
    documents = configurations(
        cache.snapshot.routes, discovery, read_configuration(None), Address(b"CA")
    )
    return {
        (document["kind"][:6], one["name"]): one
        for document in documents
        if "kyverno-resource" in document["metadata"]["name"]
        for one in document["webhooks"]
    }


def test_each_kind_has_a_webhook_of_its_own_under_upstreams_name() -> None:
    found = webhooks(mpol(), mpol(namespace="shop"))

    assert sorted(found) == [
        ("Mutati", "mpol.validate.kyverno.svc-fail"),
        ("Mutati", "nmpol.validate.kyverno.svc-fail"),
    ]
    assert found["Mutati", "mpol.validate.kyverno.svc-fail"]["rules"] == [{**RULE, "scope": "*"}]


def test_a_policy_that_names_targets_has_the_webhook_of_its_kind_too() -> None:
    existing = {"mutateExisting": {"enabled": True}}
    found = webhooks(mpol(evaluation=existing, targetMatchConstraints={"resourceRules": [TARGET]}))

    assert found["Mutati", "mpol.validate.kyverno.svc-fail"]["rules"] == [{**RULE, "scope": "*"}]


def said(policy: dict[str, Any]) -> list[str]:
    found = lint_cel_policy(parse_cel_policy(policy))
    return [str(one) for one in found if one.severity == "error"]


def test_a_policy_that_does_nothing_is_refused_in_upstreams_words() -> None:
    off = {"admission": {"enabled": False}}
    assert said(mpol(evaluation=off)) == [
        "spec.evaluation: Forbidden: disabling both admission and mutateExisting evaluation modes is not allowed"
    ]
    assert said(mpol(evaluation={**off, "mutateExisting": {"enabled": True}})) == []
    assert said(mpol(matchConstraints={})) == [
        "spec.matchConstraints: Required value: a matchConstraints with at least one resource rule is required"
    ]


def needs(policy: dict[str, Any]) -> set[tuple[str, str, str]]:
    discovery = Discovery(FakeClient(), (*WELL_KNOWN, PODS, CONFIG_MAPS))
    found = needs_of_author(parse_cel_policy(policy), discovery)
    return {(one.request.verb, one.request.resource, one.request.namespace) for one in found}


def test_the_author_needs_what_the_policy_does_to_objects() -> None:
    existing = {"mutateExisting": {"enabled": True}}
    wide = mpol(evaluation=existing, targetMatchConstraints={"resourceRules": [TARGET]})

    assert needs(mpol()) == {("create", "pods", "")}
    assert needs(wide) == {
        ("get", "configmaps", ""), ("list", "configmaps", ""), ("update", "configmaps", ""),
        ("get", "pods", ""),
    }  # fmt: skip
    narrow = {
        **wide,
        "kind": "NamespacedMutatingPolicy",
        "metadata": {"name": "seen", "namespace": "shop"},
    }
    assert {namespace for _, _, namespace in needs(narrow)} == {"shop"}


@pytest.mark.parametrize(
    ("resource", "group", "verb"),
    [("clusterroles", "rbac.authorization.k8s.io", "escalate"), ("rolebindings", "rbac.authorization.k8s.io", "bind"), ("clusterpolicies", "kyverno.io", "*")],
)  # fmt: skip
def test_changing_what_gives_power_needs_that_power(resource: str, group: str, verb: str) -> None:
    target = {**TARGET, "apiGroups": [group], "resources": [resource]}
    policy = mpol(
        evaluation={"mutateExisting": {"enabled": True}},
        targetMatchConstraints={"resourceRules": [target]},
    )

    assert verb in {one[0] for one in needs(policy)}
