"""The same store on a real PostgreSQL: what it answers, what several stores see of each other, and what survives kills."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controllers.kube import KubeError
from controllers.report_store.database import Postgres
from controllers.report_store.storage import Storage
from tests.clock import ManualClock
from tests.controllers.report_store.postgres import PROGRAMS, running
from tests.controllers.report_store.stage import REPORTS, report, staged, taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.controllers.report_store.postgres import Server
    from tests.controllers.report_store.stage import Stage

ALL = f"{REPORTS}/policyreports"
SHOP = f"{REPORTS}/namespaces/shop/policyreports"
pytestmark = pytest.mark.skipif(
    not all(PROGRAMS), reason="there is no PostgreSQL on this machine (initdb, postgres, psql)"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # The socket's path must be short, and its folder open to the server's user.
    with tempfile.TemporaryDirectory(prefix="kp") as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder)) as made:
            yield made


@pytest.fixture
def database(server: Server) -> Postgres:
    """Give an empty database of the server."""
    import psycopg

    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return Postgres(server.dsn)


def test_pages_selectors_and_history_are_those_of_the_store_in_a_file(database: Postgres) -> None:
    async def play() -> None:
        async with staged(database) as store:
            for name in "abcd":
                labels = {"team": "red" if name < "c" else "blue"}
                await store.create("shop", report(name, ("ask", "fail", "high"), labels=labels))
            await store.create("", report("whole", ("ask", "pass")))
            _, first = await store.ask("GET", ALL, limit="2", fieldSelector="results.result=fail")
            assert [one["metadata"]["name"] for one in first["items"]] == ["a", "b"]
            await store.ask("DELETE", f"{SHOP}/c")
            token = {"continue": first["metadata"]["continue"]}
            _, second = await store.ask(
                "GET", ALL, limit="2", fieldSelector="results.result=fail", **token
            )
            assert [one["metadata"]["name"] for one in second["items"]] == ["c", "d"]
            _, red = await store.ask("GET", ALL, labelSelector="team in (red, green),team!=blue")
            assert [one["metadata"]["name"] for one in red["items"]] == ["a", "b"]
            day = store.clock.now().date().isoformat()
            assert await store.by_day("shop") == [(day, "high", "fail", 3)]
            await store.clock.advance(3600)
            await store.storage.forget()
            assert (await store.ask("GET", ALL, limit="2", **token))[0] == 410

    asyncio.run(play())


def test_what_one_store_writes_a_watch_on_another_tells_in_order(database: Postgres) -> None:
    async def play() -> None:
        async with (
            staged(database) as one,
            staged(database) as other,
            one.watch(ALL, resourceVersion="1") as events,
        ):
            asked = [
                store.ask("POST", SHOP, report(f"r{number}"))
                for number in range(30)
                for store in (one, other)
            ]
            answers = await asyncio.gather(*asked)
            assert sorted(status for status, _ in answers) == [201] * 30 + [409] * 30
            told = await taken(events, 30)
            made = sorted(
                (int(found["metadata"]["resourceVersion"]), found["metadata"]["name"])
                for status, found in answers
                if status == 201
            )
            assert [name for _, name in told] == [name for _, name in made]

    asyncio.run(play())


def test_a_kill_of_the_server_loses_nothing_that_was_acknowledged(
    server: Server, database: Postgres
) -> None:
    async def play() -> None:
        acknowledged: list[str] = []

        async def write_on(store: Stage, writer: int) -> None:
            for number in itertools.count():
                name = f"w{writer}-{number}"
                status, _ = await store.ask("POST", SHOP, report(name, ("ask", "fail")))
                if status != 201:
                    assert status == 503
                    return
                acknowledged.append(name)

        async with staged(database) as store:
            writers = [asyncio.create_task(write_on(store, number)) for number in range(8)]
            while len(acknowledged) < 200:
                await asyncio.sleep(0)
            server.kill()
            await asyncio.gather(*writers)
            assert (await store.ask("GET", ALL))[0] == 503
            server.start()
            status, found = await store.ask("GET", ALL)
            assert status == 200
            kept = {one["metadata"]["name"] for one in found["items"]}
            assert set(acknowledged) <= kept
            assert len(kept - set(acknowledged)) <= 8
            assert (await store.ask("POST", SHOP, report("after")))[0] == 201
            day = store.clock.now().date().isoformat()
            assert await store.by_day("shop") == [(day, "", "fail", len(kept))]

    asyncio.run(play())


def test_nobody_is_shown_the_address_of_the_database() -> None:
    secret = Postgres("host=/nowhere user=kpolicy password=hunter2")

    async def play() -> None:
        storage = Storage(secret, ManualClock())
        with pytest.raises(KubeError) as error:
            await storage.start()
        await storage.close()
        assert "hunter2" not in f"{secret!r} {error.value} {error.value.message}"

    asyncio.run(play())
