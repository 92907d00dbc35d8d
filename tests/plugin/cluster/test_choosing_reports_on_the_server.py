"""A filter of violations goes to a server that can choose reports by what they say, and changes nothing of what is found."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube import Invalid
from kubectl_kpolicy.cluster.fetching import Scope, fetch
from kubectl_kpolicy.cluster.violations import LISTING, SOURCES, all_rows
from kubectl_kpolicy.filter.build import required
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

    can_choose = True

    async def list_all(self, kind: Any, namespace: str = "", **how: Any) -> ListPage:
        fields = how.pop("field_selector", "")
        self.asked = [*getattr(self, "asked", []), fields]
        if fields and not self.can_choose:
            raise Invalid("field label not supported: results.policy", status=400)
        return await super().list_all(kind, namespace, **how)


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
