"""A million guessed codes are all refused, guessers are slowed down, and timing says nothing about a guess."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from typing import TYPE_CHECKING

from controllers.kube.kinds import CODE_USES, PODS
from controllers.store.throttles import MOST_WRONG, TICK, TICKS
from engine.codes import Binding, Key, mint, shown, verify
from engine.codes.minting import ALPHABET, LENGTH

from .stage import REFUSED, hold, pod, posting, review, staged, tried

if TYPE_CHECKING:
    from tests.e2e.tiers import Tier

    from .stage import Poster, Say, Stage

GUESSES, THROUGH_WEBHOOK, GUESSERS, TIMED, SEED = 1_000_000, 3_000, 20, 20_000, 20260801
SHORTEST_MINUTE = TICK * (TICKS - 1)
"""Seconds after which wrong codes may be judged again: a minute is counted in ticks, of which the first may be about to end."""
LOCKED = "there were too many codes that are none"
_KEY = Key(1, b"k" * 32)
_BINDING = Binding(*("c", "p", "h"), ("r",), *("v", "", "v1", "pods", "", "CREATE", "default", "n", "web", "", "ada"))  # fmt: skip


def run(tier: Tier, say: Say) -> None:
    """Guess at full speed, then through a replica."""
    chance = random.Random(SEED)
    began = time.monotonic()
    hits = sum(verify((_KEY,), _BINDING, _guess(chance), 7) is not None for _ in range(GUESSES))
    hold(hits == 0, "no guess is accepted", hits)
    say(f"{GUESSES} guesses, none accepted, {time.monotonic() - began:.0f} s")
    _timing(chance, say)
    with staged(tier) as stage:
        asyncio.run(_through_the_webhook(stage, chance, say))


def _guess(chance: random.Random) -> str:
    return "".join(chance.choices(ALPHABET, k=LENGTH))


def _timing(chance: random.Random, say: Say) -> None:
    """Compare how long it takes to refuse a code that is right but for its last character with any other."""
    right = mint(_KEY, _BINDING, 7)
    near = right[:17] + ALPHABET[(ALPHABET.index(right[17]) + 1) % 32] + right[18:]
    took: dict[str, list[int]] = {"near": [], "far": []}
    for _ in range(TIMED):
        for name, text in (("near", near), ("far", _guess(chance))):
            began = time.perf_counter_ns()
            found = verify((_KEY,), _BINDING, text, 7)
            took[name].append(time.perf_counter_ns() - began)
            hold(found is None, "a near miss is a miss")
    calm = {name: sorted(times)[: TIMED * 9 // 10] for name, times in took.items()}
    apart = abs(statistics.fmean(calm["near"]) - statistics.fmean(calm["far"]))
    sigma = statistics.pstdev(calm["far"])
    hold(apart < sigma, "timing tells nothing", f"{apart:.0f} ns apart, sigma {sigma:.0f} ns")
    say(
        f"a code that is right in 17 of 18 characters and any other: {apart:.0f} ns apart, sigma {sigma:.0f} ns, {TIMED} each"
    )


async def _through_the_webhook(stage: Stage, chance: random.Random, say: Say) -> None:
    began = time.monotonic()
    async with posting(stage, stage.tier.webhook_pair) as poster:
        seen = await asyncio.gather(
            *(_guesser(poster, number, chance) for number in range(GUESSERS))
        )
        told = sum(one[0] for one in seen), sum(one[1] for one in seen)
        hold(sum(told) == THROUGH_WEBHOOK, "every guess is refused", told)
        minutes = 1 + (time.monotonic() - began) // SHORTEST_MINUTE
        hold(told[0] <= GUESSERS * MOST_WRONG * 2 * minutes, "guessers are slowed down", told)
        code = await poster.offered(0, pod("honest"), "honest")
        hold(
            (await poster.ask(1, review(pod("honest", code), "honest")))["allowed"],
            "nobody else is slowed down",
        )
    client = stage.client("guesser-x")
    said = [await tried(client, PODS, pod("own", shown(_guess(chance)))) for _ in range(25)]
    hold(all(said) and any(LOCKED in one for one in said), "through the API server, too", said[-1])
    await client.close()
    admin = stage.client()
    uses = (await admin.list_all(CODE_USES)).items
    await admin.close()
    hold(len(uses) == 1, "only the honest one has used a code", len(uses))
    say(
        f"{THROUGH_WEBHOOK} guesses of {GUESSERS} people at 2 replicas: {told[0]} judged and refused, {told[1]} not even judged, {time.monotonic() - began:.0f} s"
    )


async def _guesser(poster: Poster, number: int, chance: random.Random) -> tuple[int, int]:
    judged = locked = 0
    for turn in range(THROUGH_WEBHOOK // GUESSERS):
        sent = review(pod("guessed", shown(_guess(chance))), f"guesser-{number}")
        answer = await poster.ask(turn % 2, sent)
        said = answer.get("status", {}).get("message", "")
        hold(not answer["allowed"] and (REFUSED in said or LOCKED in said), "refused", answer)
        judged += REFUSED in said
        locked += LOCKED in said
    return judged, locked
