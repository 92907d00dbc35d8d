from __future__ import annotations

import pytest

from kubectl_kpolicy.testing.verdict import difference, first_difference


def _pod(name="a", **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **more}}


@pytest.mark.parametrize(
    ("wanted", "found", "path"),
    [
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": True}, {"a": 1}, "/a"),
        ({"a": [1, 2]}, {"a": [1]}, "/a/1"),
        ({"a": [1]}, {"a": [2]}, "/a/0"),
        ({"a": {}}, {"a": {"b": None}}, "/a/b"),
        ({"a": "x"}, {"a": ["x"]}, "/a"),
        ({}, {}, None),
    ],
)
def test_the_first_difference_is_named_by_its_path(wanted, found, path):
    assert first_difference(wanted, found) == path


def test_equal_objects_do_not_differ():
    assert difference([_pod()], [_pod()], "patched resource") == ""


def test_a_different_object_is_told_with_its_path():
    assert (
        difference([_pod(labels={"x": "1"})], [_pod(labels={"x": "2"})], "patched resource")
        == "patched resource differs at /metadata/labels/x"
    )


def test_labels_of_generation_do_not_count():
    labels = {"generate.kyverno.io/rule-name": "r", "app.kubernetes.io/managed-by": "kyverno"}
    assert difference([_pod()], [_pod(labels=labels)], "generated resource") == ""


def test_managed_by_somebody_else_counts():
    labels = {"app.kubernetes.io/managed-by": "helm"}
    assert difference([_pod()], [_pod(labels=labels)], "generated resource") != ""


def test_an_expected_object_that_was_not_made_is_a_difference():
    assert "not found in manifest" in difference([_pod("a")], [_pod("b")], "generated resource")


def test_empty_parts_equal_absent_ones():
    wanted = {**_pod(), "spec": {"containers": [{"name": "a", "resources": {}}]}}
    found = {**_pod(), "spec": {"containers": [{"name": "a", "volumeMounts": []}], "x": None}}
    assert difference([wanted], [found], "patched resource") == ""


def test_an_empty_text_is_not_an_absent_one():
    assert difference([_pod()], [_pod(labels={"x": ""})], "patched resource") != ""
