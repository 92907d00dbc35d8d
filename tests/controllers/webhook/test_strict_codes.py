"""Codes in strict mode: good only where their owner claims them, whoever posts the review, and for one use as ever."""

from __future__ import annotations

import re
from typing import Any

import pytest

from controllers.kube import Unreachable
from controllers.webhook.caller import Caller, current_caller
from engine.codes import canonical, use_name

from .code_gate import CHIP, CODE, Gate, grant_policy, message, run, with_code
from .staging import pod
from .test_code_approvals import APPROVE, approve, request

USE = re.compile(r"use-[a-z2-7]{26}")
STRICT = grant_policy("acknowledge")
STRICT = {
    **STRICT,
    "spec": {**STRICT["spec"], "codes": {**STRICT["spec"]["codes"], "strict": True}},
}


def claim(
    made: Gate,
    *codes: str,
    user: str = "chip",
    namespace: str = "shop",
    groups: tuple[str, ...] = tuple(CHIP["groups"]),
    **metadata: Any,
) -> None:
    uses = [code if code.startswith("use-") else use_name(canonical(code) or "") for code in codes]
    named = {"name": f"c-{user}-{made.asked}", "namespace": namespace, "creationTimestamp": "2026-11-21T10:18:00Z", **metadata}  # fmt: skip
    made.stage.client.put(
        {"apiVersion": "kpolicy.io/v1alpha1", "kind": "CodeClaim", "metadata": named, "spec": {"user": user, "groups": list(groups), "uses": uses}}
    )  # fmt: skip


def test_a_claimed_code_lets_the_object_pass_once_without_an_annotation():
    async def play(made: Gate) -> None:
        answer = message(await made.ask(pod()))
        assert "by `kubectl kpolicy otp claim`" in answer
        code = await made.offered()
        claim(made, code)
        assert (await made.ask(pod(), replica=1))["allowed"]
        assert not (await made.ask(pod()))["allowed"]
        assert len(made.uses()) == 1

    run(play, STRICT)


def test_a_strict_code_in_an_annotation_is_good_for_nothing():
    async def play(made: Gate) -> None:
        code = await made.offered()
        assert not (await made.ask(with_code(code)))["allowed"]
        assert made.uses() == []

    run(play, STRICT)


@pytest.mark.parametrize(
    "how",
    [{"user": "eve"}, {"namespace": "other"}, {"creationTimestamp": "2026-11-21T09:17:59Z"}, {"creationTimestamp": "soon"}],
)  # fmt: skip
def test_a_claim_of_somebody_else_elsewhere_or_of_long_ago_does_not_count(how: Any):
    async def play(made: Gate) -> None:
        claim(made, await made.offered(), **how)
        assert not (await made.ask(pod()))["allowed"]
        assert made.uses() == []

    run(play, STRICT)


def test_a_review_that_somebody_posts_uses_no_code_that_was_not_claimed():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.NOBODY)
        told = message(await made.ask(pod()))
        assert not CODE.search(told)
        named = USE.search(told)
        assert named is not None
        current_caller.set(Caller.CERTIFICATE)
        stolen = await made.offered()
        current_caller.set(Caller.PATH)
        assert not (await made.ask(with_code(stolen)))["allowed"]
        assert made.uses() == []
        claim(made, named[0])
        assert (await made.ask(pod()))["allowed"]

    run(play, STRICT)


def test_a_claimed_code_is_good_for_nothing_else():
    async def play(made: Gate) -> None:
        claim(made, await made.offered())
        miner = pod()
        miner["spec"]["containers"][0]["image"] = "miner"
        for obj, fields in (
            (miner, {}),
            (pod("db"), {}),
            (pod(), {"user": {**CHIP, "username": "eve"}}),
        ):
            assert not (await made.ask(obj, **fields))["allowed"]
        assert made.uses() == []

    run(play, STRICT)


def test_forged_reviews_do_not_lock_anybody_out():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.NOBODY)
        for number in range(30):
            await made.ask(with_code(f"{number:020d}"))
        current_caller.set(Caller.CERTIFICATE)
        claim(made, await made.offered())
        assert (await made.ask(pod()))["allowed"]

    run(play, STRICT)


def test_when_claims_cannot_be_read_a_denial_stays_one():
    async def play(made: Gate) -> None:
        claim(made, await made.offered())
        made.stage.client.fail("list", Unreachable("gone"), resource="codeclaims", times=9)
        assert not (await made.ask(pod()))["allowed"]

    run(play, STRICT)


def test_an_approved_code_can_be_claimed_too():
    spec = {**APPROVE["spec"], "codes": {"mode": "approve", "strict": True}}

    async def play(made: Gate) -> None:
        approve(made, await request(made))
        claim(made, await made.offered())
        assert (await made.ask(pod()))["allowed"]
        assert not (await made.ask(pod()))["allowed"]

    run(play, {**APPROVE, "spec": spec})


def test_a_dry_run_uses_no_claimed_code():
    async def play(made: Gate) -> None:
        claim(made, await made.offered())
        before = made.state()
        assert (await made.ask(pod(), dryRun=True))["allowed"]
        assert made.state() == before

    run(play, STRICT)


SRE = {"username": "chip", "groups": ["dev", "sre", "system:authenticated"]}


def test_a_forged_review_in_groups_that_somebody_is_not_in_leads_to_no_code_that_they_can_use():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.PATH)
        named = USE.search(message(await made.ask(pod(), user=SRE)))
        assert named is not None
        claim(made, named[0])
        for caller in (Caller.PATH, Caller.CERTIFICATE):
            current_caller.set(caller)
            assert not (await made.ask(pod()))["allowed"]
            assert not (await made.ask(pod(), user=SRE))["allowed"]
        assert made.uses() == []

    run(play, STRICT)


def test_reviews_of_callers_who_proved_nothing_fill_no_table():
    async def play(made: Gate) -> None:
        current_caller.set(Caller.PATH)
        for number in range(20):
            forged = {"username": f"user-{number}", "groups": ["system:authenticated"]}
            told = message(
                await made.ask(with_code(f"{number:020d}", obj=pod(f"p-{number}")), user=forged)
            )
            assert USE.search(told)
        for reviewer in made.replicas:
            codes = reviewer._codes
            assert codes is not None
            assert repr(codes.throttle) == "<Throttle of 0 users>"
            assert repr(codes._offers.outstanding) == "<Outstanding 0>"

    run(play, STRICT)


def test_a_claim_is_good_only_for_somebody_who_still_may_redeem():
    async def play(made: Gate) -> None:
        claim(made, await made.offered())
        made.may_redeem = False
        assert not (await made.ask(pod()))["allowed"]
        assert made.uses() == []
        made.may_redeem = True
        assert (await made.ask(pod()))["allowed"]

    run(play, STRICT)
