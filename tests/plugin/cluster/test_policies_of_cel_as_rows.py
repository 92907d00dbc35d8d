"""Policies and exceptions of `policies.kyverno.io` among the others: of every kind and version that a server has."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controllers.kube.errors import Forbidden, NotFound
from kubectl_kpolicy.cluster import celkinds, exceptions, policies
from kubectl_kpolicy.cluster.cache import ClusterCache
from kubectl_kpolicy.cluster.fetching import fetch

NOW = datetime(2026, 3, 14, 12, tzinfo=UTC)


def policy(kind: str = "ValidatingPolicy", name: str = "p", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": "shop"} if kind.startswith("Namespaced") else {})}
    return {"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metadata, "spec": {"validations": [{"expression": "true"}], **fields.pop("spec", {})}, **fields}  # fmt: skip


def exception(**spec: Any) -> dict[str, Any]:
    made = {"policyRefs": [{"name": "p", "kind": "ValidatingPolicy"}], "matchConditions": [{"name": "c", "expression": "object.metadata.name == 'a'"}], **spec}  # fmt: skip
    return {"apiVersion": "policies.kyverno.io/v1", "kind": "PolicyException", "metadata": {"name": "e", "namespace": "shop", "uid": "u", "creationTimestamp": "2026-03-01T00:00:00Z"}, "spec": made}  # fmt: skip


def world(**resources: list[dict[str, Any]]) -> ClusterCache:
    made = ClusterCache()
    for name in ("clusterpolicies", "exceptions", *resources):
        made.replace(name, resources.get(name, []), NOW)
    return made


@pytest.mark.parametrize(
    ("found", "mode", "ready", "key"),
    [
        (policy(), "enforce", "unknown", "p"),
        (policy(spec={"validationActions": ["Audit"]}), "audit", "unknown", "p"),
        (policy(spec={"validationActions": ["Audit", "Deny"]}, status={"conditionStatus": {"ready": True}}), "enforce", "yes", "p"),
        (policy("NamespacedValidatingPolicy", status={"conditionStatus": {"ready": False}}), "enforce", "no", "shop/p"),
        ({**policy("MutatingPolicy"), "spec": {"mutations": []}}, "-", "unknown", "p"),
    ],
)  # fmt: skip
def test_a_policy_says_its_mode_and_whether_it_is_ready(found, mode: str, ready: str, key: str):
    [row] = policies.policy_rows(world(celpolicies=[found]), NOW)
    assert (row.cells["mode"], row.cells["ready"], row.cells["policy"]) == (mode, ready, key)
    assert row.object is found


def test_exceptions_are_counted_for_the_policies_that_they_name():
    [row] = policies.policy_rows(world(celpolicies=[policy()], celexceptions=[exception()]), NOW)
    assert row.cells["exceptions"] == 1


@pytest.mark.parametrize(
    ("spec", "state", "concerns"),
    [
        ({}, "unlimited", "no expiry"),
        ({"expiresAt": "2026-03-14T11:00:00Z"}, "expired", "expired"),
        ({"expiresAt": "2026-03-14T13:00:00Z"}, "active", ""),
        ({"expiresAt": "2026-03-14T13:00:00Z", "matchConditions": []}, "active", "over-broad"),
        ({"expiresAt": "2026-03-14T13:00:00Z", "policyRefs": [{"name": "gone", "kind": "ValidatingPolicy"}]}, "active", "orphaned"),
        ({"policyRefs": [{"name": 3}]}, "unlimited", "unreadable"),
    ],
)  # fmt: skip
def test_an_exception_says_what_is_wrong_with_it(spec, state: str, concerns: str):
    [row] = exceptions.exception_rows(world(celpolicies=[policy()], celexceptions=[exception(**spec)]), NOW)  # fmt: skip
    assert (row.cells["state"], row.cells["drift"]) == (state, concerns)


def test_an_exception_names_policies_and_the_conditions_under_which_it_holds():
    [row] = exceptions.exception_rows(world(celexceptions=[exception(expiresAt="2026-03-14T13:00:00Z")]), NOW)  # fmt: skip
    assert (row.cells["rules"], row.cells["target"]) == ("vpol:p", "object.metadata.name == 'a'")
    assert row.cells["left"] == NOW + timedelta(hours=1)


class Server:
    """Answers discovery and lists of one version of the group; `error` instead where there is one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def raw(self, method: str, path: str) -> Any:
        assert method == "GET"
        if self.error is not None:
            raise self.error
        if path == "/apis/policies.kyverno.io":
            return {"preferredVersion": {"version": "v1beta1"}}
        assert path == "/apis/policies.kyverno.io/v1beta1"
        names = {"validatingpolicies": "ValidatingPolicy", "validatingpolicies/status": "ValidatingPolicy", "mutatingpolicies": "MutatingPolicy", "policyexceptions": "PolicyException"}  # fmt: skip
        return {"resources": [{"name": name, "kind": kind, "namespaced": kind == "PolicyException"} for name, kind in names.items()]}  # fmt: skip

    async def list_all(self, kind: Any, namespace: str = "", **_: Any) -> Any:
        class Page:
            items = ({"metadata": {"name": kind.plural, "namespace": namespace}},)

        return Page


def fetched(server: Server) -> ClusterCache:
    return asyncio.run(fetch(server, celkinds.NAMES, NOW))  # type: ignore[arg-type] # a stand-in


def test_every_kind_and_the_version_that_the_server_prefers_are_read():
    there = fetched(Server())
    assert [(one["apiVersion"], one["kind"]) for one in there.objects(celkinds.POLICIES)] == [("policies.kyverno.io/v1beta1", "ValidatingPolicy"), ("policies.kyverno.io/v1beta1", "MutatingPolicy")]  # fmt: skip
    assert [one["kind"] for one in there.objects(celkinds.EXCEPTIONS)] == ["PolicyException"]


def test_a_server_without_the_group_has_none_and_that_is_no_problem():
    there = fetched(Server(NotFound("no such group", status=404)))
    assert there.objects(celkinds.POLICIES) == []
    assert there.problem(celkinds.POLICIES) is None


def test_what_may_not_be_read_is_a_problem():
    there = fetched(Server(Forbidden("no", status=403)))
    assert there.problem(celkinds.POLICIES) is not None


def test_kinds_that_a_server_has_are_watched(tmp_path, capsys, monkeypatch):
    from controllers.kube.clock import SystemClock
    from controllers.kube.kinds import CEL_POLICIES
    from kubectl_kpolicy.cluster.sources import LiveSource
    from tests.plugin.grants.staging import Stage, play

    async def act(stage: Stage) -> None:
        source = LiveSource(stage.admin, SystemClock(), resources=["clusterpolicies", celkinds.POLICIES])  # fmt: skip
        there = asyncio.Event()
        source.world.on_change(lambda _: there.set() if source.world.objects(celkinds.POLICIES) else None)  # fmt: skip
        await source.start()
        try:
            constraints = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}  # fmt: skip
            await stage.admin.create(
                CEL_POLICIES[0], policy(spec={"matchConstraints": constraints})
            )
            await asyncio.wait_for(there.wait(), 25)
            assert [one["metadata"]["name"] for one in source.world.objects(celkinds.POLICIES)] == ["p"]  # fmt: skip
        finally:
            await source.close()

    play(tmp_path, capsys, monkeypatch, act)
