"""Webhook configurations: what upstream's end-to-end tests expect of them, and what keeps a cluster able to start."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.kube import Discovery, Kind
from controllers.runtime.configuration import read_configuration
from controllers.runtime.webhook_routes import build_routes
from controllers.store.policies import read_policy
from controllers.webhook.address import Address
from controllers.webhook.admission_rules import unknown_kinds
from controllers.webhook.configurations import RESOURCE_VALIDATING, configurations
from engine import vocabulary
from engine.evaluate import compile_policy
from kpolicy_sandbox.objects.defaults import with_defaults
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

EVERY = ["CONNECT", "CREATE", "DELETE", "UPDATE"]
KINDS = (
    Kind("apps", "v1", "deployments", "Deployment", subresources=("scale", "status")),
    Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Kind("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Kind("", "v1", "pods", "Pod", subresources=("exec", "log", "status")),
    Kind("events.k8s.io", "v1", "events", "Event"),
)


def discovery() -> Discovery:
    return Discovery(FakeClient(), dict.fromkeys((*KINDS, *WELL_KNOWN)))


def policy(*kinds: str, name: str = "p", operations: list[str] | None = None, does: str = "validate", **spec: Any) -> dict[str, Any]:  # fmt: skip
    resources: dict[str, Any] = {"kinds": list(kinds)}
    if operations:
        resources["operations"] = operations
    what = {
        "validate": {"message": "m", "pattern": {"metadata": {"labels": {"team": "?*"}}}},
        "mutate": {"patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}},
        "generate": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": "y", "synchronize": True, "data": {}},
    }  # fmt: skip
    rule = {"name": "r", "match": {"any": [{"resources": resources}]}, does: what[does]}
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": name, "annotations": {"pod-policies.kyverno.io/autogen-controllers": "none"}},
        "spec": {"background": False, "rules": [rule], **spec},
    }  # fmt: skip


def namespaced(made: dict[str, Any], namespace: str = "shop") -> dict[str, Any]:
    made["kind"] = "Policy"
    made["metadata"]["namespace"] = namespace
    return made


def made(*policies: dict[str, Any], settings: dict[str, str] | None = None, url: str = "") -> dict[str, dict[str, Any]]:  # fmt: skip
    routes = build_routes([compile_policy(read_policy(one)) for one in policies])
    config_map = None if settings is None else {"data": settings}
    documents = configurations(
        routes, discovery(), read_configuration(config_map), Address(b"CA", url=url)
    )
    return {one["metadata"]["name"]: one for one in documents}


def rules_of(*policies: dict[str, Any], stage: str = "validating") -> list[dict[str, Any]]:
    webhooks = made(*policies)[f"kyverno-resource-{stage}-webhook-cfg"]["webhooks"]
    return webhooks[0]["rules"] if webhooks else []


def rule(groups: str, resources: list[str], scope: str = "Namespaced", operations: list[str] = EVERY, version: str = "v1") -> dict[str, Any]:  # fmt: skip
    return {"apiGroups": [groups], "apiVersions": [version], "operations": operations, "resources": resources, "scope": scope}  # fmt: skip


def test_the_server_has_nothing_to_add_so_that_what_is_in_step_is_not_written_again() -> None:
    documents = made(policy("Pod"), policy("Service", name="q", does="mutate"))
    for name, document in documents.items():
        kind = SimpleNamespace(kind=document["kind"], custom=None)
        assert with_defaults(kind, document)["webhooks"] == document["webhooks"], name


def test_pods_are_watched_with_their_ephemeral_containers() -> None:
    assert rules_of(policy("Pod")) == [rule("", ["pods", "pods/ephemeralcontainers"])]


def test_a_wildcard_asks_for_everything_but_subresources() -> None:
    expected = rule("*", ["*", "pods/ephemeralcontainers"], "*", version="*")

    assert rules_of(policy("*")) == [expected]
    assert rules_of(namespaced(policy("*"))) == [{**expected, "scope": "Namespaced"}]
    assert rules_of(policy("*"), namespaced(policy("*"))) == [expected]


def test_two_wildcards_ask_for_subresources_too() -> None:
    assert rules_of(policy("*/*")) == [rule("*", ["*/*"], "*", version="*")]


def test_a_subresource_of_anything_is_asked_for_in_the_operations_named() -> None:
    one = policy("*/scale", operations=["CREATE"])

    assert rules_of(one) == [rule("*", ["*/scale"], "*", ["CREATE"], "*")]


def test_kinds_of_one_group_and_scope_share_a_rule_and_others_do_not() -> None:
    both = (policy("ConfigMap"), namespaced(policy("Secret")))

    assert rules_of(*both) == [rule("", ["configmaps", "secrets"])]
    assert rules_of(policy("ConfigMap", "CustomResourceDefinition", "Deployment")) == [
        rule("", ["configmaps"]),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], "*"),
        rule("apps", ["deployments"]),
    ]


def test_webhooks_of_policies_with_long_names_have_names_that_a_server_takes() -> None:
    condition = {"matchConditions": [{"name": "c", "expression": "true"}]}
    names = [f"{'a' * 200}.{'b' * 39}.{'c' * length}" for length in (10, 12)]
    policies = [policy("Pod", name=name, webhookConfiguration=condition) for name in names]

    asked = [one["name"] for one in made(*policies)[RESOURCE_VALIDATING]["webhooks"]]
    assert len(set(asked)) == len(policies)
    assert all(
        len(name) <= 253 and re.fullmatch(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?\.?)+", name)
        for name in asked
    )


def test_a_policy_of_a_namespace_does_not_hurry_the_others() -> None:
    quick = namespaced(policy("ConfigMap", webhookTimeoutSeconds=1))

    for policies, seconds in (((quick,), 1), ((quick, policy("Pod", name="q")), 10)):
        [webhook] = made(*policies)[RESOURCE_VALIDATING]["webhooks"]
        assert webhook["timeoutSeconds"] == seconds


def test_conditions_of_a_policy_of_a_namespace_are_tested_for_no_other_one() -> None:
    conditions = {
        "matchConditions": [{"name": "c", "expression": "object.metadata.labels.x == ''"}]
    }
    settings = {"webhooks": '[{"namespaceSelector": {"matchLabels": {"a": "b"}}}]'}
    own, wide = (
        policy("ConfigMap", name=name, webhookConfiguration=conditions) for name in ("own", "wide")
    )

    asked = made(namespaced(own), wide, settings=settings)[RESOURCE_VALIDATING]["webhooks"]
    by_name = {one["name"].rpartition("-")[2]: one["namespaceSelector"] for one in asked}
    only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}
    assert by_name == {
        "own": {"matchLabels": {"a": "b"}, "matchExpressions": [only]},
        "wide": {"matchLabels": {"a": "b"}},
    }


def test_a_policy_of_a_namespace_asks_for_nothing_that_lies_outside() -> None:
    assert rules_of(namespaced(policy("CustomResourceDefinition"))) == []


def test_subresources_are_named_with_their_resource() -> None:
    assert rules_of(policy("Pod/exec")) == [rule("", ["pods/exec"])]
    assert rules_of(policy("Pod/*")) == [
        rule("", ["pods", "pods/ephemeralcontainers", "pods/exec", "pods/log", "pods/status"])
    ]


def test_mutation_is_asked_for_where_something_is_written() -> None:
    assert rules_of(policy("Secret", does="mutate"), stage="mutating") == [
        rule("", ["secrets"], operations=["CREATE", "UPDATE"])
    ]
    both = (policy("*/scale", operations=["CREATE"], does="mutate"), policy("Secret", operations=["UPDATE"], does="mutate", name="q"))  # fmt: skip
    assert rules_of(*both, stage="mutating") == [
        rule("", ["secrets"], operations=["UPDATE"]),
        rule("*", ["*/scale"], "*", ["CREATE"], "*"),
    ]
    assert rules_of(*both) == []


def test_all_versions_and_groups_of_a_kind_are_asked_for_unless_one_is_named() -> None:
    assert [found["apiVersions"] for found in rules_of(policy("HorizontalPodAutoscaler"))] == [["v1"], ["v2"]]  # fmt: skip
    assert [found["apiGroups"] for found in rules_of(policy("Event"))] == [[""], ["events.k8s.io"]]
    assert rules_of(policy("/v1/Event")) == [rule("", ["events"])]


def test_what_a_synchronized_rule_made_follows_its_trigger_to_the_end() -> None:
    found = rules_of(policy("ConfigMap", operations=["CREATE"], does="generate"))

    assert found == [rule("", ["configmaps"], operations=["CREATE", "DELETE", "UPDATE"])]


def test_a_kind_that_the_server_does_not_have_is_left_out_and_told() -> None:
    assert rules_of(policy("Deployment", "Nothing")) == [rule("apps", ["deployments"])]
    assert unknown_kinds(["Deployment", "Nothing", "*", "Scale"], discovery()) == ["Nothing", "Scale"]  # fmt: skip


def test_failure_policies_have_webhooks_of_their_own() -> None:
    webhooks = made(policy("Pod"), policy("Secret", name="q", failurePolicy="Ignore"))["kyverno-resource-validating-webhook-cfg"]["webhooks"]  # fmt: skip

    assert [(one["name"], one["failurePolicy"], one["clientConfig"]["service"]["path"]) for one in webhooks] == [
        ("validate.kyverno.svc-fail", "Fail", "/validate/fail"),
        ("validate.kyverno.svc-ignore", "Ignore", "/validate/ignore"),
    ]  # fmt: skip


def test_a_policy_with_match_conditions_has_a_webhook_of_its_own() -> None:
    condition = {"name": "not-me", "expression": "request.userInfo.username != 'me'"}
    fine = policy("Pod", name="fine", webhookConfiguration={"matchConditions": [condition]})
    webhooks = made(fine, policy("Secret"))["kyverno-resource-validating-webhook-cfg"]["webhooks"]

    assert [one["name"] for one in webhooks] == [
        "validate.kyverno.svc-fail",
        "validate.kyverno.svc-fail-finegrained-fine",
    ]
    assert webhooks[1]["matchConditions"] == [condition]
    assert webhooks[1]["clientConfig"]["service"]["path"] == "/validate/fail/finegrained/fine"
    assert "matchConditions" not in webhooks[0]


def test_webhooks_of_policies_whose_names_run_together_are_told_apart() -> None:
    condition = {"name": "not-me", "expression": "request.userInfo.username != 'me'"}
    own = {"webhookConfiguration": {"matchConditions": [condition]}}
    alike = (
        policy("Pod", name="a-b-c", **own),
        namespaced(policy("Pod", name="b-c", **own), "a"),
        namespaced(policy("Pod", name="c", **own), "a-b"),
    )
    names = [one["name"] for one in made(*alike)["kyverno-resource-validating-webhook-cfg"]["webhooks"]]  # fmt: skip

    assert len(names) == len({*names}) == 3
    assert all(one.startswith("validate.kyverno.svc-fail-finegrained-a-b-c-") for one in names)
    again = [one["name"] for one in made(*reversed(alike))["kyverno-resource-validating-webhook-cfg"]["webhooks"]]  # fmt: skip
    assert again == names


def test_the_longest_time_out_counts() -> None:
    both = (policy("Pod", webhookConfiguration={"timeoutSeconds": 20}), policy("Pod", name="q", webhookTimeoutSeconds=3))  # fmt: skip
    webhooks = made(*both)["kyverno-resource-validating-webhook-cfg"]["webhooks"]

    assert webhooks[0]["timeoutSeconds"] == 20
    assert made(policy("Pod"))["kyverno-resource-validating-webhook-cfg"]["webhooks"][0]["timeoutSeconds"] == 10  # fmt: skip


def test_every_name_is_there_with_label_and_owner_and_empty_without_policies() -> None:
    documents = made()

    assert set(documents) == {
        "kpolicy-grant-validating-webhook-cfg",
        "kyverno-cel-exception-validating-webhook-cfg",
        "kyverno-cleanup-validating-webhook-cfg",
        "kyverno-exception-validating-webhook-cfg",
        "kyverno-global-context-validating-webhook-cfg",
        "kyverno-policy-mutating-webhook-cfg",
        "kyverno-policy-validating-webhook-cfg",
        "kyverno-resource-mutating-webhook-cfg",
        "kyverno-resource-validating-webhook-cfg",
        "kyverno-ttl-validating-webhook-cfg",
        "kyverno-verify-mutating-webhook-cfg",
    }
    for document in documents.values():
        assert document["metadata"]["labels"] == {"webhook.kyverno.io/managed-by": "kyverno"}
        assert vocabulary.OWNER in document["metadata"]["annotations"]
    assert documents["kyverno-resource-validating-webhook-cfg"]["webhooks"] == []


def test_settings_narrow_the_webhooks() -> None:
    settings = {
        "webhooks": '{"namespaceSelector":{"matchLabels":{"a":"b"}}}',
        "matchConditions": '[{"name":"x","expression":"true"}]',
        "webhookLabels": '{"team":"blue"}',
    }
    document = made(policy("Pod"), settings=settings)["kyverno-resource-validating-webhook-cfg"]

    assert document["webhooks"][0]["namespaceSelector"] == {"matchLabels": {"a": "b"}}
    assert document["webhooks"][0]["matchConditions"] == [{"name": "x", "expression": "true"}]
    assert document["metadata"]["labels"]["team"] == "blue"


def test_what_a_cluster_starts_with_is_kept_away_from_webhooks_for_everything() -> None:
    webhook = made(policy("*"))["kyverno-resource-validating-webhook-cfg"]["webhooks"][0]
    assert 'request.resource.resource == "leases"' in webhook["matchConditions"][0]["expression"]

    wanted = made(policy("*"), settings={"resourceFilters": "[Lease,*,*]"})
    text = wanted["kyverno-resource-validating-webhook-cfg"]["webhooks"][0]["matchConditions"][0]["expression"]  # fmt: skip
    assert "nodes" not in text
    assert "matchConditions" not in made(policy("*"), settings={})["kyverno-resource-validating-webhook-cfg"]["webhooks"][0]  # fmt: skip


def test_outside_a_cluster_webhooks_are_called_by_url() -> None:
    webhook = made(policy("Pod"), url="https://127.0.0.1:9443/")["kyverno-resource-validating-webhook-cfg"]["webhooks"][0]  # fmt: skip

    assert webhook["clientConfig"] == {"url": "https://127.0.0.1:9443/validate/fail", "caBundle": "Q0E="}  # fmt: skip


def conditions_of(made: dict[str, Any], stage: str) -> list[str]:
    [webhook] = made[f"kyverno-resource-{stage}-webhook-cfg"]["webhooks"]
    return [one["name"] for one in webhook.get("matchConditions") or ()]


def groups_of(made: dict[str, Any], stage: str) -> set[str]:
    webhooks = made[f"kyverno-resource-{stage}-webhook-cfg"]["webhooks"]
    return {group for one in webhooks for rule in one["rules"] for group in rule["apiGroups"]}


def test_mutating_webhooks_are_not_called_for_what_no_policy_may_change() -> None:
    named = made(policy("kpolicy.io/*/Grant", "Pod", does="mutate"), settings={})
    assert groups_of(named, "mutating") == {""}
    assert conditions_of(named, "mutating") == []

    everything = made(policy("*", does="mutate"), settings={})
    assert conditions_of(everything, "mutating") == ["kpolicy-own-kinds", "kpolicy-granted-exceptions"]  # fmt: skip
    exceptions = made(policy("PolicyException", does="mutate"), settings={})
    assert conditions_of(exceptions, "mutating") == ["kpolicy-granted-exceptions"]


def test_policies_of_the_cluster_validate_what_no_policy_may_change() -> None:
    found = made(policy("kpolicy.io/*/Grant", "PolicyException"), settings={})
    assert groups_of(found, "validating") == {"kpolicy.io", "kyverno.io"}
    assert conditions_of(found, "validating") == []


@pytest.mark.parametrize("kind", ["PolicyException", "kpolicy.io/*/Grant", "*"])
def test_conditions_of_a_policy_are_not_tested_where_a_decision_is_carried_out(kind: str) -> None:
    own = {"matchConditions": [{"name": "c", "expression": "object.metadata.labels.x == ''"}]}
    found = made(policy(kind, webhookConfiguration=own), settings={})
    assert conditions_of(found, "validating") == ["c", "kpolicy-decided"]

    found = made(policy("Pod", webhookConfiguration=own), settings={})
    assert conditions_of(found, "validating") == ["c"]


def test_webhooks_are_not_called_for_policies_of_namespaces_about_what_decides_about_policies() -> None:  # fmt: skip
    kinds = ("kpolicy.io/*/Grant", "PolicyException", "Policy", "CleanupPolicy", "Pod")
    found = made(namespaced(policy(*kinds)), namespaced(policy(*kinds, name="m", does="mutate")), settings={})  # fmt: skip
    assert groups_of(found, "validating") == {""}
    assert groups_of(found, "mutating") == {""}
