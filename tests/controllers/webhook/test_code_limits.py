"""Limits of codes: how many a user may have, how often one may be wrong, on all replicas together; and rotation of their keys."""

from __future__ import annotations

import asyncio
import base64
from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from controllers.kube import Client, Unreachable
from controllers.kube.kinds import CODE_USES, LEASES, SECRETS
from controllers.store.code_keys import SECRET_NAME, CodeKeys
from controllers.store.throttles import WRONG, Counts, SharedCounts, counts_in, lease_name
from controllers.webhook.code_offers import TOO_MANY
from controllers.webhook.one_time_codes import LOCKED, NOT_ACCEPTED
from controllers.webhook.throttle import MOST_PER_NAMESPACE, MOST_PER_POLICY, Throttle
from tests.controllers.kube.fake import FakeClient

from .code_gate import CHIP, CODE, KEY, Gate, grant_policy, message, reviewer_of, run, with_code
from .staging import NOW, pod


async def wrong(made: Gate, number: int, replica: int = 0, **fields: Any) -> str:
    return message(await made.ask(with_code(f"{number:020d}"), replica=replica, **fields))


class SlowCounts(SharedCounts):
    """Counts that are written when the gate opens."""

    def __init__(self, client: Client, gate: asyncio.Event) -> None:
        super().__init__(client, "kyverno")
        self._gate = gate

    async def add(self, user: str, counts: Counts, now: datetime) -> Counts:
        await self._gate.wait()
        return await super().add(user, counts, now)


async def settled(made: Gate) -> None:
    for one in made.replicas:
        await one._codes.throttle.settled()


def test_wrong_codes_count_on_all_replicas_together():
    async def play(made: Gate) -> None:
        for number in range(10):
            assert not (await wrong(made, number, number % 2)).startswith(LOCKED)
        await made.stage.client.clock.advance(11)
        await settled(made)
        made.replicas = (reviewer_of(made.stage), reviewer_of(made.stage))
        assert (await wrong(made, 11)).startswith(LOCKED)
        assert not CODE.search(await wrong(made, 12, 1))
        await made.stage.client.clock.advance(61)
        assert await made.offered(replica=1)

    run(play)


def test_wrong_codes_count_while_they_are_on_their_way_to_the_other_replicas():
    async def play() -> None:
        client, gate = FakeClient(), asyncio.Event()
        throttle = Throttle(client, client.clock, "kyverno")
        throttle._shared = SlowCounts(client, gate)
        for _ in range(10):
            throttle.count(WRONG, "ada")
        await asyncio.sleep(0)
        assert await throttle.is_locked("ada")
        gate.set()
        await throttle.settled()
        assert await throttle.is_locked("ada")

    asyncio.run(play())


def test_a_flood_of_wrong_codes_costs_one_write_in_ten_seconds():
    async def play(made: Gate) -> None:
        before = len(made.stage.client.calls)
        for number in range(200):
            await wrong(made, number)
        await made.stage.client.clock.advance(10)
        writes = [one for one in made.stage.client.calls[before:] if one.verb in ("create", "update", "patch")]  # fmt: skip
        assert len(writes) <= 2
        assert {one.resource for one in writes} == {"leases"}

    run(play)


def test_a_hundred_wrong_codes_in_thirty_days_end_codes_for_the_user_and_for_nobody_else():
    async def play(made: Gate) -> None:
        for number in range(100):
            if number % 9 == 0:
                await made.stage.client.clock.advance(70)
            assert not (await wrong(made, number)).startswith(LOCKED), number
        await made.stage.client.clock.advance(70)
        await settled(made)
        assert (await wrong(made, 101, 1)).startswith(LOCKED)
        await made.stage.client.clock.advance(86_400 * 29)
        assert (await wrong(made, 102)).startswith(LOCKED)
        assert await made.offered(user={**CHIP, "username": "dale"})
        await made.stage.client.clock.advance(86_400 * 2)
        assert await made.offered()

    run(play)


def test_when_nobody_can_say_how_often_somebody_was_wrong_no_code_is_taken_or_offered():
    async def play(made: Gate) -> None:
        code = await made.offered()
        await made.stage.client.clock.advance(11)
        made.stage.client.fail("get", Unreachable("gone"), resource="leases", times=9)
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], made.uses(), CODE.search(message(answer))) == (False, [], None)

    run(play)


def test_a_wrong_code_on_a_dry_run_counts_and_writes_nothing():
    async def play(made: Gate) -> None:
        for number in range(10):
            await wrong(made, number, dryRun=True)
        assert (await wrong(made, 11, dryRun=True)).startswith(LOCKED)
        await settled(made)
        assert made.stage.client.stored(LEASES) == []

    run(play)


def test_an_ordinary_denial_writes_nothing():
    async def play(made: Gate) -> None:
        before = [one for one in made.stage.client.calls if one.verb != "get"]
        for number in range(4):
            await made.offered(pod(f"web-{number}"))
        verbs = {one.verb for one in made.stage.client.calls[len(before) :]}
        assert not verbs & {"create", "update", "patch", "delete"}

    run(play)


def test_codes_are_made_thirty_times_in_a_minute_on_all_replicas_together():
    async def play(made: Gate) -> None:
        for number in range(29):
            await made.offered(replica=number % 2)
        await made.stage.client.clock.advance(11)
        await settled(made)
        await made.offered()
        await made.stage.client.clock.advance(11)
        assert not CODE.search(message(await made.ask(pod(), replica=1)))
        await made.stage.client.clock.advance(61)
        assert await made.offered(replica=1)

    run(play)


def test_a_user_has_at_most_five_usable_codes_for_a_policy():
    async def play(made: Gate) -> None:
        codes = [await made.offered(pod(f"web-{number}")) for number in range(MOST_PER_POLICY)]
        refused = message(await made.ask(pod("web-9")))
        assert (CODE.search(refused), TOO_MANY in refused) == (None, True)
        assert await made.offered(pod("web-0")) == codes[0]
        assert await made.offered(pod("web-9"), user={**CHIP, "username": "dale"})
        await made.stage.client.clock.advance(1201)
        assert await made.offered(pod("web-9"))

    run(play)


def test_codes_that_were_used_lately_count_against_the_five_on_every_replica():
    async def play(made: Gate) -> None:
        for number in range(MOST_PER_POLICY):
            obj = pod(f"web-{number}")
            code = await made.offered(obj)
            assert (await made.ask(with_code(code, obj=obj)))["allowed"]
        for replica in (0, 1):
            assert TOO_MANY in message(await made.ask(pod("web-9"), replica=replica))

    run(play)


def test_a_namespace_has_at_most_a_hundred_usable_codes():
    async def play(made: Gate) -> None:
        for number in range(MOST_PER_NAMESPACE):
            await made.offered(user={**CHIP, "username": f"chip-{number}"})
        late = {**CHIP, "username": "late"}
        assert TOO_MANY in message(await made.ask(pod(), user=late))
        assert await made.offered(pod(namespace="other"), user=late)

    run(play)


def keys(made: Gate) -> CodeKeys:
    return CodeKeys(made.stage.client, made.stage.client.clock, "kyverno", KEY)


def test_after_a_rotation_codes_of_the_key_before_are_accepted_and_new_ones_are_of_the_new():
    async def play(made: Gate) -> None:
        code = await made.offered()
        await keys(made).rotate(NOW, revoke=False)
        await made.stage.client.clock.advance(6)
        other = pod("web-2")
        fresh = await made.offered(other)
        assert fresh[-2:] != code[-2:]
        assert (await made.ask(with_code(code)))["allowed"]
        assert (await made.ask(with_code(fresh, obj=other), replica=1))["allowed"]

    run(play)


def test_the_key_before_the_one_before_is_dead():
    async def play(made: Gate) -> None:
        code = await made.offered()
        for _ in range(2):
            await keys(made).rotate(NOW, revoke=False)
        await made.stage.client.clock.advance(6)
        assert not (await made.ask(with_code(code)))["allowed"]

    run(play)


def test_a_rotation_that_revokes_ends_all_codes():
    async def play(made: Gate) -> None:
        code = await made.offered()
        await keys(made).rotate(NOW, revoke=True)
        await made.stage.client.clock.advance(6)
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], message(answer).startswith(NOT_ACCEPTED)) == (False, True)
        fresh = await made.offered()
        assert (await made.ask(with_code(fresh)))["allowed"]

    run(play)


def test_many_rotations_keep_two_keys_with_different_numbers():
    async def play(made: Gate) -> None:
        drawn = set()
        for _ in range(70):
            drawn.add((await keys(made).rotate(NOW, revoke=False)).secret)
            live = await keys(made).current()
            assert len({one.id for one in live}) == len(live) == 2
        assert len(drawn) == 70

    run(play)


@pytest.mark.parametrize("content", ["", "not base64", base64.b64encode(b"[{}]").decode(), base64.b64encode(b'[{"id":2,"secret":"00"}]').decode()])  # fmt: skip
def test_keys_that_cannot_be_read_make_and_accept_nothing(content: str):
    async def play(made: Gate) -> None:
        code = await made.offered()
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET_NAME, "namespace": "kyverno"}, "data": {"keys": content}}  # fmt: skip
        made.stage.client.put(secret)
        await made.stage.client.clock.advance(6)
        answer = await made.ask(with_code(code))
        assert (answer["allowed"], CODE.search(message(answer))) == (False, None)

    run(play)


def test_no_key_is_shown_by_what_holds_it():
    async def play(made: Gate) -> None:
        store = keys(made)
        key = await store.rotate(NOW, revoke=False)
        await store.current()
        shown = repr(store) + repr(key) + repr(made.replicas[0]._codes)
        assert key.secret.hex() not in shown
        assert repr(key.secret) not in shown

    run(play)


def test_counts_survive_any_name_of_a_user_and_any_content_of_the_lease():
    for user in ("oidc:a@b", "a" * 3000, "\u202e\n\0", "CN=A,O=b", "é", "e\u0301"):
        assert lease_name(user).removeprefix("kpolicy-codes-").isalnum()
    assert lease_name("é") != lease_name("e\u0301")
    for text in (
        "",
        "{",
        "[]",
        '{"ticks":1,"days":{}}',
        '{"ticks":{"wrong/x":1},"days":{}}',
        '{"ticks":{"a":"b"},"days":{}}',
    ):
        assert not counts_in({"metadata": {"annotations": {"kpolicy.io/codes": text}}}).ticks


def test_counts_of_replicas_add_up():
    first, second = Counts(), Counts()
    for one, times in ((first, 3), (second, 4)):
        for _ in range(times):
            one.add("wrong", NOW)
    first.merge(second)
    assert (first.within_minute("wrong", NOW), first.within_month("wrong", NOW)) == (7, 7)
    later = NOW + timedelta(days=30)
    assert (first.within_minute("wrong", later), first.within_month("wrong", later)) == (0, 0)
    assert first.recent(later) == Counts()
    assert orjson.dumps(dict(first.ticks))


def test_what_counts_no_more_is_not_kept_of_somebody_who_comes_again_and_again():
    counts = Counts()
    for minutes in range(100):
        counts.add("minted", NOW + timedelta(minutes=minutes))
    counts.add("minted", NOW + timedelta(minutes=99, seconds=10))
    assert len(counts.ticks) == 2
    assert counts.within_minute("minted", NOW + timedelta(minutes=99, seconds=10)) == 2


def test_replicas_that_write_at_the_same_time_lose_no_count():
    async def play(made: Gate) -> None:
        from controllers.store.throttles import SharedCounts

        shared = SharedCounts(made.stage.client, "kyverno")
        one = Counts()
        one.add("wrong", NOW)
        await asyncio.gather(*(shared.add("chip", one, NOW) for _ in range(4)))
        assert (await shared.read("chip")).within_minute("wrong", NOW) == 4

    run(play)


def test_uses_carry_no_name_in_their_labels():
    async def play(made: Gate) -> None:
        code = await made.offered()
        await made.ask(with_code(code))
        [use] = made.stage.client.stored(CODE_USES)
        assert set(use["metadata"]["labels"]) == {"kpolicy.io/user-hash", "kpolicy.io/policy-hash"}
        assert "chip" not in repr(use["metadata"])
        assert made.stage.client.stored(SECRETS) == []

    run(play, grant_policy())
