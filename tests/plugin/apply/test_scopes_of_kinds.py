from __future__ import annotations

import pytest

from kubectl_kpolicy.apply.scope import Scopes


def _object(api_version, kind, **metadata):
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("kyverno.io/v1", "ClusterPolicy"),
    ],
)
def test_cluster_wide_objects_get_no_namespace(api_version, kind):
    obj = _object(api_version, kind, name="x")
    assert Scopes().placed(obj) is obj


def test_other_objects_get_namespace_default_without_being_changed_themselves():
    obj = _object("apps/v1", "Deployment", name="x")
    assert Scopes().placed(obj)["metadata"] == {"name": "x", "namespace": "default"}
    assert obj["metadata"] == {"name": "x"}


def test_a_named_namespace_stays():
    obj = _object("v1", "Pod", name="x", namespace="dev")
    assert Scopes().placed(obj) is obj


def test_a_kind_of_the_same_name_in_another_group_is_namespaced():
    assert Scopes().is_namespaced("example.com/v1", "Node")


def test_definitions_say_where_custom_kinds_live():
    definition = {"spec": {"group": "example.com", "scope": "Cluster", "names": {"kind": "Widget"}}}
    assert not Scopes([definition]).is_namespaced("example.com/v1", "Widget")
    assert Scopes().is_namespaced("example.com/v1", "Widget")
