from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson

from .serving import DEADLINE, Api, config_map, pod, run

if TYPE_CHECKING:
    from pathlib import Path

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


async def events(api: Api, path: str, count: int, **headers: str) -> list[Any]:
    """Return the first events of a watch."""
    found: list[Any] = []
    async with asyncio.timeout(DEADLINE), api.open("GET", path, **headers) as answer:
        assert answer.status == 200, await answer.read()
        async for line in answer.content:
            found.append(orjson.loads(line))
            if len(found) == count:
                break
    return found


def test_a_watch_goes_on_where_a_list_ended(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("old"))
        version = (await api.get(MAPS))["metadata"]["resourceVersion"]
        await api.post(MAPS, config_map("new"))
        await api(
            "PATCH",
            f"{MAPS}/new",
            {"data": {"k": "v"}},
            Content_Type="application/merge-patch+json",
        )
        await api("DELETE", f"{MAPS}/new")

        found = await events(api, f"{MAPS}?watch=true&resourceVersion={version}", 3)

        assert [one["type"] for one in found] == ["ADDED", "MODIFIED", "DELETED"]
        versions = [int(one["object"]["metadata"]["resourceVersion"]) for one in found]
        assert versions == sorted(set(versions))

    run(tmp_path, test)


def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        version = (await api.get(MAPS))["metadata"]["resourceVersion"]
        made = config_map(k="v")
        made["metadata"]["labels"] = {"seen": "yes"}
        await api.post(MAPS, made)
        hidden = {"metadata": {"labels": {"seen": "no"}}}
        await api("PATCH", f"{MAPS}/a", hidden, Content_Type="application/merge-patch+json")

        path = f"{MAPS}?watch=true&resourceVersion={version}&labelSelector=seen%3Dyes"
        found = await events(api, path, 2)

        assert [one["type"] for one in found] == ["ADDED", "DELETED"]
        assert found[1]["object"]["metadata"]["labels"] == {"seen": "yes"}

    run(tmp_path, test)


def test_a_watch_without_a_version_begins_with_everything(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post(MAPS, config_map("only"))
        path = f"{MAPS}?watch=true&fieldSelector=metadata.name%3Donly"
        assert [one["type"] for one in await events(api, path, 1)] == ["ADDED"]
        streamed = f"{path}&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        found = await events(api, streamed, 2)
        assert [one["type"] for one in found] == ["ADDED", "BOOKMARK"]
        assert found[1]["object"]["metadata"]["annotations"] == {
            "k8s.io/initial-events-end": "true"
        }

    run(tmp_path, test)


def test_a_version_that_is_too_old_ends_the_watch_with_an_error_event(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        api.sandbox.cluster.store.oldest = 10
        found = await events(api, f"{MAPS}?watch=true&resourceVersion=3", 1)
        assert found[0]["type"] == "ERROR"
        assert (found[0]["object"]["code"], found[0]["object"]["reason"]) == (410, "Expired")

    run(tmp_path, test)


def test_a_watch_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        path = "/api/v1/namespaces/none/pods?watch=true&timeoutSeconds=1"
        assert await events(api, path, 1) == []

    run(tmp_path, test)


def test_a_selector_that_cannot_be_read_is_refused_before_the_stream_begins(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        status, refusal = await api("GET", f"{MAPS}?watch=true&labelSelector=a+b+c")
        assert (status, refusal["reason"]) == (400, "BadRequest")

    run(tmp_path, test)


def test_tables_have_the_columns_people_know_and_rows_with_metadata(tmp_path: Path) -> None:
    async def test(api: Api) -> None:
        await api.post("/api/v1/namespaces/default/pods", pod())
        found = (await api("GET", "/api/v1/namespaces/default/pods", Accept=TABLE))[1]
        names = [one["name"] for one in found["columnDefinitions"] if not one["priority"]]
        assert names == ["Name", "Ready", "Status", "Restarts", "Age"]
        assert found["rows"][0]["cells"][0] == "p"
        assert found["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        path = "/api/v1/namespaces/default/pods?watch=true"
        event = (await events(api, path, 1, Accept=TABLE))[0]
        assert (event["object"]["kind"], len(event["object"]["rows"])) == ("Table", 1)

    run(tmp_path, test)


def test_metadata_alone_can_be_asked_for(tmp_path: Path) -> None:
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

    async def test(api: Api) -> None:
        await api.post(MAPS, config_map(k="v"))
        found = (await api("GET", MAPS, Accept=accept))[1]
        assert found["kind"] == "PartialObjectMetadataList"
        assert all("data" not in one for one in found["items"])

    run(tmp_path, test)
