"""Questions of namespaced policies: they reach their own namespace, whatever a variable makes of them (row A-25)."""

from __future__ import annotations

import pytest

from engine.evaluate import (
    Answer,
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
    SignatureLookup,
)
from engine.evaluate.images import pull_secrets
from engine.evaluate.inputs import marked, refusal
from engine.model import Status
from tests.engine.evaluate.builders import config_map, decide, policy


def call(path: str) -> ApiCallLookup:
    return ApiCallLookup("GET", path)


OWN = (
    ConfigMapLookup("dev", "settings"),
    call("/api/v1/namespaces/dev"),
    call("/api/v1/namespaces/dev/pods"),
    call("/api/v1/namespaces/dev/pods?labelSelector=a%3Db"),
    call("/apis/apps/v1/namespaces/dev/deployments/web"),
    ObjectLookup("v1", "Pod", "dev", "web"),
    ObjectLookup("v1", "Namespace", "", "dev"),
    ListLookup("v1", "Pod", "dev"),
    ImageLookup("a/b", ("dev/pull",)),
    SignatureLookup("a/b", ("dev/pull",)),
)
FOREIGN = (
    ConfigMapLookup("ops", "settings"),
    ConfigMapLookup("", "settings"),
    ConfigMapLookup("dev/../ops", "settings"),
    call("/api/v1/namespaces/ops/pods"),
    call("/api/v1/namespaces/dev-2/pods"),
    call("/api/v1/namespaces"),
    call("/api/v1/pods"),
    call("/api/v1/nodes"),
    call("/apis/authorization.k8s.io/v1/subjectaccessreviews"),
    call("/api/v1/namespaces/dev/../ops/pods"),
    call("/api/v1/namespaces/dev/%2e%2e/ops/pods"),
    call("/api/v1/namespaces/dev/..%2fops/secrets"),
    call("/api/v1/namespaces/./dev/pods"),
    call("/api/v1//namespaces/dev/pods"),
    call("//api/v1/namespaces/dev/pods"),
    call("/api/v1/namespaces//pods"),
    call("/api/v1/namespaces/ops/pods/x/proxy/namespaces/dev"),
    call("/api/v1/namespaces/ops/pods?x=/namespaces/dev/"),
    call("/api/v1/namespaces/dev\\..\\ops/pods"),
    call("/api/v1/namespaces/dev/pods#"),
    call("/api/v1/namespaces/dev;/pods"),
    call("/api/v1/watch/namespaces/dev/pods"),
    call("/apis/apps/v1/namespaces/dev/deployments/"),
    call("api/v1/namespaces/dev/pods"),
    call("https://elsewhere/api/v1/namespaces/dev/pods"),
    call("/logs/namespaces/dev"),
    call(""),
    ObjectLookup("v1", "Secret", "ops", "key"),
    ObjectLookup("v1", "Namespace", "", "ops"),
    ObjectLookup("v1", "Node", "", "n1"),
    ListLookup("v1", "Secret", ""),
    ListLookup("v1", "Secret", "*"),
    ListLookup("v1", "Secret", "de?"),
    ImageLookup("a/b", ("ops/pull",)),
    ImageLookup("a/b", ("dev",)),
    SignatureLookup("a/b", ("dev/pull", "ops/pull")),
)


@pytest.mark.parametrize("lookup", OWN, ids=str)
def test_a_policy_may_ask_about_its_own_namespace(lookup) -> None:
    assert refusal(lookup, "dev") == ""


@pytest.mark.parametrize("lookup", FOREIGN, ids=str)
def test_a_policy_may_not_ask_about_anything_else(lookup) -> None:
    assert "a policy of namespace `dev` may not read" in refusal(lookup, "dev")


def test_questions_that_others_decide_say_who_asks() -> None:
    assert marked(ServiceLookup("GET", "http://x"), "dev").within == "dev"
    assert marked(GlobalLookup("x"), "dev").within == "dev"
    assert marked(ImageLookup("x"), "dev").within == "dev"
    assert marked(SignatureLookup("x"), "dev").within == "dev"
    assert marked(call("/x"), "dev") == call("/x")


def rule(place: str):
    return {
        "name": "r",
        "context": [{"name": "found", "configMap": {"name": "settings", "namespace": place}}],
        "validate": {
            "message": "m",
            "deny": {
                "conditions": {
                    "all": [{"key": "{{ found.data.a }}", "operator": "Equals", "value": "x"}]
                }
            },
        },
    }


def test_a_variable_does_not_lead_out_of_the_namespace() -> None:
    secret = Answer.found({"data": {"a": "x"}})
    known = {ConfigMapLookup("ops", "settings"): secret}
    place = "{{ request.object.data.place }}"

    found = decide(policy(rule(place), namespace="dev"), config_map(place="ops"), answers=known)

    assert [result.status for result in found.results] == [Status.ERROR]
    assert "a policy of namespace `dev` may not read" in found.results[0].message
    assert found.missing == []


def test_cluster_policies_ask_anywhere() -> None:
    known = {ConfigMapLookup("ops", "settings"): Answer.found({"data": {"a": "x"}})}

    found = decide(policy(rule("ops")), config_map(), answers=known)

    assert [result.status for result in found.results] == [Status.FAIL]


def test_one_policy_does_not_widen_the_reach_of_the_next() -> None:
    known = {ConfigMapLookup("ops", "settings"): Answer.found({"data": {"a": "x"}})}
    both = [
        policy(rule("ops"), name="a"),
        policy(rule("ops"), name="b", namespace="dev"),
        policy(rule("ops"), name="c"),
    ]

    found = decide(both, config_map(), answers=known)

    assert [result.status for result in found.results] == [Status.FAIL, Status.ERROR, Status.FAIL]


def test_pull_secrets_are_those_of_the_pod_and_of_what_makes_pods() -> None:
    pod = {"imagePullSecrets": [{"name": "a"}, {"name": ""}, "odd"]}
    metadata = {"namespace": "dev"}

    assert pull_secrets({"metadata": metadata, "spec": pod}) == ("dev/a",)
    assert pull_secrets({"metadata": metadata, "spec": {"template": {"spec": pod}}}) == ("dev/a",)
    cron = {"jobTemplate": {"spec": {"template": {"spec": pod}}}}
    assert pull_secrets({"spec": cron}) == ("default/a",)
    assert pull_secrets({"spec": None}) == ()
