"""Nobody reads through the store what RBAC hides, and nobody but the reports controller writes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from controllers.kube import KubeError
from controllers.report_store.api import Call
from controllers.report_store.requester import FrontProxy, Requester, front_proxy
from tests.controllers.kube.fake import FakeClient
from tests.controllers.report_store.stage import REPORTS, WRITER, report, staged

if TYPE_CHECKING:
    from pathlib import Path

SHOP = f"{REPORTS}/namespaces/shop/policyreports"
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"


def test_the_api_server_is_asked_about_exactly_what_is_read(tmp_path: Path) -> None:
    asked: list[dict] = []

    def may(spec: dict) -> bool:
        asked.append(spec)
        return spec["resourceAttributes"].get("namespace") == "shop"

    async def play() -> None:
        async with staged(tmp_path) as store:
            await store.create("shop", report("a"))
            await store.create("bank", report("b"))
            store.may = may
            reader = {"user": "ann"}
            assert (await store.ask("GET", SHOP, **reader))[0] == 200
            assert (await store.ask("GET", f"{REPORTS}/namespaces/bank/policyreports/b", **reader))[
                0
            ] == 403
            status, refused = await store.ask("GET", f"{REPORTS}/policyreports", **reader)
            assert (status, refused["reason"]) == (403, "Forbidden")
            assert 'User "ann" cannot list resource "policyreports"' in refused["message"]
            watch = await store.api.answer(Call("GET", SHOP, Requester("ann"), {"watch": "1"}))
            assert watch.status == 200
            assert (await store.ask("GET", SHOP, **reader, fieldSelector="metadata.name=a"))[
                0
            ] == 200

    asyncio.run(play())
    attributes = [one["resourceAttributes"] for one in asked]
    common = {"group": "wgpolicyk8s.io", "version": "v1alpha2", "resource": "policyreports"}
    assert attributes == [
        {"verb": "list", "namespace": "shop", **common},
        {"verb": "get", "namespace": "bank", "name": "b", **common},
        {"verb": "list", **common},
        {"verb": "watch", "namespace": "shop", **common},
        {"verb": "list", "namespace": "shop", "name": "a", **common},
    ]


@pytest.mark.parametrize(
    ("user", "create", "delete"),
    [(WRITER, 201, 200), (COLLECTOR, 403, 200), ("cluster-admin", 403, 403)],
)
def test_with_every_right_only_the_controller_writes_and_the_collector_deletes(
    tmp_path: Path, user: str, create: int, delete: int
) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            made = await store.create("shop", report("a"))
            assert (await store.ask("POST", SHOP, report("b"), user=user))[0] == create
            assert (await store.ask("PUT", f"{SHOP}/a", made, user=user))[0] == (
                200 if create == 201 else 403
            )
            assert (await store.ask("DELETE", f"{SHOP}/a", user=user))[0] == delete

    asyncio.run(play())


def test_the_controller_without_the_right_writes_nothing(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            store.may = lambda _: False
            assert (await store.ask("POST", SHOP, report("b")))[0] == 403

    asyncio.run(play())


def test_a_right_counts_for_seconds_and_none_where_nobody_says(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            assert (await store.ask("GET", SHOP, user="ann"))[0] == 200
            store.may = lambda _: False
            assert (await store.ask("GET", SHOP, user="ann"))[0] == 200
            await store.clock.advance(11)
            assert (await store.ask("GET", SHOP, user="ann"))[0] == 403
            await store.clock.advance(11)

            def away(_: object) -> dict:
                raise KubeError("away", status=503, reason="ServiceUnavailable")

            store.client.reviews["SubjectAccessReview"] = away
            assert (await store.ask("GET", SHOP, user="ann"))[0] == 503

    asyncio.run(play())


def test_who_is_not_named_by_the_api_server_gets_not_even_discovery(tmp_path: Path) -> None:
    async def play() -> None:
        async with staged(tmp_path) as store:
            for path in ("/apis", SHOP):
                assert (await store.api.answer(Call("GET", path, None))).status == 401

    asyncio.run(play())


PROXY = FrontProxy(
    b"", frozenset({"front"}), ("X-Remote-User",), ("X-Remote-Group",), ("X-Remote-Extra-",)
)
HEADERS = CIMultiDictProxy(
    CIMultiDict(
        [
            ("x-remote-user", "ann"),
            ("x-remote-group", "dev"),
            ("x-remote-group", "ops"),
            ("x-remote-extra-example.org%2fscope", "a"),
        ]
    )
)


def named(name: str) -> dict:
    return {"subject": ((("organizationName", "x"),), (("commonName", name),))}


def test_the_requester_is_who_the_headers_of_the_api_server_name() -> None:
    extra = (("example.org/scope", ("a",)),)
    assert PROXY.requester(named("front"), HEADERS) == Requester("ann", ("dev", "ops"), "", extra)


@pytest.mark.parametrize("certificate", [None, {}, named("somebody")])
def test_headers_of_anybody_else_name_nobody(certificate) -> None:
    assert PROXY.requester(certificate, HEADERS) is None


def test_a_certificate_without_a_user_names_nobody() -> None:
    assert PROXY.requester(named("front"), CIMultiDictProxy(CIMultiDict())) is None


def test_the_cluster_says_by_what_its_api_server_is_known() -> None:
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "requestheader-client-ca-file": "pem",
            "requestheader-allowed-names": '["front"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        },
    }
    found = asyncio.run(front_proxy(FakeClient(settings)))
    assert (found.authorities, found.names) == (b"pem", frozenset({"front"}))
    settings["data"] = {"client-ca-file": "pem"}
    with pytest.raises(KubeError, match="names no authority"):
        asyncio.run(front_proxy(FakeClient(settings)))


def test_a_list_of_reports_takes_the_right_to_create_everywhere_and_to_update_where_one_is_replaced(
    tmp_path: Path,
) -> None:
    asked: list[tuple[str, str]] = []

    def may(spec: dict) -> bool:
        attributes = spec["resourceAttributes"]
        asked.append((attributes["verb"], attributes.get("namespace", "")))
        return attributes["verb"] == "create"

    async def play() -> None:
        async with staged(tmp_path) as store:
            made = await store.create("shop", report("a"))
            store.may = may
            told = {"kind": "PolicyReportList", "items": [made]}
            place = f"{REPORTS}/policyreports"
            assert (await store.ask("POST", place, told))[0] == 403
            del made["metadata"]["resourceVersion"]
            assert (await store.ask("POST", place, told))[0] == 200
            assert (await store.ask("POST", place, told, user="ann"))[0] == 403

    asyncio.run(play())
    assert asked == [("create", ""), ("update", ""), ("create", "")]


def test_who_writes_reports_is_asked_about_once_for_all_that_he_reads(tmp_path: Path) -> None:
    asked: list[str] = []

    def may(spec: dict) -> bool:
        asked.append(spec["resourceAttributes"].get("name", ""))
        return spec["user"] == WRITER or asked[-1] == "b"

    async def play() -> None:
        async with staged(tmp_path) as store:
            for name in ("a", "b"):
                await store.create("shop", report(name))
            store.may = may
            for user, expected in ((WRITER, [200, 200]), ("ann", [403, 200])):
                found = [(await store.ask("GET", f"{SHOP}/{name}", user=user))[0] for name in "ab"]
                assert found == expected

    asyncio.run(play())
    assert asked == ["", "a", "b"]
