"""The sandbox's rules on plain values: patches, selectors, paths, cells, protobuf, shapes of built-in kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kpolicy_sandbox.admission.rules import rule_fits
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.http.answers import Form, form_of
from kpolicy_sandbox.http.handler import Place, place_of, verb_of
from kpolicy_sandbox.http.nonresource import aggregated_version
from kpolicy_sandbox.http.tables import age_of, duration_text, json_path
from kpolicy_sandbox.kinds import Registry, to_core, to_new, version_order
from kpolicy_sandbox.objects.apply import apply_object
from kpolicy_sandbox.objects.managed_fields import Writer, record_update
from kpolicy_sandbox.objects.patches import json_patch, merge_patch
from kpolicy_sandbox.objects.selectors import field_selector, label_selector
from kpolicy_sandbox.objects.shapes import Shape
from kpolicy_sandbox.objects.strategic import strategic_merge
from kpolicy_sandbox.schema.protobuf import decode
from kpolicy_sandbox.schema.unknown import prune

POD = Shape("core.v1.Pod")


def containers(*names: str, **more: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": name, **more} for name in names]}}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"a": None}, {"b": {"c": 1}}),
        ({"b": {"d": 2}}, {"a": 1, "b": {"c": 1, "d": 2}}),
        ({"b": [1]}, {"a": 1, "b": [1]}),
        ({"x": {"y": None}}, {"a": 1, "b": {"c": 1}, "x": {}}),
        ("text", "text"),
    ],
)
def test_a_merge_patch_merges_maps_and_replaces_the_rest(patch: Any, expected: Any) -> None:
    before = {"a": 1, "b": {"c": 1}}
    assert merge_patch(before, patch) == expected
    assert before == {"a": 1, "b": {"c": 1}}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/l/-", "value": 3}, {"l": [1, 2, 3]}),
        ({"op": "add", "path": "/l/0", "value": 0}, {"l": [0, 1, 2]}),
        ({"op": "replace", "path": "/l/1", "value": 9}, {"l": [1, 9]}),
        ({"op": "remove", "path": "/l/0"}, {"l": [2]}),
        ({"op": "move", "from": "/l", "path": "/m"}, {"m": [1, 2]}),
        ({"op": "copy", "from": "/l/0", "path": "/a~1b"}, {"l": [1, 2], "a/b": 1}),
        ({"op": "test", "path": "/l/0", "value": 1}, {"l": [1, 2]}),
    ],
)
def test_each_operation_of_a_json_patch(operation: Any, expected: Any) -> None:
    assert json_patch({"l": [1, 2]}, [operation]) == expected


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/x"}],
        [{"op": "replace", "path": "/x", "value": 1}],
        [{"op": "add", "path": "/l/7", "value": 1}],
        [{"op": "test", "path": "/l", "value": 1}],
        [{"op": "jump", "path": "/l"}],
        [{"path": "/l"}],
        ["x"],
        [{"op": "remove", "path": "l"}],
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operations: Any) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"l": [1]}, operations)
    assert caught.value.code == 422


@pytest.mark.parametrize(
    ("patch", "names"),
    [
        (containers("b"), ["a", "c", "b"]),
        ({"spec": {"containers": [{"$patch": "delete", "name": "a"}]}}, ["c"]),
        ({"spec": {"containers": [{"$patch": "replace"}, {"name": "x"}]}}, ["x"]),
        ({"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}}, ["c", "a"]),
        ({"spec": {"containers": None}}, []),
    ],
)
def test_a_strategic_patch_merges_lists_by_their_key(patch: Any, names: list[str]) -> None:
    made = strategic_merge(POD, containers("a", "c"), patch)
    assert [one["name"] for one in made["spec"].get("containers", [])] == names


def test_a_strategic_patch_keeps_what_it_does_not_name_of_an_item() -> None:
    made = strategic_merge(POD, containers("a", image="x"), containers("a", tty=True))
    assert made == containers("a", image="x", tty=True)


def test_a_strategic_patch_takes_single_values_out_of_lists() -> None:
    before = {"metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
    assert strategic_merge(POD, before, patch) == {"metadata": {"finalizers": ["b"]}}


def test_keys_that_are_to_be_retained_push_out_the_others() -> None:
    before = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]}}
    assert strategic_merge(POD, before, patch) == {
        "spec": {"volumes": [{"name": "v", "secret": {}}]}
    }


def writer(name: str, *, force: bool = False) -> Writer:
    return Writer(name, "v1", "", "2026-01-01T00:00:00Z", force)


def test_lists_of_different_owners_live_side_by_side_item_by_item() -> None:
    first = {"metadata": {"name": "p"}, **containers("a", image="x")}
    live = apply_object(POD, {"metadata": {"name": "p"}}, first, writer("one"))
    second = {"metadata": {"name": "p"}, **containers("b", image="y")}
    both = apply_object(POD, live, second, writer("two"))
    assert [one["name"] for one in both["spec"]["containers"]] == ["a", "b"]
    none = {"metadata": {"name": "p"}, "spec": {}}
    left = apply_object(POD, both, none, writer("one"))
    assert [one["name"] for one in left["spec"]["containers"]] == ["b"]


def test_a_field_that_a_plain_write_changed_is_in_conflict_with_apply() -> None:
    before = {"metadata": {"name": "p"}, "spec": {"nodeName": "a"}}
    live = record_update(POD, None, before, writer("kubectl-create"))
    wanted = {"metadata": {"name": "p"}, "spec": {"nodeName": "b"}}
    with pytest.raises(ApiError) as caught:
        apply_object(POD, live, wanted, writer("two"))
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-create" using v1: .spec.nodeName'
    )
    forced = apply_object(POD, live, wanted, writer("two", force=True))
    assert forced["spec"] == {"nodeName": "b"}
    assert [one["manager"] for one in forced["metadata"]["managedFields"]] == ["two"]


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        ("a=b", {"a": "b"}, True),
        ("a==b", {"a": "c"}, False),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a in (x, y)", {"a": "y"}, True),
        ("a in (x, y)", {}, False),
        ("a notin (x)", {}, True),
        ("a notin (x)", {"a": "x"}, False),
        ("n>5", {"n": "6"}, True),
        ("n<5", {"n": "six"}, False),
        ("example.com/a=b,c", {"example.com/a": "b", "c": "d"}, True),
        ("example.com/a=b,c", {"example.com/a": "b"}, False),
    ],
)
def test_label_selectors(selector: str, labels: dict[str, str], fits: bool) -> None:
    chosen = label_selector(selector)
    assert chosen is not None
    assert chosen({"metadata": {"labels": labels}}) is fits


@pytest.mark.parametrize("selector", ["a b", "a in x", "=b", "a=(b)", "a in (b"])
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(selector: str) -> None:
    with pytest.raises(ApiError) as caught:
        label_selector(selector)
    assert caught.value.code == 400


def test_an_empty_value_of_a_field_selector_means_a_missing_field() -> None:
    chosen = field_selector("involvedObject.namespace=,involvedObject.name!=x", "/events")
    assert chosen is not None
    assert chosen({"involvedObject": {"name": "y"}})
    assert not chosen({"involvedObject": {"name": "y", "namespace": "n"}})
    assert not chosen({"involvedObject": {"name": "x"}})


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/pods", Place("", "v1", "pods")),
        ("/api/v1/namespaces", Place("", "v1", "namespaces")),
        ("/api/v1/namespaces/n", Place("", "v1", "namespaces", "", "n")),
        ("/api/v1/namespaces/n/finalize", Place("", "v1", "namespaces", "", "n", "finalize")),
        ("/api/v1/namespaces/n/pods/p/log", Place("", "v1", "pods", "n", "p", "log")),
        ("/apis/apps/v1/namespaces/n/deployments", Place("apps", "v1", "deployments", "n")),
        ("/apis/apps/v1", None),
        ("/healthz", None),
        ("/", None),
    ],
)
def test_a_path_names_a_resource(path: str, place: Place | None) -> None:
    assert place_of(path) == place


def test_verbs_follow_method_and_place() -> None:
    one, all_ = Place("", "v1", "pods", "n", "p"), Place("", "v1", "pods", "n")
    verbs = [verb_of(method, one, watching=False) for method in ("GET", "PUT", "PATCH", "DELETE")]
    assert verbs == ["get", "update", "patch", "delete"]
    verbs = [verb_of(method, all_, watching=False) for method in ("GET", "POST", "DELETE", "PURGE")]
    assert verbs == ["list", "create", "deletecollection", ""]
    assert verb_of("GET", all_, watching=True) == "watch"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"), (600, "10m"), (10_799, "179m"),
        (10_800, "3h"), (11_000, "3h3m"), (28_800, "8h"), (172_800, "2d"), (180_000, "2d2h"), (700_000, "8d"),
        (63_072_000, "2y"), (-1, "0s"), (-9, "<invalid>"),
    ],
)  # fmt: skip
def test_ages_are_written_as_kubernetes_writes_them(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


def test_an_age_without_an_instant_is_unknown() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert age_of(None, now) == "<unknown>"
    assert age_of("yesterday", now) == "<unknown>"
    assert age_of("2025-12-31T23:59:00Z", now) == "60s"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        ("{.a.b}", [1]),
        (".l[1]", [{"t": "y", "v": 2}]),
        (".l[9]", []),
        (".l[*].v", [1, 2]),
        ('.l[?(@.t=="y")].v', [2]),
        (r".a.x\.y/z", [3]),
        (".a['x.y/z']", [3]),
        (".missing.b", []),
        ("..a", []),
    ],
)
def test_json_paths_of_printer_columns(path: str, found: list[Any]) -> None:
    obj = {"a": {"b": 1, "x.y/z": 3}, "l": [{"t": "x", "v": 1}, {"t": "y", "v": 2}]}
    assert json_path(path)(obj) == found


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/json", Form()),
        ("*/*", Form()),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form("Table")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Form()),
        (
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            ),
            Form("PartialObjectMetadata"),
        ),
    ],
)
def test_the_first_form_that_we_have_is_the_answers(accept: str, form: Form) -> None:
    assert form_of(accept, {}) == form


def test_discovery_answers_in_the_version_that_was_named_first() -> None:
    old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    new = old.replace("v2beta1", "v2")
    assert aggregated_version(f"{new},{old},application/json") == "v2"
    assert aggregated_version(f"{old},application/json") == "v2beta1"
    assert aggregated_version("application/json") == ""


def test_versions_are_sorted_as_kubernetes_prefers_them() -> None:
    names = ["v1alpha1", "v1", "foo", "v2beta1", "v2", "v1beta1"]
    assert sorted(names, key=version_order) == ["v2", "v1", "v2beta1", "v1beta1", "v1alpha1", "foo"]


@pytest.mark.parametrize(
    ("rule", "subresource", "fits"),
    [
        ({"resources": ["pods"]}, "", True),
        ({"resources": ["pods"]}, "status", False),
        ({"resources": ["pods/status"]}, "status", True),
        ({"resources": ["pods/*"]}, "status", True),
        ({"resources": ["*"]}, "", True),
        ({"resources": ["*"]}, "status", False),
        ({"resources": ["*/*"]}, "status", True),
        ({"resources": ["*/*"]}, "", True),
        ({"resources": ["*/status"]}, "status", True),
        ({"resources": ["pods"], "operations": ["DELETE"]}, "", False),
        ({"resources": ["pods"], "apiGroups": ["apps"]}, "", False),
        ({"resources": ["pods"], "apiVersions": ["v2"]}, "", False),
        ({"resources": ["pods"], "scope": "Cluster"}, "", False),
        ({"resources": ["pods"], "scope": "Namespaced"}, "", True),
    ],
)
def test_rules_of_webhooks(rule: dict[str, Any], subresource: str, fits: bool) -> None:
    pods = Registry().find("", "v1", "pods")
    assert pods is not None
    whole = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], **rule}
    assert rule_fits(whole, pods, subresource, "CREATE") is fits


def test_an_event_is_the_same_after_there_and_back() -> None:
    core = {
        "apiVersion": "v1",
        "involvedObject": {"name": "x"},
        "message": "m",
        "count": 2,
        "reportingComponent": "c",
        "series": {"count": 1},
    }
    assert to_core(to_new(core)) == core
    assert to_new(core)["note"] == "m"


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def envelope(kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, b"v1") + field(2, kind.encode())) + field(2, raw)


def type_of(_: str, kind: str) -> str:
    return f"core.v1.{kind}"


def test_a_protobuf_body_is_read_as_its_json_would_be() -> None:
    meta = field(1, field(1, b"a") + field(11, field(1, b"k") + field(2, b"v")))
    data = field(2, field(1, b"x") + field(2, b""))
    made = decode(envelope("ConfigMap", meta + data), type_of)
    assert made == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"k": "v"}},
        "data": {"x": ""},
    }


def test_protobuf_zeros_that_json_would_leave_out_are_left_out_unless_they_were_meant() -> None:
    # hostNetwork (11) is a plain false, activeDeadlineSeconds (5) and automountServiceAccountToken (21) are pointers
    spec = bytes([11 << 3, 0]) + bytes([5 << 3, 0]) + bytes([0xA8, 0x01, 0])
    made = decode(envelope("Pod", field(2, spec)), type_of)
    assert made["spec"] == {"activeDeadlineSeconds": 0, "automountServiceAccountToken": False}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"k8s\0",
        b"json",
        b"k8s\0\xff\xff",
        envelope("Pod", b"\x12\x7f"),
        envelope("Pod", b"\x0b"),
    ],
)
def test_a_protobuf_body_that_cannot_be_read_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode(body, type_of)
    assert caught.value.code == 400


def test_fields_that_a_kind_has_not_are_dropped_and_named_by_path() -> None:
    pod = {"kind": "Pod", "spec": {"containers": [{"name": "a", "imag": "x"}], "more": 1}}
    made, unknown = prune("core.v1.Pod", pod)
    assert unknown == ["spec.containers[0].imag", "spec.more"]
    assert made == {"kind": "Pod", "spec": {"containers": [{"name": "a"}]}}


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"hostNetwork": False, "nodeName": ""}, {}),
        ({"securityContext": {}, "volumes": []}, {"securityContext": {}}),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": False}),
        ({"nodeSelector": {"a": ""}}, {"nodeSelector": {"a": ""}}),
        ({"terminationGracePeriodSeconds": 0}, {"terminationGracePeriodSeconds": 0}),
    ],
)
def test_zeros_are_left_out_where_go_leaves_them_out(spec: Any, kept: Any) -> None:
    assert prune("core.v1.Pod", {"spec": spec})[0] == {"spec": kept}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": {}},
        {"hostNetwork": "yes"},
        {"nodeName": 1},
        {"priority": "high"},
        {"priority": True},
        {"securityContext": []},
        {"nodeSelector": []},
        {"overhead": {"cpu": "many"}},
    ],
)
def test_a_value_of_another_type_is_a_bad_request(spec: Any) -> None:
    with pytest.raises(ApiError) as caught:
        prune("core.v1.Pod", {"kind": "Pod", "spec": spec})
    assert caught.value.code == 400
