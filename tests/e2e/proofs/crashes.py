"""Replicas are killed while codes are redeemed: no use twice, no stored object without a use, each use ends (I1 to I3)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from controllers.kube import KubeError
from controllers.kube.kinds import CODE_USES, PODS

from .stage import CODE, PEOPLE, hold, pod, spaces, staged, tried, until

if TYPE_CHECKING:
    from controllers.kube import Client
    from tests.e2e.tiers import Tier

    from .stage import Say, Stage

KILLS, PEOPLE_AT_ONCE, SEED, SPACES = 10, 8, 20260801, 40
ENDS_WITHIN = 300
"""Seconds within which a use is confirmed or not persisted (I3)."""


def run(tier: Tier, say: Say) -> None:
    """Kill, let people go on, then look at everything that was stored."""
    with staged(tier) as stage:
        spaces(tier, SPACES)
        asyncio.run(_flood(stage, say))
        stage.stop()
        stage.start(0, "--clock-ahead=3m")
        asyncio.run(_invariants(stage, say))


class Person:
    """Somebody who asks for a code and brings it along, again and again, whatever breaks meanwhile."""

    def __init__(self, stage: Stage, number: int) -> None:
        self._stage, self._number = stage, number
        self.passed = self.broken = 0
        self.over = asyncio.Event()

    async def act(self) -> None:
        """Redeem until told to stop; a request that nobody answered is sent once more with the same code."""
        turn = 0
        while not self.over.is_set():
            turn += 1
            client = self._stage.client(f"person-{self._number}-{turn}", PEOPLE)
            space = f"space-{(self._number + PEOPLE_AT_ONCE * turn) % SPACES}"
            with suppress(KubeError):
                await self._redeem(client, f"p-{self._number}-{turn}", space)
            await client.close()

    async def _redeem(self, client: Client, name: str, space: str) -> None:
        found = CODE.search(await tried(client, PODS, pod(name, namespace=space), dry_run=True))
        if found is None:
            self.broken += 1
            return
        for _ in range(3):
            said = await tried(client, PODS, pod(name, found[0], namespace=space))
            if not said or "already exists" in said:
                self.passed += 1
                return
            self.broken += 1


async def _flood(stage: Stage, say: Say) -> None:
    people = [Person(stage, number) for number in range(PEOPLE_AT_ONCE)]
    tasks = [asyncio.create_task(one.act()) for one in people]
    chance = random.Random(SEED)
    for number in range(KILLS):
        await asyncio.sleep(chance.uniform(0.3, 2.0))
        replica, parent = number % 2, stage.replicas[number % 2]
        worker = _worker_of(parent.pid)
        if number % 4 < 2 and worker:  # its parent starts another one
            os.kill(worker, signal.SIGKILL)
        else:
            await asyncio.to_thread(parent.kill)
            await asyncio.to_thread(stage.start, replica)
    await asyncio.sleep(1)
    for one in people:
        one.over.set()
    await asyncio.gather(*tasks)
    say(
        f"{KILLS} kills (replicas and their workers in turn) while {sum(one.passed for one in people)} codes were redeemed; {sum(one.broken for one in people)} requests went unanswered or refused"
    )


def _worker_of(parent: int) -> int:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(text[0]) if text else 0


async def _invariants(stage: Stage, say: Say) -> None:
    client, began = stage.client(), time.monotonic()

    async def open_ones() -> bool:
        uses = (await client.list_all(CODE_USES)).items
        return all((one.get("status") or {}).get("state") in ("Confirmed", "NotPersisted") for one in uses)  # fmt: skip

    await until(open_ones, ENDS_WITHIN, "every use is confirmed or not persisted (I3)")
    took = time.monotonic() - began
    uses = (await client.list_all(CODE_USES)).items
    stored = {one["metadata"]["uid"]: one for one in (await client.list_all(PODS)).items}
    by_uid = [one["spec"]["object"]["uid"] for one in uses]
    hold(len(set(by_uid)) == len(by_uid), "no object has two uses of one code (I1)")
    codes = [one["metadata"]["annotations"]["kpolicy.io/code"] for one in stored.values()]
    hold(len(set(codes)) == len(codes), "no code let two objects in (I1)")
    without = [uid for uid in stored if uid not in by_uid]
    hold(not without, "every stored violation has a use (I2)", without)
    wrong = [one["metadata"]["name"] for one in uses if (one["status"]["state"] == "Confirmed") is not (one["spec"]["object"]["uid"] in stored)]  # fmt: skip
    hold(not wrong, "states say what became of it", wrong)
    lost = len(uses) - len(stored)
    await client.close()
    hold(stored, "something was stored")
    say(
        f"{len(stored)} objects stored, {len(uses)} uses, {lost} NotPersisted; all settled {took:.1f} s after the restart; I1, I2, I3 hold"
    )
