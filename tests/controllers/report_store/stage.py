"""A report store for tests: whole but for HTTP and TLS, with rights that a table gives."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from controllers.report_store.api import Api, Call
from controllers.report_store.database import Sqlite
from controllers.report_store.feed import Feed
from controllers.report_store.requester import Requester
from controllers.report_store.rights import Rights
from controllers.report_store.storage import Storage
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from controllers.report_store.database import Database

DOCUMENTED = Path(__file__).parents[3] / "docs" / "report-store.md"
WRITER = "system:serviceaccount:kyverno:kyverno-reports-controller"
REPORTS = "/apis/wgpolicyk8s.io/v1alpha2"
OPEN = "/apis/openreports.io/v1alpha1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def report(
    name: str, *rows: tuple[str, ...], labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a report with rows (policy, result, severity)."""
    keys = ("policy", "result", "severity")
    return {
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
        "scope": {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{name}", "uid": name},
        "results": [dict(zip(keys, row, strict=False)) for row in rows],
        "summary": {"pass": 0, "fail": len(rows), "warn": 0, "error": 0, "skip": 0},
    }


@dataclass
class Stage:
    """The store and what surrounds it; `may` is asked instead of RBAC."""

    api: Api
    storage: Storage
    feed: Feed
    clock: ManualClock
    client: FakeClient
    may: Callable[[dict[str, Any]], bool] = field(default=lambda _: True)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str = WRITER,
        accept: str = "",
        **query: str,
    ) -> tuple[int, Any]:
        """Return status and document of an answer."""
        text = b"" if body is None else orjson.dumps(body)
        answer = await self.api.answer(Call(method, path, Requester(user), query, accept, text))
        return answer.status, orjson.loads(answer.body)

    async def ask_status(
        self, method: str, path: str, body: Any = None, *, user: str, **query: str
    ) -> int:
        """Return the status of an answer, of a watch before its first event."""
        text = b"" if body is None else orjson.dumps(body)
        return (await self.api.answer(Call(method, path, Requester(user), query, "", text))).status

    async def create(self, namespace: str, made: dict[str, Any]) -> dict[str, Any]:
        """Create a report, in the cluster without a namespace."""
        place = f"namespaces/{namespace}/policyreports" if namespace else "clusterpolicyreports"
        status, found = await self.ask("POST", f"{REPORTS}/{place}", made)
        assert status == 201, found
        return found

    async def by_day(self, namespace: str) -> list[tuple[Any, ...]]:
        """Return what the query of the documentation finds."""
        sql = DOCUMENTED.read_text().split("```sql\n")[1].split("```")[0].replace("'shop'", "?")
        return await self.storage.within(
            lambda session: [tuple(row) for row in session.rows(sql, (namespace,))]
        )

    @asynccontextmanager
    async def watch(
        self, path: str, *, user: str = WRITER, accept: str = "", **query: str
    ) -> AsyncIterator[AsyncGenerator[dict[str, Any], None]]:
        """Give the events of a watch."""
        call = Call("GET", path, Requester(user), {"watch": "true", **query}, accept)
        answer = await self.api.answer(call)
        assert answer.parts is not None, answer.body
        async with aclosing(answer.parts) as parts:
            yield _decoded(parts)


async def _decoded(parts: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    async for part in parts:
        yield orjson.loads(part)


async def taken(events: AsyncIterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    """Return type and name of the next events."""
    found = []
    for _ in range(count):
        async with asyncio.timeout(10):
            event = await anext(events)
        found.append((event["type"], event["object"]["metadata"].get("name", "")))
    return found


@asynccontextmanager
async def staged(place: Path | Database) -> AsyncIterator[Stage]:
    """Give a store that runs on a database or in a folder."""
    clock = ManualClock()
    client = FakeClient(clock=clock)
    database = place if not hasattr(place, "joinpath") else Sqlite(place / "reports.db")
    storage = Storage(database, clock)
    await storage.start()
    feed = Feed(storage, clock)
    rights = Rights(client, clock, "kyverno")
    stage = Stage(Api(storage, feed, rights, clock), storage, feed, clock, client)
    client.reviews["SubjectAccessReview"] = lambda spec: {"allowed": stage.may(dict(spec))}
    running = asyncio.create_task(feed.run())
    try:
        yield stage
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await storage.close()
