"""Entries of the global context: kept fresh, projected, and only for those who may see them (rows A-55, A-58)."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from controllers.kube import Discovery, KubeError
from controllers.kube.reflector import Informers
from controllers.lookups.cluster import ClusterSource, Entries
from controllers.lookups.egress import Gate
from controllers.lookups.errors import EgressError, MissingError, OutsideError
from controllers.lookups.services import ServiceSource
from engine.evaluate import GlobalLookup
from tests.clock import settle
from tests.controllers.kube.apiserver import run
from tests.controllers.kube.fake import FakeClient


def entry(name: str = "e", **spec):
    return {
        "apiVersion": "kyverno.io/v2beta1",
        "kind": "GlobalContextEntry",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod(name: str, namespace: str = "dev"):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


PODS_OF_DEV = {"version": "v1", "resource": "pods", "namespace": "dev"}
CALL = {"urlPath": "/version", "refreshInterval": "1m"}


@asynccontextmanager
async def scene(*objects):
    client = FakeClient(*objects)
    informers = Informers(client, clock=client.clock)
    discovery = Discovery(client)
    cluster = ClusterSource(client, discovery)
    services = ServiceSource(Gate())
    try:
        yield client, Entries(informers, discovery, cluster, services, clock=client.clock)
    finally:
        await informers.close()


def names(found) -> list[str]:
    return [obj["metadata"]["name"] for obj in found]


def test_objects_are_as_they_are_now() -> None:
    async def scenario() -> None:
        known = entry(kubernetesResource=PODS_OF_DEV)
        async with scene(known, pod("b"), pod("a"), pod("c", "ops")) as (client, entries):
            assert names(await entries.entry(GlobalLookup("e"))) == ["a", "b"]
            client.put(pod("d"))
            await settle()
            assert names(await entries.entry(GlobalLookup("e"))) == ["a", "b", "d"]
            assert [call.verb for call in client.calls].count("list") == 2

    run(scenario())


def test_an_entry_that_changes_is_another() -> None:
    async def scenario() -> None:
        known = entry(kubernetesResource=PODS_OF_DEV)
        async with scene(known, pod("a"), pod("c", "ops")) as (client, entries):
            assert names(await entries.entry(GlobalLookup("e"))) == ["a"]
            client.put(entry(kubernetesResource={**PODS_OF_DEV, "namespace": "ops"}))
            await settle()
            assert names(await entries.entry(GlobalLookup("e"))) == ["c"]

    run(scenario())


def test_projections_are_taken_from_the_data() -> None:
    async def scenario() -> None:
        projections = [{"name": "names", "jmesPath": "[].metadata.name"}]
        known = entry(kubernetesResource=PODS_OF_DEV, projections=projections)
        async with scene(known, pod("a")) as (_, entries):
            assert await entries.entry(GlobalLookup("e.names")) == ["a"]
            with pytest.raises(OutsideError, match="no projection `x`"):
                await entries.entry(GlobalLookup("e.x"))

    run(scenario())


def test_a_call_is_repeated_when_its_interval_has_passed() -> None:
    async def scenario() -> None:
        async with scene(entry(apiCall=CALL)) as (client, entries):
            client.answers["/version"] = {"minor": 1}
            assert await entries.entry(GlobalLookup("e")) == {"minor": 1}
            client.answers["/version"] = {"minor": 2}
            await client.clock.advance(59)
            assert await entries.entry(GlobalLookup("e")) == {"minor": 1}
            await client.clock.advance(2)
            assert await entries.entry(GlobalLookup("e")) == {"minor": 2}

    run(scenario())


def test_an_old_value_outlives_a_failure_and_a_first_failure_is_an_error() -> None:
    async def scenario() -> None:
        async with scene(entry(apiCall=CALL)) as (client, entries):
            client.answers["/version"] = KubeError("broken")
            with pytest.raises(KubeError):
                await entries.entry(GlobalLookup("e"))
            client.answers["/version"] = 1
            assert await entries.entry(GlobalLookup("e")) == 1
            client.answers["/version"] = KubeError("broken")
            await client.clock.advance(120)
            assert await entries.entry(GlobalLookup("e")) == 1
            client.put(entry(apiCall={**CALL, "urlPath": "/version?x"}))
            await settle()
            client.answers["/version?x"] = KubeError("broken")
            with pytest.raises(KubeError):
                await entries.entry(GlobalLookup("e"))

    run(scenario())


def test_an_entry_that_is_not_there_is_an_error() -> None:
    async def scenario() -> None:
        async with scene() as (_, entries):
            with pytest.raises(MissingError, match="`e` not found"):
                await entries.entry(GlobalLookup("e"))

    run(scenario())


@pytest.mark.parametrize("resource", [{}, {"version": "v1"}, {"version": "v9", "resource": "x"}])
def test_a_resource_that_the_server_does_not_have_is_an_error(resource) -> None:
    async def scenario() -> None:
        known = entry(kubernetesResource={"group": "none.example.com", **resource})
        async with scene(known) as (_, entries):
            with pytest.raises(OutsideError, match="has no resource"):
                await entries.entry(GlobalLookup("e"))

    run(scenario())


@pytest.mark.parametrize(
    "spec",
    [
        {"kubernetesResource": {**PODS_OF_DEV, "namespace": "ops"}},
        {"kubernetesResource": {**PODS_OF_DEV, "namespace": ""}},
        {"kubernetesResource": {"version": "v1", "resource": "pods"}},
        {"apiCall": CALL},
        {"apiCall": {"service": {"url": "http://example.com"}}},
    ],
)
def test_a_namespaced_policy_sees_only_objects_of_its_namespace(spec) -> None:
    async def scenario() -> None:
        own = entry("own", kubernetesResource=PODS_OF_DEV)
        async with scene(entry(**spec), own, pod("a")) as (_, entries):
            assert names(await entries.entry(GlobalLookup("own", within="dev"))) == ["a"]
            with pytest.raises(EgressError, match="not for this namespace"):
                await entries.entry(GlobalLookup("e", within="dev"))

    run(scenario())
