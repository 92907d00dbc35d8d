"""The store as kubectl, the console and the reports controller find it: an API server for reports of both groups."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from controllers.report_store.batch import Change, at_places
from controllers.report_store.database import Sqlite
from controllers.report_store.feed import MOST_TOGETHER, Subscription
from tests.controllers.report_store.stage import OPEN, REPORTS, TABLE, report, staged, taken

if TYPE_CHECKING:
    from pathlib import Path

SHOP = f"{REPORTS}/namespaces/shop/policyreports"
ALL = f"{REPORTS}/policyreports"


def names(found: dict) -> list[str]:
    return [one["metadata"]["name"] for one in found["items"]]


def test_a_report_is_created_read_changed_and_deleted(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            made = await store.create("shop", report("a", ("ask", "fail", "high")))
            assert made["kind"] == "PolicyReport"
            assert made["metadata"]["uid"]
            assert made["metadata"]["namespace"] == "shop"
            assert await store.ask("GET", f"{SHOP}/a") == (200, made)
            status, changed = await store.ask("PUT", f"{SHOP}/a", {**made, "results": []})
            assert (status, changed["metadata"]["generation"]) == (200, 2)
            assert int(changed["metadata"]["resourceVersion"]) > int(
                made["metadata"]["resourceVersion"]
            )
            assert await store.ask("PUT", f"{SHOP}/a", changed) == (200, changed)
            status, refused = await store.ask("PUT", f"{SHOP}/a", made)
            assert (status, refused["reason"]) == (409, "Conflict")
            wrong = {"preconditions": {"uid": "other"}}
            assert (await store.ask("DELETE", f"{SHOP}/a", wrong))[0] == 409
            assert (await store.ask("DELETE", f"{SHOP}/a"))[0] == 200
            status, refused = await store.ask("GET", f"{SHOP}/a")
            assert (status, refused["reason"]) == (404, "NotFound")

    asyncio.run(play())


def test_both_groups_tell_of_the_same_reports(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            made = await store.create("shop", report("a", ("ask", "fail", "high")))
            await store.create("", report("b", ("ask", "fail", "high")))
            status, found = await store.ask("GET", f"{OPEN}/namespaces/shop/reports/a")
            assert status == 200
            assert found == {**made, "apiVersion": "openreports.io/v1alpha1", "kind": "Report"}
            _, listed = await store.ask("GET", f"{OPEN}/clusterreports")
            assert (listed["kind"], names(listed)) == ("ClusterReportList", ["b"])
            assert listed["items"][0]["kind"] == "ClusterReport"

    asyncio.run(play())


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"metadata": {}}, 422),
        ({"metadata": {"name": "Not A Name"}}, 422),
        ({"metadata": {"name": "a", "namespace": "bank"}}, 400),
        ({"metadata": {"name": "a", "resourceVersion": "4"}}, 400),
        ({"metadata": {"name": "a"}, "kind": "Pod"}, 400),
        ({"metadata": {"name": "a"}, "results": [{"result": "maybe"}]}, 422),
        ({"metadata": {"name": "a"}, "results": {"result": "fail"}}, 400),
        ([], 400),
    ],
)
def test_what_is_no_report_is_refused_and_leaves_nothing(tmp_path: Path, body, code: int) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            status, found = await store.ask("POST", SHOP, body)
            assert (status, found["kind"]) == (code, "Status")
            assert names((await store.ask("GET", ALL))[1]) == []

    asyncio.run(play())


def test_a_second_report_of_a_name_is_refused_and_a_dry_run_leaves_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            status, tried = await store.ask("POST", SHOP, report("a"), dryRun="All")
            assert (status, tried["metadata"]["name"]) == (201, "a")
            first = await store.create("shop", report("a"))
            assert (await store.ask("DELETE", f"{SHOP}/a", dryRun="All"))[0] == 200
            status, refused = await store.ask("POST", SHOP, report("a"))
            assert (status, refused["reason"]) == (409, "AlreadyExists")
            assert await store.ask("GET", f"{SHOP}/a") == (200, first)

    asyncio.run(play())


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"fieldSelector": "metadata.name=b"}, ["b"]),
        ({"fieldSelector": "metadata.namespace!=shop"}, ["d"]),
        ({"fieldSelector": "scope.name=pod-a"}, ["a"]),
        ({"fieldSelector": "results.result=fail"}, ["a", "c", "d"]),
        ({"fieldSelector": "results.policy=ask,results.result=fail"}, ["a", "d"]),
        ({"fieldSelector": "results.severity=high,results.policy!=ask"}, ["c"]),
        ({"labelSelector": "team=red"}, ["a"]),
        ({"labelSelector": "team"}, ["a", "b"]),
        ({"labelSelector": "!team"}, ["c", "d"]),
        ({"labelSelector": "team!=red"}, ["b", "c", "d"]),
        (
            {"labelSelector": "team in (red, blue)", "fieldSelector": "results.result=pass"},
            ["b", "a"],
        ),
        ({"labelSelector": "team notin (red)", "fieldSelector": "results.result=fail"}, ["c", "d"]),
    ],
)
def test_selectors_choose_alike_in_lists_and_in_watches(tmp_path: Path, query, found) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            await store.create(
                "shop", report("a", ("ask", "fail"), ("tell", "pass"), labels={"team": "red"})
            )
            await store.create("shop", report("b", ("ask", "pass"), labels={"team": "blue"}))
            await store.create("shop", report("c", ("tell", "fail", "high"), ("ask", "pass")))
            await store.create("teller", report("d", ("ask", "fail", "high")))
            assert sorted(names((await store.ask("GET", ALL, **query))[1])) == sorted(found)
            async with store.watch(ALL, resourceVersion="1", **query) as events:
                told = [await anext(events)]
                store.feed.end_all()
                told += [one async for one in events]
            assert sorted(one["object"]["metadata"]["name"] for one in told) == sorted(found)

    asyncio.run(play())


def test_a_field_that_reports_are_not_chosen_by_is_refused(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            status, found = await store.ask("GET", ALL, fieldSelector="spec.nodeName=a")
            assert (status, found["message"]) == (400, "field label not supported: spec.nodeName")

    asyncio.run(play())


def test_later_pages_are_as_of_the_first_whatever_is_written_meanwhile(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for name in "bcdef":
                await store.create("shop", report(name, ("ask", "fail")))
            _, first = await store.ask("GET", ALL, limit="2")
            assert names(first) == ["b", "c"]
            await store.create("shop", report("cc", ("ask", "fail")))
            await store.ask("DELETE", f"{SHOP}/e")
            _, changed = await store.ask("GET", f"{SHOP}/d")
            await store.ask("PUT", f"{SHOP}/d", {**changed, "results": []})
            token = first["metadata"]["continue"]
            where = {"fieldSelector": "results.result=fail"}
            _, second = await store.ask("GET", ALL, limit="2", **{"continue": token}, **where)
            assert names(second) == ["d", "e"]
            assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
            token = second["metadata"]["continue"]
            _, third = await store.ask("GET", ALL, limit="2", **{"continue": token}, **where)
            assert names(third) == ["f"]
            assert "continue" not in third["metadata"]
            assert names((await store.ask("GET", ALL, **where))[1]) == ["b", "c", "cc", "f"]
            version = first["metadata"]["resourceVersion"]
            _, then = await store.ask(
                "GET", ALL, resourceVersion=version, resourceVersionMatch="Exact"
            )
            assert names(then) == ["b", "c", "d", "e", "f"]

    asyncio.run(play())


def test_the_first_page_of_everything_says_how_many_come_after(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for place, names_there in (("shop", "abc"), ("teller", "de")):
                for name in names_there:
                    await store.create(place, report(name, ("ask", "fail")))

            async def left(path: str, **query: str) -> int | None:
                return (await store.ask("GET", path, **query))[1]["metadata"].get(
                    "remainingItemCount"
                )

            assert await left(ALL, limit="1") == 4
            assert await left(SHOP, limit="1") == 2
            assert await left(SHOP, limit="3") is None
            assert await left(ALL, limit="1", fieldSelector="results.result=fail") is None

    asyncio.run(play())


def test_versions_that_are_forgotten_or_yet_to_come_are_refused(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for name in "abc":
                await store.create("shop", report(name))
            _, first = await store.ask("GET", ALL, limit="1")
            await store.create("shop", report("d"))
            await store.clock.advance(3600)
            await store.storage.forget()
            token = {"continue": first["metadata"]["continue"]}
            status, refused = await store.ask("GET", ALL, limit="1", **token)
            assert (status, refused["reason"]) == (410, "Expired")
            status, refused = await store.ask("GET", ALL, resourceVersion="99")
            assert (status, refused["reason"]) == (504, "Timeout")
            async with store.watch(ALL, resourceVersion="2") as events:
                event = await anext(events)
            assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
            assert names((await store.ask("GET", ALL, resourceVersion="0"))[1]) == list("abcd")

    asyncio.run(play())


def test_a_watch_tells_what_is_there_and_what_changes(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            made = await store.create("shop", report("a", ("ask", "fail")))
            await store.create("", report("z", ("ask", "fail")))
            query = {"fieldSelector": "results.result=fail", "allowWatchBookmarks": "true"}
            initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            async with store.watch(ALL, **query, **initial) as events:
                assert await taken(events, 1) == [("ADDED", "a")]
                mark = await anext(events)
                assert mark["object"]["metadata"]["annotations"] == {
                    "k8s.io/initial-events-end": "true"
                }
                await store.create("shop", report("b", ("ask", "pass")))
                await store.create("shop", report("c", ("ask", "fail")))
                assert await taken(events, 1) == [("ADDED", "c")]
                _, changed = await store.ask("PUT", f"{SHOP}/a", {**made, "summary": {"fail": 1}})
                assert await taken(events, 1) == [("MODIFIED", "a")]
                await store.ask("PUT", f"{SHOP}/a", {**changed, "results": []})
                assert await taken(events, 1) == [("DELETED", "a")]
                await store.ask("DELETE", f"{SHOP}/c")
                assert await taken(events, 1) == [("DELETED", "c")]

    asyncio.run(play())


def test_kubectl_gets_a_table_with_the_columns_of_the_definition(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            await store.create("shop", report("a", ("ask", "fail")))
            await store.clock.advance(90)
            _, table = await store.ask("GET", ALL, accept=TABLE)
            columns = [one["name"] for one in table["columnDefinitions"]]
            assert columns == [
                "Name",
                "Kind",
                "Name",
                "Pass",
                "Fail",
                "Warn",
                "Error",
                "Skip",
                "Age",
            ]
            assert table["rows"][0]["cells"] == ["a", "Pod", "pod-a", 0, 1, 0, 0, 0, "90s"]
            assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
            _, whole = await store.ask("GET", ALL, accept=TABLE, includeObject="Object")
            assert whole["rows"][0]["object"]["kind"] == "PolicyReport"
            partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            _, found = await store.ask("GET", ALL, accept=partial)
            assert found["kind"] == "PartialObjectMetadataList"
            assert set(found["items"][0]) == {"apiVersion", "kind", "metadata"}

    asyncio.run(play())


def test_discovery_names_groups_versions_and_resources(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            _, groups = await store.ask("GET", "/apis", user="anybody")
            assert [one["name"] for one in groups["groups"]] == ["wgpolicyk8s.io", "openreports.io"]
            _, resources = await store.ask("GET", OPEN, user="anybody")
            found = [
                (one["name"], one["kind"], one["namespaced"]) for one in resources["resources"]
            ]
            assert found == [
                ("reports", "Report", True),
                ("clusterreports", "ClusterReport", False),
            ]
            _, openapi = await store.ask("GET", "/openapi/v3/apis/wgpolicyk8s.io/v1alpha2")
            assert "io.wgpolicyk8s.v1alpha2.PolicyReport" in openapi["components"]["schemas"]
            assert (await store.ask("GET", f"{OPEN}/things"))[0] == 404
            assert (await store.ask("PATCH", f"{SHOP}/a"))[0] == 405

    asyncio.run(play())


def test_what_was_acknowledged_is_there_after_another_start(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            made = [await store.create("shop", report(name, ("ask", "fail"))) for name in "abc"]
        async with staged(tmp_path) as store:
            _, found = await store.ask("GET", ALL)
            assert found["items"] == made
            assert found["metadata"]["resourceVersion"] == made[-1]["metadata"]["resourceVersion"]

    asyncio.run(play())


def test_many_writers_at_once_each_get_their_own_answer(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            asked = [store.ask("POST", SHOP, report(f"r{number % 40}")) for number in range(80)]
            answers = await asyncio.gather(*asked)
            assert sorted(status for status, _ in answers) == [201] * 40 + [409] * 40
            versions = [
                one["metadata"]["resourceVersion"] for status, one in answers if status == 201
            ]
            assert len(set(versions)) == 40

    asyncio.run(play())


def of(namespace: str, made: dict, **metadata: str) -> dict:
    """Return a report as an item of a list, which names its namespace."""
    return {**made, "metadata": {**made["metadata"], "namespace": namespace, **metadata}}


def test_reports_of_a_list_are_written_together_and_each_has_its_own_answer(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            there = await store.create("shop", report("a", ("ask", "fail", "high")))
            version = there["metadata"]["resourceVersion"]
            items = [
                of("shop", report("a"), resourceVersion=version),
                of("shop", report("a"), resourceVersion=version),
                of("shop", report("a")),
                of("bank", report("b", ("ask", "pass", "low"))),
                of("bank", report("NO")),
                of("../x", report("c")),
                report("d"),
                {},
            ]
            told = {"kind": "PolicyReportList", "items": items}
            status, answer = await store.ask("POST", ALL, told)
            assert (status, answer["kind"]) == (200, "List")
            said = [one.get("reason") or one["status"] for one in answer["items"]]
            assert said == [
                "Success", "Conflict", "AlreadyExists", "Success",
                "Invalid", "BadRequest", "BadRequest", "BadRequest",
            ]  # fmt: skip
            _, found = await store.ask("GET", ALL)
            kept = [(one["metadata"]["namespace"], len(one["results"])) for one in found["items"]]
            assert (names(found), kept) == (["b", "a"], [("bank", 1), ("shop", 0)])
            one = {"kind": "ClusterPolicyReportList", "items": [report("c")]}
            assert (await store.ask("POST", f"{REPORTS}/clusterpolicyreports", one))[0] == 200
            assert (await store.ask("GET", f"{REPORTS}/clusterpolicyreports/c"))[0] == 200

    asyncio.run(play())


@pytest.mark.parametrize(
    ("path", "told", "code"),
    [
        (ALL, report("a"), 405),
        (ALL, {"kind": "PolicyReportList"}, 400),
        (ALL, {"kind": "PolicyReportList", "items": ["a"]}, 400),
        (ALL, {"kind": "ConfigMapList", "items": []}, 405),
        (ALL, {"kind": "PolicyReportList", "items": [{}] * 501}, 413),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, path: str, told: dict, code: int) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            assert (await store.ask("POST", path, told))[0] == code

    asyncio.run(play())


def test_a_list_of_one_namespace_takes_no_report_of_another_and_a_dry_run_keeps_none(
    tmp_path: Path,
) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            told = {"kind": "PolicyReportList", "items": [of("bank", report("a")), report("b")]}
            _, answer = await store.ask("POST", SHOP, told)
            assert [one["status"] for one in answer["items"]] == ["Failure", "Success"]
            told["items"] = [report("c")]
            _, answer = await store.ask("POST", SHOP, told, dryRun="All")
            assert answer["items"][0]["status"] == "Success"
            assert names((await store.ask("GET", ALL))[1]) == ["b"]

    asyncio.run(play())


def test_a_watch_is_told_of_a_rush_in_parts_that_stay_small() -> None:
    async def play() -> None:
        subscription = Subscription()
        changes = [Change(n, ("shop", "a"), None, b"{}") for n in range(2 * MOST_TOGETHER + 1)]
        assert all(map(subscription.put, changes))
        subscription.end()
        parts = [await subscription.next(1) for _ in range(3)]
        assert list(map(len, parts)) == [MOST_TOGETHER, MOST_TOGETHER, 2]
        assert [one for part in parts for one in part] == [*changes, None]

    asyncio.run(play())


def test_reports_at_some_places_are_looked_up_and_not_looked_for_among_all(tmp_path: Path) -> None:
    database = Sqlite(tmp_path / "reports.db")
    database.prepare()
    with closing(database.connect()) as session:
        plan = session.rows(f"EXPLAIN QUERY PLAN {at_places(3)}", ["shop", "a"] * 3)
    steps = [row[-1] for row in plan]
    assert any("SEARCH reports" in step for step in steps)
    assert not any("SCAN reports" in step for step in steps)


def test_reports_at_some_places_are_listed_by_one_request(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for namespace, name in (("bank", "a"), ("bank", "b"), ("shop", "a"), ("", "c")):
                await store.create(namespace, report(name))
            only = "bank/a,shop/a,shop/b,shop/a"
            _, found = await store.ask("GET", ALL, only=only, limit="1")
            assert names(found) == ["a", "a"]
            assert [one["metadata"]["namespace"] for one in found["items"]] == ["bank", "shop"]
            assert not found["metadata"].get("continue")
            assert names((await store.ask("GET", SHOP, only=only))[1]) == ["a"]
            path = f"{REPORTS}/clusterpolicyreports"
            assert names((await store.ask("GET", path, only="c,d,bank/a"))[1]) == ["c"]
            many = ",".join(f"shop/{number}" for number in range(501))
            assert (await store.ask("GET", ALL, only=many))[0] == 400
            exact = {"resourceVersion": "2", "resourceVersionMatch": "Exact"}
            assert (await store.ask("GET", ALL, only=only, **exact))[0] == 400

    asyncio.run(play())


def test_the_documented_query_tells_the_results_at_the_end_of_each_day(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            await store.clock.advance(-store.clock.now().timestamp() % 86400)
            first = store.clock.now().date().isoformat()
            await store.create(
                "shop", report("a", ("ask", "fail", "high"), ("ask", "pass", "high"))
            )
            await store.create("bank", report("b", ("ask", "fail", "high")))
            await store.clock.advance(2 * 86400)
            second = store.clock.now().date().isoformat()
            await store.ask("DELETE", f"{SHOP}/a")
            await store.create("shop", report("c", ("ask", "fail", "low")))
            assert await store.by_day("shop") == [
                (first, "high", "fail", 1),
                (first, "high", "pass", 1),
                (second, "high", "fail", 0),
                (second, "high", "pass", 0),
                (second, "low", "fail", 1),
            ]
            await store.clock.advance(500 * 86400)
            await store.storage.forget()
            oldest = (store.clock.now() - timedelta(days=400)).date().isoformat()
            assert await store.by_day("shop") == [(oldest, "low", "fail", 1)]
            assert await store.by_day("bank") == [(oldest, "high", "fail", 1)]

    asyncio.run(play())


def timed(name: str, at: int, *rows: tuple[str, ...]) -> dict:
    made = report(name, *rows)
    for row in made["results"]:
        row["timestamp"] = {"seconds": at, "nanos": 0}
    return made


WORST = (
    timed("low-new", 900, ("ask", "fail", "low")),
    timed("high-old", 100, ("ask", "fail", "high"), ("ask", "fail", "low")),
    timed("high-new", 500, ("ask", "fail", "high"), ("tell", "fail", "high")),
    timed("critical-passes", 700, ("ask", "pass", "critical"), ("ask", "fail", "medium")),
    timed("critical", 50, ("tell", "fail", "critical")),
    timed("unheard-of", 990, ("ask", "fail", "dire")),
    timed("passes", 800, ("ask", "pass", "critical")),
)


@pytest.mark.parametrize(
    ("fields", "limit", "found"),
    [
        (
            "results.result=fail",
            50,
            ["critical", "high-new", "high-old", "critical-passes", "low-new", "unheard-of"],
        ),
        ("results.result=fail", 2, ["critical", "high-new"]),
        ("results.policy=ask,results.result=fail", 3, ["high-new", "high-old", "critical-passes"]),
        ("results.severity=high", 1, ["high-new"]),
        ("scope.name=pod-low-new,results.result=fail", 1, ["low-new"]),
        ("", 2, ["passes", "critical-passes"]),
    ],
)
def test_the_worst_and_newest_come_first_where_that_is_asked_for(
    tmp_path: Path, fields: str, limit: int, found: list[str]
) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for one in WORST:
                await store.create("shop", one)
            query = {"sortBy": "severity", "limit": str(limit), "fieldSelector": fields}
            for path in (SHOP, ALL):
                status, page = await store.ask("GET", path, **query)
                assert (status, names(page)) == (200, found)
                assert page["metadata"]["sortedBy"] == "severity"
                assert "continue" not in page["metadata"]

    asyncio.run(play())


@pytest.mark.parametrize(
    "query",
    [{"sortBy": "age", "limit": "5"}, {"sortBy": "severity"}, {"sortBy": "severity", "limit": "5", "continue": "e30="}],
)  # fmt: skip
def test_an_order_that_there_is_none_of_is_refused(tmp_path: Path, query: dict) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            assert (await store.ask("GET", ALL, **query))[0] == 400

    asyncio.run(play())


def test_a_database_of_a_release_that_kept_no_times_goes_on(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            await store.create("shop", WORST[0])
        with closing(sqlite3.connect(next(tmp_path.glob("*.db")))) as file:
            for index in ("results_worst", "results_worst_of_policy"):
                file.execute(f"DROP INDEX {index}")
            file.execute("ALTER TABLE results DROP COLUMN newest")
            file.commit()
        async with staged(tmp_path) as store:
            await store.create("shop", timed("older", 10, ("ask", "fail", "low")))
            query = {"sortBy": "severity", "limit": "5", "fieldSelector": "results.result=fail"}
            _, page = await store.ask("GET", SHOP, **query)
            assert names(page) == ["older", "low-new"]

    asyncio.run(play())
