from __future__ import annotations

import pytest

from engine.evaluate import (
    ApiCallLookup,
    ConfigMapLookup,
    GlobalLookup,
    HostLookup,
    ImageLookup,
    ListLookup,
    ObjectLookup,
    ServiceLookup,
)
from engine.lang import yaml
from kubectl_kpolicy.apply.inventory import Inventory, is_plural
from kubectl_kpolicy.apply.mock_cluster import MockCluster
from kubectl_kpolicy.apply.mocks import prepared_calls, prepared_entries, with_context, with_objects
from kubectl_kpolicy.apply.processor import overridden


def _object(kind, name, namespace="default", api_version="v1", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


POD, OTHER = _object("Pod", "a", app="x"), _object("Pod", "b", "dev", app="y")
CONFIG = {**_object("ConfigMap", "c"), "data": {"k": "v"}}


def test_an_empty_world_leaves_everything_to_values_given_by_hand():
    world = MockCluster()
    for lookup in (
        ConfigMapLookup("default", "c"),
        ApiCallLookup("GET", "/api/v1/pods"),
        ServiceLookup("GET", "https://x.example"),
        ImageLookup("nginx"),
        GlobalLookup("g"),
    ):
        assert world.answer(lookup).is_absent


def test_an_entry_that_is_not_prepared_is_missing_and_a_projection_of_one_that_is_cannot_be_read():
    world = MockCluster(entries={"e": [1], "nothing": None})

    assert world.answer(GlobalLookup("f")).is_missing
    assert world.answer(GlobalLookup("nothing")).value is None
    assert not world.answer(GlobalLookup("nothing")).error
    refused = world.answer(GlobalLookup("e.p"))
    assert (refused.is_missing, refused.error) == (
        False,
        'projection "p" not found in global context entry "e"',
    )


def test_names_of_hosts_are_never_looked_up():
    assert MockCluster().answer(HostLookup("example.com")).error


def test_where_a_cluster_is_given_what_is_not_in_it_does_not_exist():
    world = with_objects(MockCluster(), [CONFIG])
    assert world.answer(ConfigMapLookup("default", "c")).value == CONFIG
    assert "not found" in world.answer(ConfigMapLookup("default", "d")).error
    assert world.answer(ApiCallLookup("GET", "/api/v1/namespaces/default/pods/a")).error


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/api/v1/pods", ["a", "b"]),
        ("/api/v1/namespaces/dev/pods", ["b"]),
        ("/api/v1/pods?labelSelector=app=x", ["a"]),
        ("/api/v1/pods?labelSelector=app%3Dy", ["b"]),
        ("/api/v1/pods?labelSelector=app%20in%20(x,z)", ["a"]),
        ("/api/v1/pods?labelSelector=app!=x", ["b"]),
        ("/api/v1/pods?labelSelector=!app", []),
        ("/apis/apps/v1/pods", []),
    ],
)
def test_lists_of_the_api_server(path, names):
    found = Inventory([POD, OTHER, CONFIG]).at_path(path)
    assert [obj["metadata"]["name"] for obj in found["items"]] == names


def test_single_objects_of_the_api_server():
    assert Inventory([POD]).at_path("/api/v1/namespaces/default/pods/a") is POD
    assert Inventory([POD]).at_path("/api/v1/namespaces/default/pods/z") is None
    assert Inventory([POD]).at_path("/healthz") is None


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        ("pods", "Pod"),
        ("networkpolicies", "NetworkPolicy"),
        ("gateways", "Gateway"),
        ("ingresses", "Ingress"),
        ("endpoints", "Endpoints"),
        ("leases", "Lease"),
    ],
)
def test_plurals_follow_kubernetes(resource, kind):
    assert is_plural(resource, kind)
    assert not is_plural(kind.lower() + "x", kind)


def test_objects_are_found_by_identity_and_lists_by_wildcards_and_selectors():
    world = MockCluster(targets=Inventory([POD, OTHER]))
    assert world.answer(ObjectLookup("v1", "Pod", "dev", "b")).value is OTHER
    assert world.answer(ObjectLookup("v1", "Pod", "dev", "a")).value is None
    assert world.answer(ListLookup("v1", "Pod", "d*", "?")).value == [POD, OTHER]
    selector = '{"matchLabels":{"app":"y"}}'
    assert world.answer(ListLookup("v1", "Pod", "", selector=selector)).value == [OTHER]


def test_prepared_calls_fit_by_address_and_method():
    calls = prepared_calls(
        [
            {"url": "https://x.example", "method": "POST", "response": {"body": {"a": 1}}},
            {"urlPath": "/version", "response": {"statusCode": 404}},
        ]
    )
    world = MockCluster(calls=calls)
    assert world.answer(ServiceLookup("POST", "https://x.example")).value == {"a": 1}
    assert world.answer(ServiceLookup("GET", "https://x.example")).is_absent
    assert world.answer(ApiCallLookup("GET", "/version")).error == "HTTP 404"


def test_global_entries_have_projections_beside_their_data():
    entries = prepared_entries(
        [
            {"name": "g", "data": {"d": {"l": [1, 2]}}, "fieldPath": "d", "projections": [{"name": "n", "path": "length(l)"}]},
            {"name": "files", "resourceFiles": ["a.yaml"]},
        ],
        {"a.yaml": [POD]},
    )  # fmt: skip
    world = MockCluster(entries=entries)
    assert world.answer(GlobalLookup("g")).value == {"l": [1, 2], "n": 2}
    assert world.answer(GlobalLookup("g.n")).value == 2
    assert world.answer(GlobalLookup("files")).value == [POD]
    assert world.answer(GlobalLookup("other")).error


def test_images_of_a_context_file_are_taken_apart():
    text = """
apiVersion: cli.kyverno.io/v1alpha1
kind: Context
spec:
  images: [{image: "nginx:1.25", config: {User: "101"}, digest: "sha256:abc"}]
"""
    world = with_context(MockCluster(), yaml.load_all(text)[0])
    found = world.answer(ImageLookup("nginx:1.25")).value
    assert found["configData"] == {"User": "101"}
    assert (found["registry"], found["repository"]) == ("docker.io", "nginx")
    assert found["identifier"] == "sha256:abc"
    assert world.answer(ImageLookup("docker.io/nginx:1.25")).value == found
    assert world.answer(ImageLookup("redis")).error


def test_an_update_without_further_values_changes_nothing():
    assert overridden(POD, {}, "UPDATE") == (POD, POD)
    assert overridden(POD, {}, "CREATE") == (POD, None)
    assert overridden(POD, {}, "DELETE") == (None, POD)


def test_values_are_put_into_the_objects_they_name_and_nowhere_else():
    variables = {
        "request.object.metadata.labels.app": "new",
        'request.oldObject.metadata.labels."x.y/z"': "old",
        "other.object": 1,
    }
    new, old = overridden(POD, variables, "UPDATE")
    assert new["metadata"]["labels"] == {"app": "new"}
    assert old["metadata"]["labels"] == {"app": "x", "x.y/z": "old"}
    assert POD["metadata"]["labels"] == {"app": "x"}


def test_maps_among_the_values_are_merged():
    new, _ = overridden(POD, {"request.object.metadata": {"labels": {"b": "1"}}}, "CREATE")
    assert new["metadata"]["labels"] == {"app": "x", "b": "1"}
    assert new["metadata"]["name"] == "a"
