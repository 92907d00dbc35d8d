import asyncio

import pytest

from controllers.kube import Conflict, Discovery, Gone, Invalid, KubeError, NotFound
from controllers.kube.errors import AlreadyExists
from controllers.kube.kinds import CLUSTER_POLICIES, CONFIG_MAPS, NAMESPACES, PODS, Kind
from tests.controllers.kube.fake import FakeClient

from .apiserver import run


def pod(name="web", namespace="dev", **metadata):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {},
    }


def test_a_created_object_gets_what_a_server_adds():
    async def scenario():
        client = FakeClient()
        made = await client.create(PODS, pod())
        assert made["metadata"]["resourceVersion"] == "1"
        assert made["metadata"]["uid"]
        assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
        assert await client.get(PODS, "web", "dev") == made

    run(scenario())


def test_creating_twice_is_refused():
    async def scenario():
        client = FakeClient(pod())
        with pytest.raises(AlreadyExists):
            await client.create(PODS, pod())

    run(scenario())


def test_generated_names_differ():
    async def scenario():
        client = FakeClient()
        nameless = {"metadata": {"generateName": "a-", "namespace": "dev"}}
        one, two = await client.create(PODS, nameless), await client.create(PODS, nameless)
        assert one["metadata"]["name"] != two["metadata"]["name"]

    run(scenario())


def test_a_stale_update_conflicts_and_a_dry_run_changes_nothing():
    async def scenario():
        client = FakeClient(pod())
        old = await client.get(PODS, "web", "dev")
        await client.update(PODS, {**old, "spec": {"a": 1}})
        with pytest.raises(Conflict):
            await client.update(PODS, {**old, "spec": {"a": 2}})
        await client.patch(PODS, "web", "dev", {"spec": {"a": 3}}, dry_run=True)
        assert (await client.get(PODS, "web", "dev"))["spec"] == {"a": 1}

    run(scenario())


def test_patches_merge_and_json_patches_apply():
    async def scenario():
        client = FakeClient({**pod(), "spec": {"a": 1, "b": 2}})
        assert (await client.patch(PODS, "web", "dev", {"spec": {"a": None, "c": 3}}))["spec"] == {"b": 2, "c": 3}  # fmt: skip
        operations = [{"op": "add", "path": "/spec/d", "value": 4}]
        made = await client.patch(
            PODS, "web", "dev", operations, content_type="application/json-patch+json"
        )
        assert made["spec"]["d"] == 4

    run(scenario())


def test_the_status_subresource_changes_status_only():
    async def scenario():
        client = FakeClient(pod())
        old = await client.get(PODS, "web", "dev")
        made = await client.update(
            PODS, {**old, "spec": {"x": 1}, "status": {"ok": True}}, subresource="status"
        )
        assert (made["spec"], made["status"]) == ({}, {"ok": True})

    run(scenario())


def test_deleting_another_object_of_the_same_name_is_refused():
    async def scenario():
        client = FakeClient(pod())
        with pytest.raises(Conflict):
            await client.delete(PODS, "web", "dev", uid="another")
        await client.delete(PODS, "web", "dev")
        with pytest.raises(NotFound):
            await client.get(PODS, "web", "dev")

    run(scenario())


def test_finalizers_keep_an_object_until_they_are_gone():
    async def scenario():
        client = FakeClient(pod(finalizers=["x"]))
        await client.delete(PODS, "web", "dev")
        assert (await client.get(PODS, "web", "dev"))["metadata"]["deletionTimestamp"]
        await client.patch(PODS, "web", "dev", {"metadata": {"finalizers": []}})
        assert client.stored(PODS) == []

    run(scenario())


def test_lists_are_selected_and_paged():
    async def scenario():
        client = FakeClient(
            *(pod(f"p{n}", labels={"n": str(n)}) for n in range(5)), pod("q", "ops")
        )
        page = await client.list(PODS, "dev", limit=2)
        assert [item["metadata"]["name"] for item in page.items] == ["p0", "p1"]
        assert page.remaining == 3
        rest = await client.list(PODS, "dev", limit=9, resume=page.resume)
        assert len(rest.items) == 3
        found = await client.list(PODS, label_selector="n in (1,2),n!=2,!x")
        assert [item["metadata"]["name"] for item in found.items] == ["p1"]
        found = await client.list(PODS, field_selector="metadata.namespace=ops")
        assert [item["metadata"]["name"] for item in found.items] == ["q"]
        with pytest.raises(Invalid):
            await client.list(PODS, label_selector="a b")

    run(scenario())


def test_a_watch_sees_objects_enter_and_leave_its_selection():
    async def scenario():
        client = FakeClient()
        seen = []

        async def watch():
            async for event in client.watch(PODS, "0", label_selector="team=a"):
                seen.append((event.type, event.object["metadata"]["name"]))  # noqa: PERF401 - kept while it runs

        task = asyncio.ensure_future(watch())
        await asyncio.sleep(0)
        client.put(pod("a", labels={"team": "a"}))
        client.put(pod("b"))
        client.put(pod("b", labels={"team": "a"}))
        client.put(pod("a"))
        client.disconnect()
        await task
        assert seen == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]

    run(scenario())


def test_a_watch_from_before_what_is_remembered_is_gone():
    async def scenario():
        client = FakeClient(pod())
        client.expire(PODS)
        with pytest.raises(Gone):
            _ = [event async for event in client.watch(PODS, "1")]

    run(scenario())


def test_failures_come_when_told():
    async def scenario():
        client = FakeClient(pod())
        client.fail("get", KubeError("broken"), resource="pods")
        with pytest.raises(KubeError, match="broken"):
            await client.get(PODS, "web", "dev")
        await client.get(PODS, "web", "dev")
        assert [call.verb for call in client.calls] == ["get", "get"]

    run(scenario())


def test_raw_paths_reach_objects_and_lists():
    async def scenario():
        client = FakeClient(pod(labels={"a": "b"}), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "dev"}})  # fmt: skip
        client.answers["/version"] = {"major": "1"}
        assert (await client.raw("GET", "/api/v1/namespaces/dev"))["kind"] == "Namespace"
        assert (await client.raw("GET", "/api/v1/namespaces/dev/pods/web"))["kind"] == "Pod"
        listed = await client.raw("GET", "/api/v1/pods?labelSelector=a%3Db")
        assert (listed["kind"], len(listed["items"])) == ("PodList", 1)
        assert await client.raw("GET", "/version") == {"major": "1"}
        with pytest.raises(NotFound):
            await client.raw("GET", "/apis/none/v1/x")
        with pytest.raises(Invalid):
            await client.raw("GET", "/api/v1/../x")

    run(scenario())


OLD = Kind("kyverno.io", "v2beta1", "clusterpolicies", "ClusterPolicy", False)


def test_discovery_finds_kinds_by_name_and_by_wildcards():
    async def scenario():
        client = FakeClient(kinds=(OLD,))
        discovery = Discovery(client)
        await discovery.refresh()
        assert discovery.find("v1", "Pod") == PODS
        assert discovery.find("v1", "Deployment") is None
        assert discovery.of_resource("kyverno.io", "clusterpolicies", "v1") == CLUSTER_POLICIES
        assert discovery.named("ConfigMap") == CONFIG_MAPS
        assert discovery.named("namespaces") == NAMESPACES
        found = discovery.matching("kyverno.io", "*", "Cluster*Policy")
        assert {kind.version for kind in found if kind.kind == "ClusterPolicy"} == {"v1", "v2beta1"}
        preferred = discovery.matching("*", "*", "ClusterPolicy", preferred=True)
        assert len(preferred) == 1
        assert discovery.find("kyverno.io/v1", "ClusterPolicy").namespaced is False

    run(scenario())


def test_a_group_whose_server_is_away_keeps_its_kinds():
    async def scenario():
        client = FakeClient()
        discovery = Discovery(client)
        await discovery.refresh()
        client.answers["/apis/kyverno.io/v1"] = KubeError("away", status=503)
        await discovery.refresh()
        assert discovery.missing == ("kyverno.io/v1",)
        assert discovery.find("kyverno.io/v1", "ClusterPolicy") == CLUSTER_POLICIES

    run(scenario())
