"""Strategic merge patches: which lists are merged, by what, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError
from engine.mutate.handler import strategic_merge


def merged(kind: str, path: str, old: Any, patch: Any) -> Any:
    """Merge `patch` over `old`, both at a dotted path of an object of `apiVersion/Kind`."""
    version, _, name = kind.rpartition("/")
    keys = path.split(".")
    obj, change = nest(keys, old), nest(keys, patch)
    found: Any = strategic_merge(change, {"apiVersion": version, "kind": name, **obj})
    for key in keys:
        found = found[key]
    return found


def nest(keys: list[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


CONTAINER = {"name": "c"}


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        ("v1/Pod", "spec.containers", "name"),
        ("v1/Pod", "spec.initContainers", "name"),
        ("v1/Pod", "spec.ephemeralContainers", "name"),
        ("v1/Pod", "spec.volumes", "name"),
        ("v1/Pod", "spec.imagePullSecrets", "name"),
        ("v1/Pod", "spec.hostAliases", "ip"),
        ("v1/Pod", "spec.topologySpreadConstraints", "topologyKey"),
        ("v1/Pod", "metadata.ownerReferences", "uid"),
        ("v1/Pod", "status.conditions", "type"),
        ("v1/ConfigMap", "metadata.ownerReferences", "uid"),
        ("v1/Service", "spec.ports", "port"),
        ("v1/ServiceAccount", "secrets", "name"),
        ("v1/PodTemplate", "template.spec.volumes", "name"),
        ("v1/ReplicationController", "spec.template.spec.containers", "name"),
        ("apps/v1/Deployment", "spec.template.spec.containers", "name"),
        ("apps/v1/DaemonSet", "spec.template.spec.volumes", "name"),
        ("apps/v1/StatefulSet", "spec.template.metadata.ownerReferences", "uid"),
        ("apps/v1/ReplicaSet", "spec.template.spec.hostAliases", "ip"),
        ("batch/v1/Job", "spec.template.spec.containers", "name"),
        ("batch/v1/CronJob", "spec.jobTemplate.spec.template.spec.containers", "name"),
        ("admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "webhooks", "name"),
        ("storage.k8s.io/v1/CSINode", "spec.drivers", "name"),
    ],
)
def test_lists_of_built_in_kinds_are_merged_by_their_key(kind: str, path: str, key: str) -> None:
    old = [{key: "a", "x": 1}, {key: "b", "x": 1}]

    result = merged(kind, path, old, [{key: "n", "x": 3}, {key: "b", "y": 2}])

    assert result == [{key: "n", "x": 3}, {key: "b", "x": 1, "y": 2}, {key: "a", "x": 1}]


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("env", "name"),
        ("volumeMounts", "mountPath"),
        ("volumeDevices", "devicePath"),
        ("ports", "containerPort"),
    ],
)
def test_lists_of_containers_are_merged_by_their_key(field: str, key: str) -> None:
    old = [{**CONTAINER, field: [{key: "a", "x": 1}]}]

    result = merged("v1/Pod", "spec.containers", old, [{**CONTAINER, field: [{key: "n"}]}])

    assert result == [{**CONTAINER, field: [{key: "n"}, {key: "a", "x": 1}]}]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("v1/Pod", "spec.tolerations"),
        ("v1/Pod", "spec.dnsConfig.options"),
        ("v1/ServiceAccount", "imagePullSecrets"),
        ("networking.k8s.io/v1/Ingress", "spec.rules"),
        ("rbac.authorization.k8s.io/v1/RoleBinding", "subjects"),
        ("example.com/v1/Thing", "spec.containers"),
        ("example.com/v1/Thing", "metadata.ownerReferences"),
        ("v9/Pod", "spec.containers"),
    ],
)
def test_other_lists_are_replaced(kind: str, path: str) -> None:
    assert merged(kind, path, [{"name": "a"}], [{"name": "b"}]) == [{"name": "b"}]


def test_a_built_in_object_inside_a_custom_one_is_merged_as_such() -> None:
    inner = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a"}]}}
    patch = {"spec": {"containers": [{"name": "b"}]}}

    result = merged("example.com/v1/Thing", "spec.template", inner, patch)

    assert result["spec"]["containers"] == [{"name": "b"}, {"name": "a"}]


def test_finalizers_are_a_set_with_the_patch_in_front() -> None:
    assert merged("v1/Pod", "metadata.finalizers", ["x", "y"], ["z", "y", "z"]) == ["z", "y", "x"]
    assert merged("example.com/v1/Thing", "metadata.finalizers", ["x"], ["z"]) == ["z"]


def test_ports_with_equal_number_are_told_apart_by_protocol() -> None:
    dns = [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]

    def ports(patch: list[Any], old: list[Any]) -> Any:
        result = merged(
            "v1/Pod",
            "spec.containers",
            [{**CONTAINER, "ports": old}],
            [{**CONTAINER, "ports": patch}],
        )
        return result[0]["ports"]

    assert ports([{"containerPort": 53, "protocol": "UDP", "name": "u"}], dns) == [
        {"containerPort": 53, "protocol": "UDP", "name": "u"},
        {"containerPort": 53, "protocol": "TCP"},
    ]
    assert ports([{"containerPort": 53, "protocol": "SCTP"}], dns) == [
        {"containerPort": 53, "protocol": "SCTP"},
        *dns,
    ]
    assert ports([{"containerPort": 53, "name": "n"}], dns)[0] == {**dns[0], "name": "n"}
    assert ports([{"containerPort": 80, "protocol": "UDP"}], [{"containerPort": 80}]) == [
        {"containerPort": 80, "protocol": "UDP"}
    ]
    assert ports([{"containerPort": "80", "name": "n"}], [{"containerPort": 80}]) == [
        {"containerPort": "80", "name": "n"}
    ]


def test_an_element_may_be_deleted_or_replaced_by_a_directive() -> None:
    old = [{"name": "a", "x": 1}, {"name": "b", "x": 1}]

    def volumes(*patch: Any) -> Any:
        return merged("v1/Pod", "spec.volumes", old, list(patch))

    assert volumes({"name": "a", "$patch": "delete"}) == [old[1]]
    assert volumes({"name": "z", "$patch": "delete"}) == old
    assert volumes({"name": "b", "$patch": "replace", "y": 2}) == [{"name": "b", "y": 2}, old[0]]


def test_a_whole_list_may_be_deleted_replaced_or_nulled() -> None:
    def patched(*patch: Any) -> Any:
        obj = {"apiVersion": "v1", "kind": "Pod", "spec": {"volumes": [{"name": "a"}]}}
        return strategic_merge({"spec": {"volumes": list(patch)}}, obj)["spec"]

    assert patched({"$patch": "delete"}) == {}
    assert patched({"$patch": "replace"}, {"name": "z"}) == {"volumes": [{"name": "z"}]}
    assert patched({"$patch": "merge"}, {"name": "z"}) == {
        "volumes": [{"name": "z"}, {"name": "a"}]
    }
    with pytest.raises(EvaluationError, match="unknown patch strategy 'x'"):
        patched({"$patch": "x"})


def test_a_list_that_is_not_there_is_added_without_deleted_elements_and_nulls() -> None:
    patch = {
        "spec": {
            "volumes": [
                {"name": "a", "$patch": "delete"},
                {"name": "b", "x": None, "$patch": "merge"},
            ]
        }
    }

    assert strategic_merge(patch, {"apiVersion": "v1", "kind": "Pod"})["spec"] == {
        "volumes": [{"name": "b"}]
    }


def test_an_element_without_its_key_empties_the_list() -> None:
    assert merged("v1/Pod", "spec.volumes", [{"name": "a"}], [{"x": 1}]) == []
    assert merged("v1/Pod", "spec.volumes", [{"name": "a"}], [{"x": 1}, {"name": "b"}]) == [
        {"name": "b"}
    ]


def test_an_element_without_its_key_comes_last_in_a_new_list() -> None:
    patch = {"spec": {"volumes": [{"x": 1}, {"name": "b"}, {"name": "a"}]}}

    assert strategic_merge(patch, {"apiVersion": "v1", "kind": "Pod"})["spec"] == {
        "volumes": [{"name": "b"}, {"name": "a"}, {"x": 1}]
    }


def test_of_several_patch_elements_with_equal_keys_the_first_counts() -> None:
    patch = [{"name": "a", "x": 1}, {"name": "a", "x": 2}, {"name": "b"}]

    assert merged("v1/Pod", "spec.volumes", [{"name": "a"}], patch) == [patch[0], patch[2]]
    assert merged("v1/Pod", "spec.volumes", None, patch) == [patch[0], patch[2]]


def test_elements_with_equal_keys_in_the_object_stay() -> None:
    old = [{"name": "a", "x": 1}, {"name": "a", "x": 2}]

    assert merged("v1/Pod", "spec.volumes", old, [{"name": "n"}]) == [{"name": "n"}, *old]
    assert merged("v1/Pod", "spec.volumes", old, [{"name": "a", "x": 3}]) == [
        {"name": "a", "x": 3},
        {"name": "a", "x": 2},
    ]


def test_moving_an_element_to_the_front_is_a_change() -> None:
    old = [{"name": "a"}, {"name": "b"}]

    assert merged("v1/Pod", "spec.volumes", old, [{"name": "b"}]) == [{"name": "b"}, {"name": "a"}]
