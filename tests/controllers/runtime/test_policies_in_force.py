"""The policy cache and the cluster: changes are seen whole, broken ones leave what works in force, readiness is everything."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.kube import Discovery, Kind
from controllers.kube.kinds import (
    CLUSTER_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    CRDS,
    NAMESPACES,
    POLICIES,
    ROLE_BINDINGS,
)
from controllers.kube.reflector import Informers
from controllers.runtime.cluster_cache import WATCHED, ClusterCache
from controllers.runtime.metrics import Metrics
from controllers.runtime.policy_cache import PolicyCache
from controllers.runtime.watching import DiscoveryRefresh, Watches
from controllers.store.policies import ExceptionRules
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient


def policy(name: str = "p", message: str = "m", kind: str = "ClusterPolicy", **spec: Any) -> dict[str, Any]:  # fmt: skip
    rule = {
        "name": "r",
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"message": message, "deny": {}},
    }
    metadata: dict[str, Any] = {"name": name, "resourceVersion": "1"}
    if kind == "Policy":
        metadata["namespace"] = "shop"
    return {
        "apiVersion": "kyverno.io/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"validationFailureAction": "Enforce", "rules": [rule], **spec},
    }


def exception(name: str = "x", namespace: str = "shop", policy_name: str = "p") -> dict[str, Any]:
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "exceptions": [{"policyName": policy_name, "ruleNames": ["*"]}],
            "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        },
    }


def test_a_snapshot_stays_as_it_is_when_policies_change() -> None:
    cache = PolicyCache()
    cache.put_policy(policy())
    before = cache.snapshot
    cache.put_policy(policy("q"))

    assert sorted(before.compiled) == ["p"]
    assert sorted(cache.snapshot.compiled) == ["p", "q"]
    assert cache.snapshot is cache.snapshot


def test_only_what_means_something_else_is_compiled_again() -> None:
    cache = PolicyCache()
    assert cache.put_policy(policy()) is True
    kept = cache.snapshot.compiled["p"]
    newer = policy()
    newer["metadata"]["resourceVersion"] = "2"
    newer["status"] = {"ready": True}

    assert cache.put_policy(newer) is False
    assert cache.put_policy(policy("q")) is True
    assert cache.snapshot.compiled["p"] is kept


def test_a_change_that_does_not_compile_leaves_the_working_form_in_force() -> None:
    cache = PolicyCache()
    cache.put_policy(policy(message="old"))
    kept = cache.snapshot.compiled["p"]
    cache.put_policy(policy(rules="broken"))
    snapshot = cache.snapshot

    assert snapshot.compiled["p"].policy.raw == kept.policy.raw
    assert list(snapshot.problems) == ["p"]
    cache.put_exception(exception())
    assert cache.snapshot.compiled["p"].rules[0].exceptions
    cache.remove_policy(policy())
    assert cache.snapshot.compiled == {}
    assert cache.snapshot.problems == {}


def test_a_policy_that_never_compiled_does_not_count_and_is_told() -> None:
    cache = PolicyCache()
    cache.put_policy(policy(rules="broken"))

    assert cache.snapshot.compiled == {}
    assert "p" in cache.snapshot.problems


def test_an_exception_reaches_the_rules_it_names_and_leaves_them_again() -> None:
    cache = PolicyCache()
    cache.put_policy(policy())
    cache.put_policy(policy("q"))
    other = cache.snapshot.compiled["q"]
    cache.put_exception(exception())

    assert len(cache.snapshot.compiled["p"].rules[0].exceptions) == 1
    assert cache.snapshot.compiled["q"] is other
    assert cache.put_exception(exception()) is False
    cache.remove_exception(exception())
    assert cache.snapshot.compiled["p"].rules[0].exceptions == ()


def test_exceptions_count_where_they_are_allowed_to() -> None:
    cache = PolicyCache(ExceptionRules(namespace="trusted"))
    cache.put_policy(policy())
    cache.put_exception(exception())
    assert cache.snapshot.compiled["p"].rules[0].exceptions == ()
    cache.put_exception(exception("y", "trusted"))
    assert len(cache.snapshot.compiled["p"].rules[0].exceptions) == 1
    nobody = PolicyCache(ExceptionRules(enabled=False))
    nobody.put_policy(policy())
    nobody.put_exception(exception())
    assert nobody.snapshot.compiled["p"].rules[0].exceptions == ()


def test_policies_of_one_name_in_two_scopes_are_two() -> None:
    cache = PolicyCache()
    cache.put_policy(policy())
    cache.put_policy(policy(kind="Policy"))

    assert sorted(cache.snapshot.compiled) == ["p", "shop/p"]


def test_lanes_follow_failure_policies_and_what_overrides_them() -> None:
    cache = PolicyCache()
    cache.put_policy(policy())
    cache.put_policy(policy("q", failurePolicy="Ignore"))
    cache.put_policy(policy("z", admission=False, background=True))
    routes = cache.snapshot.routes
    assert [one.policy.name for one in routes["fail"].blocking.policies] == ["p"]
    assert [one.policy.name for one in routes["ignore"].blocking.policies] == ["q"]
    assert [one.policy.name for one in routes["all"].blocking.policies] == ["p", "q"]

    forced = PolicyCache(force_ignore=True)
    forced.put_policy(policy())
    assert [one.policy.name for one in forced.snapshot.routes["ignore"].blocking.policies] == ["p"]
    assert forced.snapshot.routes["fail"].blocking.policies == ()


def cluster(client: FakeClient | None = None) -> ClusterCache:
    return ClusterCache(Discovery(client or FakeClient()), Metrics())


def test_a_world_is_ready_when_every_kind_was_listed() -> None:
    made, told = cluster(), []
    made.on_listed.append(told.append)
    for kind in WATCHED:
        assert not made.is_ready
        assert str(kind) in made.missing
        made.listed(kind)
        made.listed(kind)

    assert made.is_ready
    assert told == list(WATCHED)


def test_a_world_tells_of_changes_that_mean_something() -> None:
    made, told = cluster(), []
    made.on_change.append(told.append)
    made.put(CLUSTER_POLICIES, policy())
    made.put(CLUSTER_POLICIES, policy())
    made.put(NAMESPACES, {"metadata": {"name": "shop", "labels": {"a": "b"}}})
    made.put(CONFIG_MAPS, {"data": {"generateSuccessEvents": "true"}})
    assert made.configuration.success_events
    made.remove(CONFIG_MAPS, {"metadata": {"name": "kyverno"}})
    made.remove(NAMESPACES, {"metadata": {"name": "shop"}})
    made.remove(CLUSTER_POLICIES, policy())

    assert [(change.kind, change.type) for change in told] == [
        (CLUSTER_POLICIES, "PUT"),
        (NAMESPACES, "PUT"),
        (CONFIG_MAPS, "PUT"),
        (CONFIG_MAPS, "REMOVED"),
        (NAMESPACES, "REMOVED"),
        (CLUSTER_POLICIES, "REMOVED"),
    ]
    assert not made.configuration.success_events
    assert made.namespaces.labels("shop") is None


def test_roles_come_from_both_kinds_of_bindings() -> None:
    made = cluster()
    subject = {"kind": "User", "name": "jane"}
    made.put(ROLE_BINDINGS, {"metadata": {"name": "a", "namespace": "shop"}, "roleRef": {"kind": "Role", "name": "dev"}, "subjects": [subject]})  # fmt: skip
    made.put(CLUSTER_ROLE_BINDINGS, {"metadata": {"name": "a"}, "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [subject]})  # fmt: skip

    assert made.bindings.roles("jane", ()) == (("shop:dev",), ("admin",))
    before = made.bindings.version
    made.remove(ROLE_BINDINGS, {"metadata": {"name": "a", "namespace": "shop"}})
    assert made.bindings.roles("jane", ()) == ((), ("admin",))
    assert made.bindings.version > before


def test_a_subresource_is_known_by_its_parents_kind() -> None:
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    deployments = Kind("apps", "v1", "deployments", "Deployment")
    made = ClusterCache(Discovery(FakeClient(), (deployments,)), Metrics())
    request = {"resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "kind": scale}  # fmt: skip

    assert made.parent_kind(request) == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert made.parent_kind({**request, "resource": {"resource": "others"}}) == scale


def run_watching(test: Any) -> None:
    async def go() -> None:
        clock = ManualClock()
        client = FakeClient(clock=clock)
        client.put(policy("early"))
        informers = Informers(client, clock=clock)
        made = cluster(client)
        watches = Watches(informers, made, "kyverno")
        await settle()
        try:
            await test(client, made, watches, informers, clock)
        finally:
            watches.stop()
            await informers.close()

    asyncio.run(go())


def test_watches_fill_a_world_and_make_it_ready() -> None:
    async def test(client: FakeClient, made: ClusterCache, *_: Any) -> None:
        assert made.is_ready
        assert sorted(made.policies.snapshot.compiled) == ["early"]
        client.put(policy("later", kind="Policy"))
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kyverno", "namespace": "kyverno"}, "data": {"generateSuccessEvents": "true"}}  # fmt: skip
        client.put({**settings, "metadata": {"name": "kyverno", "namespace": "other"}})
        await settle()
        assert not made.configuration.success_events
        client.put(settings)
        await settle()
        assert made.configuration.success_events
        assert sorted(made.policies.snapshot.compiled) == ["early", "shop/later"]
        client.take(POLICIES, "later", "shop")
        await settle()
        assert sorted(made.policies.snapshot.compiled) == ["early"]

    run_watching(test)


def test_kinds_are_read_again_when_definitions_change() -> None:
    async def test(client: FakeClient, made: ClusterCache, _w: Any, informers: Informers, clock: ManualClock) -> None:  # fmt: skip
        told: list[int] = []
        kinds = DiscoveryRefresh(made.discovery, clock)
        kinds.on_change.append(lambda: told.append(1))
        kinds.follow(informers)
        task = asyncio.create_task(kinds.run())
        await settle()
        crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b"}, "spec": {"versions": [{"name": "v1", "served": True}]}}  # fmt: skip
        client.put(crd)
        await clock.advance(1)
        assert told == [1]
        client.put({**crd, "metadata": {"name": "a.b", "labels": {"x": "y"}}})
        await clock.advance(1)
        assert told == [1]
        client.take(CRDS, "a.b")
        await clock.advance(1)
        assert told == [1, 1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run_watching(test)
