"""Reviews of callers who proved nothing are answered, and whoever acts on them is told so."""

from __future__ import annotations

import asyncio

import pytest

from controllers.webhook.caller import Caller, current_caller

from .staging import body, mutating, pod, policy, staged


@pytest.mark.parametrize("caller", list(Caller))
def test_what_follows_from_a_review_knows_whether_its_caller_was_proven(caller: Caller):
    async def go() -> None:
        current_caller.set(caller)
        async with staged(policy(), mutating()) as stage:
            for asked in ("validate", "mutate"):
                answer = await stage.ask(asked, body(pod()))
                assert answer["allowed"] is (asked == "mutate")
            await stage.background_queue.finish()
            told = [verdict.is_proven for _, _, verdict in stage.sink.results_]
            assert told == [caller.is_proven] * 2

    asyncio.run(go())
