"""The project's own client against the sandbox: what loops and webhook ask of any API server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NotFound, connect
from controllers.kube.access import Impersonation, load_access
from controllers.kube.kinds import PODS, Kind
from kpolicy_sandbox.call import User

from .serving import Api, config_map, pod, run

if TYPE_CHECKING:
    from pathlib import Path

MAPS = Kind("", "v1", "configmaps", "ConfigMap", namespaced=True)


def test_objects_are_written_and_read_and_refusals_are_our_own_errors(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        client = connect(load_access(api.sandbox.kubeconfig))
        try:
            made = await client.create(MAPS, config_map(k="1"))
            with pytest.raises(AlreadyExists):
                await client.create(MAPS, config_map())
            changed = await client.update(MAPS, {**made, "data": {"k": "2"}})
            with pytest.raises(Conflict):
                await client.update(MAPS, made)
            assert changed["data"] == {"k": "2"}
            patched = await client.patch(MAPS, "a", "default", {"data": {"z": "1"}})
            assert patched["data"] == {"k": "2", "z": "1"}
            with pytest.raises(Conflict):
                await client.delete(MAPS, "a", "default", uid="other")
            await client.delete(MAPS, "a", "default", uid=made["metadata"]["uid"])
            with pytest.raises(NotFound):
                await client.get(MAPS, "a", "default")
            with pytest.raises(Invalid):
                await client.create(MAPS, config_map("Not Valid"))
        finally:
            await client.close()

    run(tmp_path, test)


def test_long_lists_come_in_pages_and_watches_go_on_from_there(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        client = connect(load_access(api.sandbox.kubeconfig))
        try:
            for number in range(7):
                await client.create(MAPS, config_map(f"m{number}"))
            page = await client.list(MAPS, "default", limit=3)
            assert len(page.items) == 3
            everything = await client.list_all(MAPS, "default")
            names = [one["metadata"]["name"] for one in everything.items]
            assert names == ["kube-root-ca.crt", *(f"m{number}" for number in range(7))]
            await client.create(MAPS, config_map("late"))
            async with asyncio.timeout(20):
                async for event in client.watch(
                    MAPS, everything.resource_version, namespace="default"
                ):
                    assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "late")
                    break
            api.sandbox.cluster.store.oldest = 10
            too_old = client.watch(MAPS, "3", namespace="default")
            with pytest.raises(Gone):
                await anext(too_old)
        finally:
            await client.close()

    run(tmp_path, test)


def test_another_user_gets_that_users_rights(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        jane = connect(load_access(api.sandbox.kubeconfig_of(User("jane"))))
        acting = connect(
            replace(load_access(api.sandbox.kubeconfig), impersonate=Impersonation("jane"))
        )
        try:
            for client in (jane, acting):
                with pytest.raises(Forbidden):
                    await client.list(PODS, "default")
            review = Kind(
                "authorization.k8s.io",
                "v1",
                "selfsubjectaccessreviews",
                "SelfSubjectAccessReview",
                namespaced=False,
            )
            asked: dict[str, Any] = {"resourceAttributes": {"verb": "list", "resource": "pods"}}
            assert (await jane.review(review, asked))["allowed"] is False
        finally:
            await jane.close()
            await acting.close()

    run(tmp_path, test)


def test_raw_paths_answer_as_rules_with_api_calls_expect(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        client = connect(load_access(api.sandbox.kubeconfig))
        try:
            await client.create(PODS, pod())
            found: Any = await client.raw("GET", "/api/v1/namespaces/default/pods")
            assert [one["metadata"]["name"] for one in found["items"]] == ["p"]
            version: Any = await client.raw("GET", "/version")
            assert version["major"] == "1"
        finally:
            await client.close()

    run(tmp_path, test)
