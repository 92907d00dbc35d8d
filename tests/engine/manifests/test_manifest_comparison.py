"""What counts as a difference between an object and its signed manifest, and what may be ignored."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.errors import LimitError
from engine.manifests import differences
from engine.manifests.ignore import compile_ignored


def changed(signed: Any, actual: Any) -> list[str]:
    return [one.key for one in differences({"x": signed}, {"x": actual})]


@pytest.mark.parametrize(
    ("signed", "actual"),
    [
        (80, 80.0),
        (None, None),
        ({"a": None}, {}),
        ({"a": []}, {}),
        ({"labels": {}}, {}),
        ({}, {"resources": {}, "securityContext": {}}),
        ({"image": "nginx"}, {"image": "docker.io/nginx:latest"}),
        ({"image": "nginx"}, {"image": "nginx:latest"}),
        ({"image": "a/b:1"}, {"image": "docker.io/a/b:1"}),
    ],
)
def test_equal_in_meaning_is_equal(signed: Any, actual: Any) -> None:
    assert changed(signed, actual) == []


@pytest.mark.parametrize(
    ("signed", "actual", "path"),
    [
        (80, "80", "x"),
        (1, True, "x"),
        (0, False, "x"),
        (True, 1.0, "x"),
        ("a", "b", "x"),
        ({}, {"runAsUser": 0}, "x.runAsUser"),
        ({"enabled": False}, {}, "x.enabled"),
        ({}, {"a": ""}, "x.a"),
        ([], [{}], "x.0"),
        ([], [None], "x.0"),
        ([], [[]], "x.0"),
        ([{}], [], "x.0"),
        ([{"namespaceSelector": {}}], [{"podSelector": {}}], "x.0.namespaceSelector"),
        ({"podSelector": {"a": 1}}, {"podSelector": {"a": 1}, "namespaceSelector": {}},
         "x.namespaceSelector"),
        ({"selector": {}}, {}, "x.selector"),
        ({"a.b": 1}, {"a": {"b": 1}}, "x.a.b"),
        ({"image": "docker.io/nginx"}, {"image": "nginx"}, "x.image"),
        ({"image": "nginx:latest"}, {"image": "nginx"}, "x.image"),
        ({"image": "nginx"}, {"image": "evil.io/nginx"}, "x.image"),
        ({"tag": "a"}, {"tag": "a:latest"}, "x.tag"),
    ],
)  # fmt: skip
def test_every_change_of_meaning_is_found(signed: Any, actual: Any, path: str) -> None:
    assert path in changed(signed, actual)


def test_elements_of_lists_may_not_change_places() -> None:
    one, two = {"name": "a", "privileged": True}, {"name": "b"}

    found = changed([one, two], [{"name": "a"}, {"name": "b", "privileged": True}])
    assert found == ["x.0.privileged", "x.1.privileged"]


def test_objects_nested_beyond_reason_are_refused() -> None:
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}

    with pytest.raises(LimitError):
        differences({}, deep)


def kept(
    actual: dict[str, Any],
    *fields: str,
    kind: str = "Thing",
    objects: list[dict[str, str]] | None = None,
) -> list[str]:
    base = {"apiVersion": "g.io/v1", "kind": kind, "metadata": {"name": "n", "namespace": "ns"}}
    whole = {**base, **actual}
    blocks = [{"fields": list(fields), "objects": objects or []}] if fields else []
    found = differences(base, whole)
    return [one.key for one in compile_ignored(blocks).keep(found, base, whole)]


def test_ignored_fields_hold_from_the_start_and_at_a_boundary() -> None:
    assert kept({"status": {"phase": "x"}}) == []
    assert kept({"statusFoo": 1}) == ["statusFoo"]
    assert kept({"data": {"nginx-status.conf": "x"}}) == ["data.nginx-status.conf"]
    assert kept({"spec": {"template": {"metadata": {"uid": "x"}}}}) == [
        "spec.template.metadata.uid"
    ]
    assert kept({"spec": {"type": "x"}}, kind="Service") == []
    assert kept({"spec": {"typeMeta": "x"}}, kind="Service") == ["spec.typeMeta"]
    assert kept({"spec": {"type": "x"}}) == ["spec.type"]


def test_dots_of_ignored_fields_are_no_wildcards() -> None:
    assert kept({"a": {"b": 1}}, "a.b") == []
    assert kept({"aXb": 1}, "a.b") == ["aXb"]
    assert kept({"a": {"b.c": {"d": 1}}}, "a.b.c") == []
    assert kept({"a": {"b.c.d": 1}}, "a.b.c") == ["a.b.c.d"]


def test_forms_of_ignored_fields() -> None:
    spec = {"spec": {"list": [{"a.b": 1, "c": 2}]}}

    assert kept(spec, "spec.list.*.c") == ["spec.list.0.a.b"]
    assert kept(spec, "spec.list[0].c", 'spec.list.0."a.b"') == []
    assert kept(spec, "spec.list[*].c", "spec.list[*].a*") == []
    assert kept(spec, "spec.li*") == []
    assert kept(spec, "list") == ["spec.list.0.a.b", "spec.list.0.c"]
    assert kept(spec, "(", "[", "\\") == ["spec.list.0.a.b", "spec.list.0.c"]


@pytest.mark.parametrize(
    ("selector", "covers"),
    [
        ({}, True),
        ({"kind": "Thing"}, True),
        ({"kind": "Th*"}, True),
        ({"kind": "Other, Thing"}, True),
        ({"kind": "Other"}, False),
        ({"kind": "*", "name": "n", "namespace": "ns"}, True),
        ({"namespace": "-"}, False),
        ({"group": "g.io", "version": "v1"}, True),
        ({"group": "-"}, False),
        ({"version": "v2"}, False),
    ],
)
def test_ignored_fields_hold_for_selected_objects_only(
    selector: dict[str, str], covers: bool
) -> None:
    assert (kept({"a": 1}, "a", objects=[selector]) == []) is covers


def test_any_one_of_several_selectors_suffices() -> None:
    assert kept({"a": 1}, "a", objects=[{"kind": "X"}, {"kind": "Thing"}]) == []


def test_pod_defaults_are_ignored_wherever_pod_specs_stand_and_nothing_more() -> None:
    pod = {"dnsPolicy": "x", "containers": [{"imagePullPolicy": "x"}], "securityContext": {"a": 1}}

    assert kept({"spec": pod}) == ["spec.securityContext.a"]
    assert kept({"spec": {"template": {"spec": pod}}}) == ["spec.template.spec.securityContext.a"]
    inner = {"spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}
    assert kept(inner) == ["spec.jobTemplate.spec.template.spec.securityContext.a"]
    assert kept({"other": pod})[0] == "other.containers.0.imagePullPolicy"


def test_a_service_account_may_only_be_filled_in_with_the_default() -> None:
    assert kept({"spec": {"serviceAccountName": "default"}}, kind="Pod") == []
    assert kept({"spec": {"serviceAccountName": "admin"}}, kind="Pod") == [
        "spec.serviceAccountName"
    ]
    assert kept({"spec": {"serviceAccountName": "default"}}) == ["spec.serviceAccountName"]


def test_patterns_of_policies_cost_linear_time() -> None:
    started = time.perf_counter()

    kept({"a" * 5_000: 1}, "*a" * 400 + "b")

    assert time.perf_counter() - started < 2
