"""A leader that dies between any two steps of confirming uses: each use ends all the same, and is told once (I3)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controllers.kube.kinds import AUDIT_SEGMENTS, CODE_USES, ONE_TIME_CODES
from controllers.loops.codes import CodeLoop
from controllers.store.audit import AuditTrail
from engine.audit import segment_of, verify
from tests.controllers.dying import DyingClient

from .staging import Scene, scene
from .test_codes import KEY, POD, code, use

MOST_STEPS = 80


def loop(made: Scene, client: Any) -> CodeLoop:
    return CodeLoop(replace(made.context, client=client), AuditTrail(client, "kyverno", KEY))


async def played(at: int, *, after: bool, is_stored: bool) -> bool:
    """Let a leader die at a step and another one go on; return whether it died."""
    objects = [POD] if is_stored else []
    async with scene(*objects, code(), use(code="code-a")) as made:
        dying = DyingClient(made.client, at, after=after)
        task = asyncio.ensure_future(loop(made, dying).run())
        await made.rest(91)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        made.start(loop(made, made.client).run())
        await made.rest(91)
        await made.rest(91)
        [found] = made.stored(CODE_USES)
        assert found["status"]["state"] == ("Confirmed" if is_stored else "NotPersisted")
        assert made.stored(ONE_TIME_CODES, "code-a", "kyverno")["status"]["state"] == "used"
        segments = made.stored(AUDIT_SEGMENTS)
        assert verify([segment_of(one) for one in segments], (), KEY) == []
        told = [one["id"] for each in segments for one in each["spec"]["records"]]
        assert len(told) == len(set(told))
        verbs = [one["verb"] for each in segments for one in each["spec"]["records"]]
        assert [verbs.count(verb) for verb in ("use", "confirm")] == [1, 1]
        return dying.is_dead


@pytest.mark.parametrize("after", [False, True], ids=["before the step", "after the step"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
def test_whatever_the_step_each_use_ends_and_is_told_once(after, is_stored):
    async def play() -> None:
        deaths = 0
        while await played(deaths, after=after, is_stored=is_stored):
            deaths += 1
            assert deaths < MOST_STEPS
        assert deaths >= 4

    asyncio.run(asyncio.wait_for(play(), 120))
