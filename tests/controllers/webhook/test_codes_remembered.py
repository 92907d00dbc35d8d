"""What a denial that offers a code need not ask anew, for how long, and that nothing of it lets a request through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.kube import Kind, Unreachable
from controllers.kube.kinds import CODE_CLAIMS, GRANT_POLICIES, NAMESPACES
from controllers.kube.reflector import Informers
from controllers.store.grants import GrantPolicies
from controllers.webhook.code_bindings import SEEN_FOR
from controllers.webhook.code_offers import MAY_FOR, MAY_NOT_FOR, USED_FOR
from controllers.webhook.code_ways import Ways
from controllers.webhook.one_time_codes import NOT_ACCEPTED, OneTimeCodes
from controllers.webhook.recent import LONGEST, MOST, Recent
from controllers.webhook.reviewing import Reviewer
from engine.grants import parse_grant_policy
from tests.clock import ManualClock, settle
from tests.controllers.kube.fake import FakeClient

from .code_gate import CHIP, CODE, KEY, Gate, grant_policy, message, run, space, with_code
from .staging import pod, policy
from .test_strict_codes import STRICT, claim


def asked(made: Gate, verb: str, resource: str = "") -> int:
    return sum(
        one.verb == verb and resource in ("", one.resource) for one in made.stage.client.calls
    )


def test_a_denial_that_is_repeated_asks_the_api_server_nothing_new():
    async def play(made: Gate) -> None:
        made.stage.cache.put(NAMESPACES, space("shop"))
        await made.offered()
        before = len(made.stage.client.calls)
        for number in range(20):
            await made.offered(pod(f"web-{number % 2}"))
        assert made.stage.client.calls[before:] == []

    run(play)


def test_denials_that_come_while_grant_policies_are_read_wait_for_them_and_do_not_read_them_as_well():
    async def play() -> None:
        client, begun, gate = (
            FakeClient(grant_policy(), kinds=[GRANT_POLICIES]),
            [0],
            asyncio.Event(),
        )
        listed = client.list_all

        async def slowly(*args: Any, **options: Any) -> Any:
            begun[0] += 1
            await gate.wait()
            return await listed(*args, **options)

        client.list_all = slowly  # type: ignore[method-assign] # - a server that is slow
        policies = GrantPolicies(client, client.clock)
        waiting = [asyncio.create_task(policies.current()) for _ in range(8)]
        await settle()
        waiting[0].cancel()  # whose request was given up
        await settle()
        gate.set()
        found = await asyncio.gather(*waiting[1:])
        assert [len(one) for one in found] == [1] * 7
        assert begun == [2]

    asyncio.run(play())


def test_who_lost_the_right_is_shown_offers_for_seconds_and_can_redeem_none_of_them():
    async def play(made: Gate) -> None:
        first = await made.offered()
        made.may_redeem = False
        await made.stage.client.clock.advance(MAY_FOR - 0.1)
        code = await made.offered()
        assert code == first
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], made.uses()) == (False, [])
        assert not CODE.search(message(answer))
        await made.stage.client.clock.advance(0.1)
        assert not CODE.search(message(await made.ask(pod())))

    run(play)


def test_who_is_given_the_right_is_shown_offers_a_second_later():
    async def play(made: Gate) -> None:
        made.may_redeem = False
        assert not CODE.search(message(await made.ask(pod())))
        made.may_redeem = True
        assert not CODE.search(message(await made.ask(pod())))
        await made.stage.client.clock.advance(MAY_NOT_FOR)
        assert await made.offered()

    run(play)


@pytest.mark.parametrize(
    "user",
    [
        {**CHIP, "username": "dale"},
        {**CHIP, "groups": ["ops"]},
        {**CHIP, "uid": "1"},
        {**CHIP, "extra": {"scopes": ["none"]}},
    ],
)
def test_one_person_s_right_is_not_taken_for_another_s(user: dict[str, Any]):
    async def play(made: Gate) -> None:
        await made.offered()
        made.may_redeem = False
        assert not CODE.search(message(await made.ask(pod(), user=user)))

    run(play)


def test_a_right_on_one_policy_is_not_taken_for_one_on_another():
    async def play(made: Gate) -> None:
        only = "team"
        made.stage.client.reviews["SubjectAccessReview"] = lambda spec: {
            "allowed": spec["resourceAttributes"]["name"] == only
        }
        for _ in range(2):
            told = message(await made.ask(pod()))
            assert "one-time code for team: " in told
            assert "one-time code for crew: " not in told

    def labelled(name: str) -> dict[str, Any]:
        made = policy(name)
        made["spec"]["rules"][0]["name"] = name
        return made

    run(play, policies=(labelled("team"), labelled("crew")))


def test_a_right_that_nobody_can_tell_of_is_not_remembered():
    async def play(made: Gate) -> None:
        made.stage.client.fail("review", Unreachable("gone"))
        assert not CODE.search(message(await made.ask(pod())))
        assert await made.offered()

    run(play)


def test_what_was_used_on_another_replica_is_offered_for_seconds_and_not_accepted():
    async def play(made: Gate) -> None:
        code = await made.offered(replica=0)
        assert (await made.ask(with_code(code), replica=1))["allowed"]
        assert await made.offered(replica=0) == code
        answer = await made.ask(with_code(code), replica=0)
        assert not answer["allowed"]
        assert message(answer).startswith(NOT_ACCEPTED)
        found = CODE.search(message(answer))
        assert found is not None
        assert found[0] != code
        await made.stage.client.clock.advance(USED_FOR)
        assert await made.offered(replica=0) == found[0]
        assert len(made.uses()) == 1

    run(play)


def test_an_offer_for_a_namespace_that_was_made_again_since_is_not_accepted():
    async def play(made: Gate) -> None:
        made.stage.cache.put(NAMESPACES, space("shop"))
        made.stage.client.take(NAMESPACES, "shop")
        made.stage.client.put(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "shop", "uid": "another"},
            }
        )
        code = await made.offered()
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], made.uses()) == (False, [])
        told = CODE.search(message(answer))
        assert told is not None
        assert (await made.ask(with_code(told[0])))["allowed"]

    run(play)


async def watched(made: Gate) -> Informers:
    """Have the first replica watch claims, and let it begin to."""
    stage = made.stage
    informers = Informers(stage.client, clock=stage.client.clock)
    codes = OneTimeCodes(stage.cache, stage.client, stage.client.clock, "kyverno", KEY, informers)
    reviewer = Reviewer(
        stage.cache,
        stage.client,
        stage.resolver,
        stage.client.clock,
        stage.metrics,
        stage.background_queue,
        key=KEY,
        sink=stage.sink,
        codes=codes,
    )
    made.replicas = (reviewer, made.replicas[1])
    await made.ask(pod())
    await settle()
    await made.ask(pod())
    return informers


def lists(made: Gate) -> int:
    return asked(made, "list", CODE_CLAIMS.plural)


def test_claims_that_are_watched_are_listed_for_who_has_some_only():
    async def play(made: Gate) -> None:
        informers = await watched(made)
        before = lists(made)
        for _ in range(20):
            code = await made.offered()
        claim(made, code, user="dale")
        await settle()
        await made.offered()
        assert lists(made) == before
        claim(made, code)
        await settle()
        assert (await made.ask(pod()))["allowed"]
        assert lists(made) == before + 1
        await informers.close()

    run(play, STRICT)


def test_a_claim_that_the_watch_still_shows_and_that_is_gone_is_good_for_nothing():
    async def play(made: Gate) -> None:
        informers = await watched(made)
        claim(made, await made.offered())
        await settle()
        [there] = made.stage.client.stored(CODE_CLAIMS)
        made.stage.client.take(CODE_CLAIMS, there["metadata"]["name"], "shop")
        assert not (await made.ask(pod()))["allowed"]
        assert made.uses() == []
        await informers.close()

    run(play, STRICT)


def test_a_claim_that_the_watch_does_not_show_counts_ten_seconds_later():
    async def play(made: Gate) -> None:
        informers = await watched(made)
        code = await made.offered()
        made.stage.client.watch = never  # type: ignore[method-assign] # - a connection that fell silent
        made.stage.client.disconnect()
        await settle()
        claim(made, code)
        assert not (await made.ask(pod()))["allowed"]
        await made.stage.client.clock.advance(SEEN_FOR)
        assert (await made.ask(pod()))["allowed"]
        await informers.close()

    run(play, STRICT)


async def never(*_given: Any, **_named: Any) -> Any:
    await asyncio.Event().wait()
    yield


def test_while_claims_cannot_be_watched_they_are_listed():
    async def play(made: Gate) -> None:
        made.stage.client.fail("watch", Unreachable("gone"), resource=CODE_CLAIMS.plural, times=99)
        informers = await watched(made)
        assert informers.problems
        before = lists(made)
        claim(made, await made.offered())
        assert (await made.ask(pod()))["allowed"]
        assert lists(made) == before + 2
        await informers.close()

    run(play, STRICT)


def test_only_what_was_acquired_and_is_followed_is_current():
    async def play(made: Gate) -> None:
        informers = Informers(made.stage.client, clock=made.stage.client.clock)
        kind = Kind("", "v1", "pods", "Pod")
        assert not informers.is_current(kind)
        informers.acquire(kind)
        assert not informers.is_current(kind)
        await settle()
        assert informers.is_current(kind)
        await informers.release(kind)
        assert not informers.is_current(kind)

    run(play)


class Asked:
    """Counts how often it was asked, and answers with that."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self) -> int:
        self.times += 1
        return self.times


def test_an_answer_counts_from_when_it_was_asked_for_and_no_longer_than_it_may():
    async def play() -> None:
        clock, ask = ManualClock(), Asked()
        recent: Recent[int] = Recent(clock, lambda answer: 5.0 if answer == 1 else 0.0)
        assert await recent.of("q", ask) == 1
        await clock.advance(4.9)
        assert (await recent.of("q", ask), await recent.of("r", ask)) == (1, 2)
        await clock.advance(0.1)
        assert [await recent.of("q", ask) for _ in range(2)] == [3, 4]

    asyncio.run(play())


def test_what_is_forgotten_while_somebody_asks_is_not_remembered_from_that_answer():
    async def play() -> None:
        clock, ask, gate = ManualClock(), Asked(), asyncio.Event()
        recent: Recent[int] = Recent(clock, lambda _: 5.0)

        async def slowly() -> int:
            found = await ask()
            await gate.wait()
            return found

        waiting = asyncio.create_task(recent.of("q", slowly))
        await settle()
        recent.forget("q")
        gate.set()
        assert await waiting == 1
        assert await recent.of("q", ask) == 2

    asyncio.run(play())


def test_no_more_is_remembered_than_may_be():
    async def play() -> None:
        recent: Recent[int] = Recent(ManualClock(), lambda _: 5.0)
        ask = Asked()
        for number in range(MOST + 10):
            await recent.of(f"q{number}", ask)
        assert repr(recent) == f"<Recent {MOST}>"
        before = ask.times
        await recent.of(f"q{MOST + 9}", ask)
        assert ask.times == before
        await recent.of("q0", ask)
        assert ask.times == before + 1
        for _ in range(2):
            await recent.of("x" * (LONGEST + 1), ask)
        assert ask.times == before + 3

    asyncio.run(play())


def test_ways_out_follow_the_grant_policies_and_are_bounded():
    off, on = (parse_grant_policy(grant_policy(mode)) for mode in ("off", "acknowledge"))
    other = parse_grant_policy(grant_policy("approve", "a", requesters={"users": ["dale"]}))
    ways = Ways()

    def of(policies: tuple[Any, ...], user: str = "chip") -> Any:
        return ways.of(policies, "team", ("r",), "shop", user, ("dev",))

    assert (of(()).may_ask, of(()).codes) == (False, None)
    alone, all_on = (off,), (other, on)
    assert (of(alone).may_ask, of(alone).codes) == (True, None)
    assert of(all_on).codes is of(all_on, "dale").codes is on
    assert of((other,), "dale").codes is other
    assert not of((other,)).may_ask
    for number in range(3000):
        of(all_on, f"user-{number}")
    of(all_on, "x" * 5000)
    assert int(repr(ways).split()[1].rstrip(">")) <= 1024
