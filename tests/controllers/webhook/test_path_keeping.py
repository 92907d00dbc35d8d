"""Paths that replicas share: drawn anew at each start, after outages and each hour, told of before they are called, never kept."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from controllers.kube.kinds import SECRETS
from controllers.kube.reflector import Informers
from controllers.manifests.written import CALLERS
from controllers.runtime.options import Options
from controllers.webhook.path_controller import FILE_CHECK, HOUR, SPREAD, PathController
from controllers.webhook.secret_path import OVERLAP
from engine.errors import EngineError
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient
from tests.e2e.server.keys import Authority

from .staging import NOW

if TYPE_CHECKING:
    from pathlib import Path

    from controllers.webhook.secret_path import Shared

_OVERLAP, _SPREAD = OVERLAP.total_seconds(), SPREAD.total_seconds()


class Replicas:
    """Replicas on one cluster of memory, and what each was told."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.client = FakeClient(clock=self.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._informers: list[Informers] = []

    async def start(self, **options: Any) -> tuple[PathController, list[Shared]]:
        told: list[Shared] = []
        informers = Informers(self.client, clock=self.clock)
        self._informers.append(informers)
        webhook_controller = PathController(
            self.client, self.clock, informers, Options(**options), told.append
        )
        await webhook_controller.start()
        self._tasks.append(asyncio.create_task(webhook_controller.run()))
        await settle(40)
        return webhook_controller, told

    async def pass_(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        await settle(40)

    async def follow(self, webhook_controller: PathController) -> bytes:
        """Write the configurations, as a leader does."""
        seed = webhook_controller.to_write().current
        await webhook_controller.written(seed)
        await settle(40)
        return seed

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for informers in self._informers:
            await informers.close()


@asynccontextmanager
async def replicas():
    made = Replicas()
    try:
        yield made
    finally:
        await made.close()


def run(test: Any) -> None:
    async def go() -> None:
        async with replicas() as made:
            await test(made)

    asyncio.run(asyncio.wait_for(go(), 30))


def test_all_replicas_share_one_path_drawn_by_chance():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        two, _ = await made.start()
        assert one.shared == two.shared
        assert len(one.shared.current) == 32
        async with replicas() as others:
            other, _ = await others.start()
            assert other.shared.current != one.shared.current

    run(test)


def test_a_path_does_not_survive_a_start():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        first = await made.follow(one)
        await made.pass_(_OVERLAP)
        assert one.shared.current == first
        two, _ = await made.start()
        assert two.shared.current == one.shared.current != first
        assert one.shared.previous == first

    run(test)


def test_a_path_does_not_survive_an_outage():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        two, _ = await made.start()
        first = await made.follow(one)
        await made.pass_(_OVERLAP)
        two.outage()
        await made.pass_(0)
        assert one.shared.current != first
        assert one.shared.previous == first

    run(test)


def test_replicas_learn_of_a_path_before_the_api_server_is_told_of_it():
    async def test(made: Replicas) -> None:
        one, told = await made.start()
        first = await made.follow(one)
        await made.pass_(_OVERLAP)
        one.outage()
        await made.pass_(0)
        second = one.shared.current
        assert one.to_write().current == first
        before = len(told)
        await made.pass_(_SPREAD)
        assert len(told) > before
        assert one.to_write().current == second
        await made.follow(one)
        assert one.shared.written_at is not None

    run(test)


def test_many_outages_are_one_change():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        await made.follow(one)
        await made.pass_(_OVERLAP)
        seen = {one.shared.current}
        for _ in range(20):
            one.outage()
            await made.pass_(0.5)
            if one.shared.written_at is None:
                await made.follow(one)
            seen.add(one.shared.current)
        assert len(seen) == 2
        await made.pass_(_OVERLAP)
        assert one.shared.current not in seen

    run(test)


def test_the_leader_has_paths_changed_each_hour():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        first = await made.follow(one)
        leading = asyncio.create_task(one.lead())
        await made.pass_(HOUR - 1)
        assert one.shared.current == first
        await made.pass_(1)
        assert one.shared.current != first
        leading.cancel()

    run(test)


def test_who_leaves_has_the_path_changed():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        first = await made.follow(one)
        await one.leave()
        assert one.shared.current != first

    run(test)


def test_a_certificate_is_asked_for_once_its_file_is_there_on_all_replicas_and_when_it_is_gone_again(tmp_path: Path):  # fmt: skip
    async def test(made: Replicas) -> None:
        file = tmp_path / "ca.crt"
        one, _ = await made.start(client_ca=file, client_names=("api",))
        two, _ = await made.start()
        assert one.shared.authority == b""
        pem = Authority(tmp_path).pair.certificate.read_bytes()
        file.write_bytes(pem)
        await made.pass_(FILE_CHECK)
        assert one.shared.authority == two.shared.authority == pem
        assert two.shared.names == ("api",)
        file.unlink()
        await made.pass_(FILE_CHECK)
        three, _ = await made.start(client_ca=file)
        assert three.shared.authority == one.shared.authority == pem

    run(test)


def test_a_file_that_holds_no_certificate_is_no_start(tmp_path: Path):
    async def test(made: Replicas) -> None:
        file = tmp_path / "ca.crt"
        file.write_text("nothing")
        with pytest.raises(EngineError, match="not certificates"):
            await made.start(client_ca=file)

    run(test)


def test_a_secret_that_was_deleted_is_made_anew_with_another_path():
    async def test(made: Replicas) -> None:
        one, _ = await made.start()
        first = await made.follow(one)
        await made.client.delete(SECRETS, CALLERS, "kyverno")
        await made.pass_(0)
        assert one.shared.current != first
        assert one.shared.previous == first
        assert one.shared.was_written

    run(test)
