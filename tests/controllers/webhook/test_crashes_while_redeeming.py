"""A replica that dies between any two steps of taking a code: no second use, nothing let in without one (I1, I2)."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
import pytest

from controllers.kube.kinds import PODS
from controllers.webhook.one_time_codes import OneTimeCodes
from controllers.webhook.reviewing import Reviewer
from tests.controllers.dying import Died, DyingClient

from .code_gate import CHIP, KEY, Gate, gate, message, with_code
from .staging import body, pod

MOST_STEPS = 30


def dying_reviewer(
    made: Gate, at: int, *, after: bool, chance: random.Random | None = None
) -> Reviewer:
    """Return a replica whose process dies at one of its calls."""
    stage = made.stage
    client: Any = DyingClient(stage.client, at, after=after, chance=chance)
    codes = OneTimeCodes(stage.cache, client, stage.client.clock, "kyverno", KEY)
    return Reviewer(
        stage.cache, client, stage.resolver, stage.client.clock, stage.metrics, stage.background_queue,
        key=KEY, sink=stage.sink, codes=codes,
    )  # fmt: skip


async def sent_to(made: Gate, reviewer: Reviewer, code: str, uid: str) -> dict[str, Any] | None:
    """Let a request go through a replica and be stored where it is allowed; None where nobody answers."""
    obj = with_code(code)
    obj["metadata"]["uid"] = uid
    try:
        text = await reviewer.review("validate", "fail", body(obj, userInfo=CHIP), 5.0)
    except Died:
        return None
    answer: dict[str, Any] = orjson.loads(text)["response"]
    if answer["allowed"]:
        made.stage.client.put(obj)
    return answer


def check(made: Gate) -> None:
    stored = made.stage.client.stored(PODS)
    uses = made.uses()
    assert len(uses) <= 1
    assert len(stored) <= 1
    assert {one["metadata"]["uid"] for one in stored} <= {one["spec"]["object"]["uid"] for one in uses}  # fmt: skip


async def died_at(at: int, *, after: bool, again: str) -> bool:
    """Play one death; return whether there was one."""
    async with gate() as made:
        code = await made.offered(replica=1)
        first = await sent_to(made, dying_reviewer(made, at, after=after), code, "first")
        check(made)
        if first is not None:
            assert first["allowed"]
            return False
        was_used = bool(made.uses())
        second = await sent_to(made, made.replicas[1], code, again)
        check(made)
        assert second is not None
        assert second["allowed"] is (again == "first" or not was_used)
        if not second["allowed"]:
            assert code not in message(second)
            assert await made.offered(pod()) != code
        third = await sent_to(made, made.replicas[0], code, "third")
        assert third is not None
        assert not third["allowed"]
        check(made)
    return True


@pytest.mark.parametrize("after", [False, True], ids=["before the step", "after the step"])
@pytest.mark.parametrize("again", ["first", "second"], ids=["the same request again", "a new request"])  # fmt: skip
def test_whatever_the_step_a_death_makes_no_second_use_and_lets_nothing_in_without_one(after, again):  # fmt: skip
    async def play() -> None:
        deaths = 0
        while await died_at(deaths, after=after, again=again):
            deaths += 1
            assert deaths < MOST_STEPS
        assert deaths >= 3

    asyncio.run(asyncio.wait_for(play(), 60))


async def lived_through(seed: int) -> tuple[int, int]:
    """Play a history by chance: requests sent at once and again, to replicas that die; return deaths and objects stored."""
    chance = random.Random(seed)
    async with gate() as made:
        code = await made.offered(replica=1)
        replicas = [
            dying_reviewer(made, chance.randrange(16), after=chance.random() < 0.5, chance=chance)
            for _ in range(6)
        ]
        sent = [sent_to(made, one, code, f"object-{chance.randrange(3)}") for one in replicas]
        answers = await asyncio.gather(*sent)
        check(made)
        for uid in ("object-0", "object-1", "object-2", "late"):
            await sent_to(made, made.replicas[chance.randrange(2)], code, uid)
            check(made)
        assert len(made.stage.client.stored(PODS)) == 1
        return answers.count(None), len(made.stage.client.stored(PODS))


def test_two_hundred_histories_of_requests_at_once_and_deaths_keep_the_invariants():
    async def play() -> None:
        told = [await lived_through(seed) for seed in range(200)]
        assert sum(deaths for deaths, _ in told) >= 200

    asyncio.run(asyncio.wait_for(play(), 120))
