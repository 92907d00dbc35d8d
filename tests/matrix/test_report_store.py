"""Rows of the report store: what each person reads and does through it is what the API server's RBAC lets him, and never more.

Actors x verbs x places x groups. What is right is asked of the roles themselves, once more and without the store.
"""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING

from controllers.manifests.choice import Choice
from controllers.manifests.deploy import report_store
from tests.controllers.report_store.stage import OPEN, REPORTS, WRITER, report, staged

if TYPE_CHECKING:
    from pathlib import Path

READS = frozenset({"get", "list", "watch"})
WRITES = frozenset({"create", "update", "delete"})
GROUPS = {"wgpolicyk8s.io": (REPORTS, "policyreports"), "openreports.io": (OPEN, "reports")}
COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
RIGHTS = {
    "nobody": (frozenset(), (), ()),
    "reader": (READS, ("shop",), tuple(GROUPS)),
    "reader of one group": (READS, ("shop",), ("openreports.io",)),
    "getter": (frozenset({"get"}), ("shop", "bank"), tuple(GROUPS)),
    "auditor": (READS, ("shop", "bank", ""), tuple(GROUPS)),
    "admin": (READS | WRITES, ("shop", "bank", ""), tuple(GROUPS)),
    WRITER: (READS | WRITES, ("shop", "bank", ""), tuple(GROUPS)),
    COLLECTOR: (READS | WRITES, ("shop", "bank", ""), tuple(GROUPS)),
}
"""What RBAC gives each: verbs, namespaces (empty: all at once), groups."""


def may(spec: dict) -> bool:
    verbs, places, groups = RIGHTS[spec["user"]]
    asked = spec["resourceAttributes"]
    return (
        asked["verb"] in verbs and asked["group"] in groups and asked.get("namespace", "") in places
    )


def is_right(user: str, verb: str, place: str, group: str) -> bool:
    verbs, places, groups = RIGHTS[user]
    if not (verb in verbs and place in places and group in groups):
        return False
    return verb in READS or user == WRITER or (verb == "delete" and user == COLLECTOR)


def test_nobody_does_through_the_store_what_he_may_not_do_himself(tmp_path: Path) -> None:
    happened = {True: 0, False: 0}

    async def play() -> None:
        async with staged(tmp_path) as store:
            for place in ("shop", "bank"):
                await store.create(place, report("kept"))
            store.may = may
            for user, verb, place, group in product(
                RIGHTS, sorted(READS | WRITES), ("shop", "bank", ""), GROUPS
            ):
                if not place and verb not in ("list", "watch"):
                    continue
                if place and verb in WRITES:
                    await prepare(store, place)
                root, plural = GROUPS[group]
                path = f"{root}/namespaces/{place}/{plural}" if place else f"{root}/{plural}"
                expected = is_right(user, verb, place, group)
                assert await ask(store, user, verb, path) is expected, (user, verb, place, group)
                happened[expected] += 1

    asyncio.run(play())
    assert happened[True] > 40
    assert happened[False] > 100


async def prepare(store, place: str) -> None:
    """Have one report there that can be changed and deleted, and none that is to be created."""
    path = f"{REPORTS}/namespaces/{place}/policyreports"
    await store.ask("DELETE", f"{path}/made")
    await store.ask("POST", path, report("there"))


async def ask(store, user: str, verb: str, path: str) -> bool:
    if verb == "watch":
        return (await store.ask_status("GET", path, user=user, watch="1")) == 200
    method = {"create": "POST", "update": "PUT", "delete": "DELETE"}.get(verb, "GET")
    name = {"create": "", "list": "", "get": "/kept"}.get(verb, "/there")
    body = {"create": report("made"), "update": report("there")}.get(verb)
    return (await store.ask_status(method, f"{path}{name}", body, user=user)) in (200, 201)


def test_the_account_of_the_store_changes_nothing_but_its_own_apiservices() -> None:
    [role] = [one for one in report_store.objects(Choice()) if one["kind"] == "ClusterRole"]
    changes = [one for one in role["rules"] if not set(one["verbs"]) <= READS]
    assert [(one["resources"], one.get("resourceNames"), one["verbs"]) for one in changes] == [
        (["subjectaccessreviews"], None, ["create"]),
        (["apiservices"], list(report_store.api_service_names()), ["get", "patch"]),
    ]
    assert not [one for one in report_store.objects(Choice()) if one["kind"] == "Role"]


def test_a_sorted_page_shows_each_reader_what_a_list_shows_him(tmp_path: Path) -> None:
    happened = {200: 0, 403: 0}

    async def play() -> None:
        async with staged(tmp_path) as store:
            for place in ("shop", "bank"):
                await store.create(place, report(f"of-{place}", ("ask", "fail", "high")))
            store.may = may
            for user, place, group in product(RIGHTS, ("shop", "bank", ""), GROUPS):
                root, plural = GROUPS[group]
                path = f"{root}/namespaces/{place}/{plural}" if place else f"{root}/{plural}"
                order = {"sortBy": "severity", "limit": "10"}
                status, page = await store.ask("GET", path, user=user, **order)
                allowed = 200 if is_right(user, "list", place, group) else 403
                assert status == allowed, (user, place, group)
                shown = {one["metadata"]["namespace"] for one in page.get("items", ())}
                assert shown == (set() if status == 403 else {place} if place else {"shop", "bank"})
                happened[status] += 1

    asyncio.run(play())
    assert min(happened.values()) > 10
