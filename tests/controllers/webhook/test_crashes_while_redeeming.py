"""A replica that dies between any two steps of taking a code: no second use, nothing let in without one (I1, I2; T9)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from controllers.kube.kinds import PODS
from controllers.webhook.redeeming import Codes
from controllers.webhook.reviewing import Reviewer
from tests.controllers.dying import Died, DyingClient

from .code_gate import CHIP, KEY, Gate, gate, message, with_code
from .staging import body, pod

MOST_STEPS = 30


def dying_reviewer(made: Gate, at: int, *, after: bool) -> Reviewer:
    """Return a replica whose process dies at one of its calls."""
    stage = made.stage
    client: Any = DyingClient(stage.client, at, after=after)
    codes = Codes(stage.world, client, stage.client.clock, "kyverno", KEY)
    return Reviewer(
        stage.world, client, stage.resolver, stage.client.clock, stage.metrics, stage.afterwork,
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
