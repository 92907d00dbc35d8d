"""The sandbox without the engine: what takes CEL is refused or passed over aloud, everything else works; its own small readers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kpolicy_sandbox.clock import parse_duration
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.expressions import named
from kpolicy_sandbox.http.yaml import load
from kpolicy_sandbox.schema.unknown import prune

from .serving import Api, config_map, run
from .test_sandbox_native_policies import SMALL, VAP, policy

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def hook(**more: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]  # fmt: skip
    given = {
        "name": "a.b.c",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None",
    }
    return {"metadata": {"name": "h"}, "webhooks": [{**given, "rules": rules, "admissionReviewVersions": ["v1"], **more}]}  # fmt: skip


def definition(**schema: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", **schema}}}  # fmt: skip
    names = {"plural": "things", "kind": "Thing", "singular": "thing"}
    return {"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}}  # fmt: skip


def test_policies_and_conditions_are_refused_with_what_to_do(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        condition = {"name": "c", "expression": "true"}
        for path, obj in (
            (f"{VAP}/validatingadmissionpolicies", policy({"expression": SMALL})),
            (HOOKS, hook(matchConditions=[condition])),
        ):
            status, answer = await api("POST", path, obj)
            assert (status, answer["reason"]) == (501, "NotImplemented")
            assert "`--expressions`" in answer["message"]

    run(tmp_path, test, expressions=None)


def test_webhooks_without_conditions_are_asked_all_the_same(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(HOOKS, hook())
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        status, answer = await api("POST", "/api/v1/namespaces/default/pods", pod)
        assert (status, "failed to call webhook" in answer["message"]) == (500, True)
        await api.post("/api/v1/namespaces/default/configmaps", config_map())

    run(tmp_path, test, expressions=None)


def test_rules_of_schemas_are_passed_over_with_one_warning(tmp_path: Path) -> None:
    rules = [{"rule": "false"}]

    async def test(api: Api) -> None:
        await api.post(DEFINITIONS, definition(**{"properties": {"a": {"type": "string", "x-kubernetes-validations": rules}}, "x-kubernetes-validations": rules}))  # fmt: skip
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "a": "b"}  # fmt: skip
        path = "/apis/example.com/v1/namespaces/default/things"
        async with api.open("POST", path, thing) as answer:
            assert answer.status == 201
            [said] = answer.headers.getall("Warning")
        assert "x-kubernetes-validations" in said

    run(tmp_path, test, expressions=None)


def test_an_implementation_is_named_by_module_and_attribute() -> None:
    found = named("kubectl_kpolicy.session.expressions:EngineExpressions")
    assert found.compile("self > 1")({"self": 2}) is True
    for place in ("nowhere:X", "kubectl_kpolicy.session.expressions:Nothing", "os", ""):
        with pytest.raises(ValueError, match="no implementation of CEL"):
            named(place)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("4h", 14400), ("1h30m", 5400), ("90s", 90), ("1.5s", 1.5), (".5m", 30), ("-2s", -2), ("0", 0), ("250ms", 0.25), ("3us", 3e-6)],
)  # fmt: skip
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "1", "h", "1d", "1h 2m", ".s", "1.2.3s", "٣s", "9999999h", "--1s"])  # fmt: skip
def test_what_is_no_duration_is_none(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y', true, yes, ~, 1.5, 0644, 0x1f, 1_000]", {"a": 1, "b": ["x", "y", True, True, None, 1.5, 420, 31, 1000]}),
        ("1: a\ntrue: b\nyes: c", {"1": "a", "true": "c"}),
        ("d: 2024-01-02\nt: 190:20:30\ns: '1'\ne: 1e3\nf: .nan", {"d": "2024-01-02", "t": "190:20:30", "s": "1", "e": 1000.0, "f": ".nan"}),
        ('{"a": {"b": ["c", 1, null]}}', {"a": {"b": ["c", 1, None]}}),
        ("", None),
        ("text: |\n  two\n  lines\n", {"text": "two\nlines\n"}),
    ],
)  # fmt: skip
def test_yaml_is_read_as_kubernetes_reads_it(text: str, value: Any) -> None:
    assert load(text.encode()) == value


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x", "[" * 3000, "a: [", "? [a]\n: b", "a: 1\n---\nb: 2", "\xff: \x00"])  # fmt: skip
def test_yaml_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        load(text.encode("latin-1"))


@pytest.mark.parametrize(("text", "is_read"), [("500m", True), ("1.5Gi", True), ("1e3", True), ("-1", True), ("+.5", True), ("1E", True), ("1E6", True), ("", False), (".", False), ("1GiB", False), ("x", False), ("1ki", False)])  # fmt: skip
def test_quantities_are_told_from_other_texts(text: str, is_read: bool) -> None:
    limits = {"spec": {"limits": [{"type": "Container", "max": {"cpu": text}}]}}
    if is_read:
        assert prune("core.v1.LimitRange", limits)
    else:
        with pytest.raises(ApiError, match="quantities must match"):
            prune("core.v1.LimitRange", limits)
