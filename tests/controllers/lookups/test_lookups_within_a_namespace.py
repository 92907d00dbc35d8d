"""Everything that a namespaced policy can look up, in every spelling of every place: its own namespace answers and nothing else.

Each cell plays a whole rule against a cluster that holds a canary everywhere; the canary must not come out where the place is
not the policy's own, whether the place stands in the policy or a variable brings it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Discovery, Kind
from controllers.kube.reflector import Informers
from controllers.lookups.answering import Lookups
from controllers.lookups.cluster import ClusterSource, Entries
from controllers.lookups.egress import Gate
from controllers.lookups.services import ServiceSource
from controllers.runtime.evaluating import evaluate_with
from engine.evaluate import Inputs, PolicySet
from engine.lint import lint_policy
from engine.model import review_of
from engine.parse import parse_policy
from engine.parse.celpolicies import parse_cel_policy
from tests.controllers.kube.fake import WELL_KNOWN, FakeClient

if TYPE_CHECKING:
    from collections.abc import Callable

NODES = Kind("", "v1", "nodes", "Node", False)
CANARY = "canary-7e1f"
OWN, OTHER = "shop", "ops"
PLACES = {
    "own": OWN,
    "other": OTHER,
    "all": "",
    "climbing": f"{OWN}/../{OTHER}",
    "climbing encoded": f"{OWN}/%2e%2e/{OTHER}",
    "double slash": f"/{OTHER}",
    "slash encoded": f"{OWN}%2f..%2f{OTHER}",
    "query": f"{OTHER}/configmaps/x?y=/namespaces/{OWN}",
    "wildcard": "*",
}


def of_rule(**entry: Any) -> dict[str, Any]:
    """Return a Policy that tells in its message what one context entry found."""
    rule = {
        "name": "tell",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "context": [{"name": "found", **entry}],
        "validate": {"message": "{{ to_string(found) }}", "deny": {"conditions": {"all": [{"key": "{{ found }}", "operator": "NotEquals", "value": "-"}]}}},
    }  # fmt: skip
    return _policy(rule)


def _policy(rule: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kyverno.io/v1", "kind": "Policy", "metadata": {"name": "p", "namespace": OWN}, "spec": {"background": False, "rules": [rule]}}  # fmt: skip


def config_map(place: str) -> dict[str, Any]:
    return of_rule(configMap={"name": "x", "namespace": place})


def one_call(place: str) -> dict[str, Any]:
    return of_rule(apiCall={"urlPath": f"/api/v1/namespaces/{place}/configmaps/x"})


def all_calls(place: str) -> dict[str, Any]:
    where = f"namespaces/{place}/" if place else ""
    return of_rule(apiCall={"urlPath": f"/api/v1/{where}configmaps"})


def posted(place: str) -> dict[str, Any]:
    return of_rule(
        apiCall={"urlPath": f"/api/v1/namespaces/{place}/configmaps/x", "method": "POST"}
    )


def entry(place: str) -> dict[str, Any]:
    return of_rule(globalReference={"name": f"maps-of-{place}"})


def cloned(place: str) -> dict[str, Any]:
    block = {"apiVersion": "v1", "kind": "ConfigMap", "name": "copy", "namespace": OWN, "clone": {"name": "x", "namespace": place}}  # fmt: skip
    return _policy({"name": "copy", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "generate": block})  # fmt: skip


def listed(place: str) -> dict[str, Any]:
    block = {"namespace": OWN, "cloneList": {"namespace": place, "kinds": ["v1/ConfigMap"]}}
    return _policy({"name": "copy", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "generate": block})  # fmt: skip


def target(place: str) -> dict[str, Any]:
    block = {
        "targets": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "namespace": place, "context": [{"name": "found", "configMap": {"name": "x", "namespace": place}}]}],
        "patchStrategicMerge": {"metadata": {"labels": {"told": "{{ found.data.key }}"}}},
    }  # fmt: skip
    return _policy({"name": "change", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "mutate": block})  # fmt: skip


LOADERS: dict[str, Callable[[str], dict[str, Any]]] = {
    one.__name__: one
    for one in (config_map, one_call, all_calls, posted, entry, cloned, listed, target)
}
TELLING = frozenset({"config_map", "one_call", "all_calls", "entry", "cloned", "target"})
"""The loaders that bring the canary from the policy's own namespace: a list is not copied onto itself, and a POST brings none."""


def cluster() -> list[dict[str, Any]]:
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": place}, "data": {"key": f"{CANARY}-{place}"}}
        for place in (OWN, OTHER)
    ]  # fmt: skip
    entries = [
        {"apiVersion": "kyverno.io/v2beta1", "kind": "GlobalContextEntry", "metadata": {"name": f"maps-of-{place}"},
         "spec": {"kubernetesResource": {"version": "v1", "resource": "configmaps", "namespace": place}}}
        for place in (OWN, OTHER)
    ]  # fmt: skip
    nodes = {
        "apiVersion": "kyverno.io/v2beta1",
        "kind": "GlobalContextEntry",
        "metadata": {"name": "nodes"},
        "spec": {"kubernetesResource": {"version": "v1", "resource": "nodes", "namespace": OWN}},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "labels": {"key": f"{CANARY}-node"}}}  # fmt: skip
    names = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one, "labels": {"key": f"{CANARY}-{one}"}}} for one in (OWN, OTHER)]  # fmt: skip
    return [*maps, *entries, nodes, node, *names]


def told(document: dict[str, Any], place: str = "") -> str:
    """Return everything that comes of a policy about a Pod which names a place."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": OWN, "annotations": {"place": place}}}  # fmt: skip

    async def play() -> str:
        client = FakeClient(*cluster(), kinds=(NODES,))
        discovery = Discovery(client, (*WELL_KNOWN, NODES))
        source, gate, informers = ClusterSource(client, discovery), Gate(), Informers(client)
        entries = Entries(informers, discovery, source, ServiceSource(gate))
        resolver = Lookups(cluster=source, entries=entries)
        read = parse_policy if document["apiVersion"].startswith("kyverno.io") else parse_cel_policy
        try:
            found = await evaluate_with(resolver, PolicySet.compile([read(document)]), review_of(pod), Inputs())  # fmt: skip
        finally:
            await informers.close()
            await resolver.close()
        assert found.results
        return repr([(one.message, one.generated, [target.after for target in one.targets]) for one in found.results])  # fmt: skip

    return asyncio.run(play())


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_place_in_the_policy_answers_where_it_is_its_own(loader: str, place: str) -> None:
    document = LOADERS[loader](PLACES[place])
    answer = told(document)

    assert f"{CANARY}-{OTHER}" not in answer
    assert "node" not in answer.replace("nodes", "")
    if place == "own":
        assert (f"{CANARY}-{OWN}" in answer) is (loader in TELLING)
        assert not [one for one in lint_policy(parse_policy(document)) if one.severity == "error" and "amespace" in one.message]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("loader", LOADERS)
def test_a_place_that_a_variable_brings_answers_where_it_is_its_own(
    loader: str, place: str
) -> None:
    answer = told(LOADERS[loader]("{{ request.object.metadata.annotations.place }}"), PLACES[place])

    assert f"{CANARY}-{OTHER}" not in answer
    if place == "own":
        assert (f"{CANARY}-{OWN}" in answer) is (loader in TELLING)


OF_THE_CLUSTER = {
    "call": of_rule(apiCall={"urlPath": "/api/v1/nodes"}),
    "call as if it had a namespace": of_rule(apiCall={"urlPath": f"/api/v1/namespaces/{OWN}/nodes/x"}),
    "call another Namespace": of_rule(apiCall={"urlPath": f"/api/v1/namespaces/{OTHER}"}),
    "entry": of_rule(globalReference={"name": "nodes"}),
    "clone": _policy({"name": "copy", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "generate": {"apiVersion": "v1", "kind": "Node", "name": "copy", "namespace": OWN, "clone": {"name": "x", "namespace": OWN}}}),
    "clone a list": _policy({"name": "copy", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "generate": {"namespace": "", "cloneList": {"namespace": OWN, "kinds": ["v1/Node"]}}}),
    "target": _policy({"name": "change", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "mutate": {"targets": [{"apiVersion": "v1", "kind": "Node", "name": "x", "namespace": OWN}], "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}),
    "target by wildcard": _policy({"name": "change", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "mutate": {"targets": [{"apiVersion": "*", "kind": "No*", "name": "x", "namespace": OWN}], "patchStrategicMerge": {"metadata": {"labels": {"a": "b"}}}}}),
}  # fmt: skip


@pytest.mark.parametrize("way", OF_THE_CLUSTER)
def test_what_has_no_namespace_does_not_answer(way: str) -> None:
    assert CANARY not in told(OF_THE_CLUSTER[way])


def test_its_own_namespace_object_answers() -> None:
    assert f"{CANARY}-{OWN}" in told(of_rule(apiCall={"urlPath": f"/api/v1/namespaces/{OWN}"}))


def of_cel(expression: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}  # fmt: skip
    return {
        "apiVersion": "policies.kyverno.io/v1",
        "kind": "NamespacedValidatingPolicy",
        "metadata": {"name": "p", "namespace": OWN},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "messageExpression": expression}],
        },
    }


GET, LIST = 'resource.Get("v1", "configmaps", {0}, "x").data.key', 'resource.List("v1", "configmaps", {0}).items[0].data.key'  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", [GET, LIST])
@pytest.mark.parametrize("brought", [True, False])
def test_an_expression_answers_where_the_place_is_its_policys_own(
    call: str, place: str, brought: bool
) -> None:
    where = 'object.metadata.annotations["place"]' if brought else f'"{PLACES[place]}"'
    answer = told(of_cel(call.format(where)), PLACES[place])

    assert f"{CANARY}-{OTHER}" not in answer
    assert (f"{CANARY}-{OWN}" in answer) is (place == "own")


@pytest.mark.parametrize(
    "expression",
    [
        'resource.List("v1", "nodes", "").items[0].metadata.labels.key',
        f'resource.List("v1", "nodes", "{OWN}").items[0].metadata.labels.key',
        f'resource.Get("v1", "nodes", "{OWN}", "x").metadata.labels.key',
        f'resource.Get("v1", "namespaces", "", "{OTHER}").metadata.labels.key',
        f'resource.Get("v1", "configmaps", "{OWN}", "../../{OTHER}/configmaps/x").data.key',
        f'resource.Get("v1", "configmaps/../../{OTHER}/configmaps", "{OWN}", "x").data.key',
        f'resource.Get("v1/namespaces/{OTHER}/configmaps/x?", "configmaps", "{OWN}", "x").data.key',
        'string(globalContext.Get("nodes", "")[0].metadata.labels.key)',
        f'string(globalContext.Get("maps-of-{OTHER}", "")[0].data.key)',
        f'string(resource.Post("v1", "configmaps", "{OTHER}", {{"a": "b"}}))',
    ],
)
def test_no_expression_leads_elsewhere(expression: str) -> None:
    assert CANARY not in told(of_cel(expression))
