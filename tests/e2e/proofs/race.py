"""Of 64 redemptions of one code at the same time on two replicas exactly one wins."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp

from controllers.kube.kinds import CODE_USES, PODS

from .stage import (
    PEOPLE,
    Broken,
    code_for,
    hold,
    pod,
    posting,
    review,
    spaces,
    staged,
    tried,
    until,
)

if TYPE_CHECKING:
    from tests.e2e.tiers import Tier

    from .stage import Poster, Say, Stage

ROUNDS, CLIENTS = 200, 64
THROUGH_SERVER = 20
SPACES = 20


def run(tier: Tier, say: Say) -> None:
    """Race through the webhooks of two replicas, then through the API server."""
    with staged(tier) as stage:
        spaces(tier, SPACES)
        asyncio.run(_race(stage, say))


async def _race(stage: Stage, say: Say) -> None:
    began = time.monotonic()
    async with posting(stage, stage.tier.webhook_pair) as poster:
        lost = [await _round(poster, number) for number in range(ROUNDS)]
    client = stage.client()
    uses = (await client.list_all(CODE_USES)).items
    hold(ROUNDS - sum(lost) <= len(uses) <= ROUNDS, "as many uses as rounds", len(uses))
    took = time.monotonic() - began
    say(
        f"{ROUNDS} rounds of {CLIENTS} redemptions on 2 replicas: never more than 1 winner, {len(uses)} uses, {sum(lost)} requests unanswered, {took:.0f} s"
    )
    await client.close()
    await _through_the_server(stage, say)


async def _round(poster: Poster, number: int) -> int:
    """Race once; return how many requests nobody answered, of which one may be who took the code."""
    user = f"racer-{number}"

    def raced(*codes: str) -> dict[str, Any]:
        return pod(f"raced-{number}", *codes, namespace=f"space-{number % SPACES}")

    async def offered() -> str | None:
        with suppress(aiohttp.ClientError, TimeoutError, Broken):
            return await poster.offered(number % 2, raced(), user)
        return None

    code = await until(offered, 60, "a denial offers a code")
    sent = [review(raced(code), user) for _ in range(CLIENTS)]
    asked = (poster.ask(at % 2, one) for at, one in enumerate(sent))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    lost = [one for one in answers if isinstance(one, aiohttp.ClientError | TimeoutError)]
    for one in answers:
        if isinstance(one, BaseException) and one not in lost:
            raise one
    winners = sum(one["allowed"] for one in answers if isinstance(one, dict))
    hold(winners == 1 or (lost and winners == 0), f"one winner in round {number}", winners)
    return len(lost)


async def _through_the_server(stage: Stage, say: Say) -> None:
    """Create Pods with generated names, so that nothing but the code keeps two of them from being stored."""
    began, admin = time.monotonic(), stage.client()
    for number in range(THROUGH_SERVER):
        client = stage.client(f"creator-{number}", PEOPLE)
        prefix, space = f"made-{number}-", f"space-{number % SPACES}"
        code = await code_for(client, pod(prefix, namespace=space))
        said = await asyncio.gather(*(tried(client, PODS, pod(prefix, code, namespace=space)) for _ in range(CLIENTS)))  # fmt: skip
        stored = [one for one in (await admin.list_all(PODS, space)).items if one["metadata"]["name"].startswith(prefix)]  # fmt: skip
        seen = (len(stored), said.count(""), sorted({one[:120] for one in said}))
        hold(len(stored) == 1 and said.count("") == 1, f"one Pod stored in round {number}", seen)
        await client.close()
    await admin.close()
    took = time.monotonic() - began
    say(
        f"{THROUGH_SERVER} rounds of {CLIENTS} requests to the API server: 1 Pod stored each, {took:.0f} s"
    )
