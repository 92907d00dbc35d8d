"""A filter of violations goes to a server that can choose reports by what they say, and changes nothing of what is found."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Invalid
from controllers.kube.kinds import Kind
from controllers.report_store.selecting import selector_of
from kubectl_kpolicy.cli import lists
from kubectl_kpolicy.cli.violations import _FAILING
from kubectl_kpolicy.cluster.fetching import Scope, fetch
from kubectl_kpolicy.cluster.violations import LISTING, SOURCES, all_rows, is_failure
from kubectl_kpolicy.filter.build import required
from kubectl_kpolicy.output.rows import severity_rank
from kubectl_kpolicy.session.cluster import ClusterFlags
from tests.controllers.kube.fake import FakeClient
from tests.controllers.report_store.stage import report

if TYPE_CHECKING:
    from controllers.kube.client import ListPage

NOW = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("", {}),
        ("policy=ask res=fail", {"policy": "ask", "result": "fail"}),
        ("sev:high and policy=ask", {"severity": "high", "policy": "ask"}),
        ("policy=ask or res=fail", {}),
        ("not policy=ask", {}),
        ("policy!=ask sev>=high age<1h", {}),
        ("policy=ask* res=fail,warn", {}),
        ("policy=Ask", {}),
        ("ask", {}),
    ],
)
def test_what_every_row_of_a_filter_has_is_known_before_any_is_read(
    where: str, words: dict
) -> None:
    assert required(where, LISTING) == words


class Server(FakeClient):
    """A server that can, or cannot, choose reports by their results; `asked` are the selectors it was given."""

    can_choose = can_sort = True
    sizes: tuple[int, ...] = ()

    async def list(self, kind: Any, namespace: str = "", **how: Any) -> ListPage:
        if not how.pop("sort_by", ""):
            return await super().list(kind, namespace, **how)
        most = how.pop("limit")
        page = await self.list_all(kind, namespace, **how)
        if not self.can_sort:
            return page
        self.sizes = (*self.sizes[:-1], most)

        def weight(one: Any) -> int:
            chosen = selector_of({"fieldSelector": how["field_selector"]})
            rows = ({**one, "results": [row]} for row in one["results"])
            return max(
                severity_rank(row["results"][0]["severity"]) for row in rows if chosen.fits(row)
            )

        worst = sorted(page.items, key=weight, reverse=True)
        return replace(page, items=worst[:most], sorted_by="severity")

    async def list_all(self, kind: Any, namespace: str = "", **how: Any) -> ListPage:
        fields = how.pop("field_selector", "")
        self.asked = [*getattr(self, "asked", []), fields]
        self.sizes = (*self.sizes, 0)
        if fields and not self.can_choose:
            raise Invalid("field label not supported: results.policy", status=400)
        page = await super().list_all(kind, namespace, **how)
        chosen = selector_of({"fieldSelector": fields})
        return replace(page, items=[one for one in page.items if chosen.fits(one)])


@pytest.mark.parametrize(("can_choose", "asked"), [(True, 1), (False, 2)])
def test_a_server_that_cannot_choose_reports_is_asked_for_all(can_choose: bool, asked: int) -> None:
    head = {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport"}
    one = report("a", ("ask", "fail", "high"))
    server = Server({**head, **one, "metadata": {"name": "a", "namespace": "shop"}})
    server.can_choose = can_choose
    scope = Scope(results="results.policy=ask")
    world = asyncio.run(fetch(server, [SOURCES[0]], NOW, scope))
    assert [row.text("policy") for row in all_rows(world)] == ["ask"]
    assert server.asked == ["results.policy=ask", ""][:asked]


REPORTS = {
    "a": ("critical", "fail"),
    "b": ("high", "fail"),
    "c": ("high", "pass"),
    "d": ("low", "error"),
    "e": ("critical", "skip"),
}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Server:
    head = {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport"}
    server = Server(
        *(
            {**head, **report(name, (f"p-{name}", result, severity)), "metadata": {"name": name, "namespace": "shop", "uid": name}}
            for name, (severity, result) in REPORTS.items()
        )
    )  # fmt: skip
    monkeypatch.setattr(lists.cluster, "now", lambda: NOW)
    monkeypatch.setattr(lists.cluster, "namespace_of", lambda *_: "")
    monkeypatch.setattr(
        lists.cluster, "with_client", lambda _, work: asyncio.run(work(server, None))
    )
    return server


def first(limit: int, where: str = "") -> list[str]:
    """Return the policies of the first violations that a list shows."""
    flags = lists.ListRequest(ClusterFlags(), limit=limit, results=_FAILING, where=where)
    found = lists.read(flags, LISTING, None, is_failure)
    rows = lists.selected(flags, LISTING.rows(found.world, NOW), LISTING, NOW, is_failure)
    return [row.text("policy") for row in rows]


@pytest.mark.parametrize(
    ("limit", "shown", "read"),
    [
        (1, ["p-a"], [1]),
        (2, ["p-a", "p-b"], [2]),
        (9, ["p-a", "p-b", "p-d"], [9]),
        (0, ["p-a", "p-b", "p-d"], [0]),
    ],
)
def test_of_the_first_violations_the_worst_are_read_and_no_more_than_are_needed(
    cluster: Server, limit: int, shown: list[str], read: list[int]
) -> None:
    assert first(limit) == shown

    assert list(dict.fromkeys(cluster.sizes)) == read
    assert set(cluster.asked) == {_FAILING}


def test_where_a_filter_leaves_too_few_of_the_worst_more_are_read(cluster: Server) -> None:
    assert first(1, where="res=error,warn") == ["p-d"]
    assert list(dict.fromkeys(cluster.sizes)) == [1, 20]


def test_a_report_read_for_another_policy_does_not_hide_a_worse_violation(cluster: Server) -> None:
    head = {"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport"}
    both = report("f", ("p-low", "fail", "low"), ("p-gone", "fail", "critical"))
    both["metadata"] = {"name": "f", "namespace": "shop", "uid": "f"}
    asyncio.run(cluster.create(Kind("wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport", namespaced=True), {**head, **both}))  # fmt: skip

    assert first(1, where='rule!="x" policy=p-low,p-b') == ["p-b"]


@pytest.mark.parametrize("can_choose", [True, False])
def test_a_server_that_cannot_choose_or_sort_reports_is_read_whole(
    cluster: Server, can_choose: bool
) -> None:
    cluster.can_choose, cluster.can_sort = can_choose, False

    assert first(1) == ["p-a"]
    assert cluster.sizes[-1] == 0
