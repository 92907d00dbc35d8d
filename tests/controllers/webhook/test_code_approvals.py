"""Codes that somebody else must agree to, and codes for policies written in CEL: the same protocol, nothing let through besides."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from controllers.kube.kinds import CODE_USES, ONE_TIME_CODES
from controllers.webhook.approvals import Approval, Approvals
from controllers.webhook.one_time_codes import NOT_ACCEPTED
from engine.codes import Key, mint
from engine.codes.requests import (
    approval_name,
    approval_of,
    is_signed,
    read_request_id,
    request_id,
    request_key,
)
from engine.grants.blocks import Block, read_block_id
from engine.record import replace
from tests.controllers.kube.fake import FakeClient
from tests.engine.codes.test_codes import BOUND

from .code_gate import CHIP, CODE, KEY, Gate, grant_policy, message, run, with_code
from .staging import NOW, pod, policy
from .test_cel_policies import vpol

ID = re.compile(r"otp approve (cr1\.\S+)")
END = NOW + timedelta(hours=1)
APPROVE = grant_policy("approve", approvers=[{"users": ["bob"], "groups": ["leads"]}])
ROBOT = {"username": "system:serviceaccount:ci:bot", "groups": []}


async def request(made: Gate, obj: Any = None, **fields: Any) -> str:
    """Return the id that a denial shows."""
    answer = message(await made.ask(obj or pod(), **fields))
    found = ID.search(answer)
    assert found is not None, answer
    assert not CODE.search(answer)
    return found[1]


def approve(
    made: Gate, text: str, by: str = "bob", groups: tuple[str, ...] = (), **changes: Any
) -> None:
    asked = read_request_id(text)
    assert asked is not None
    obj = approval_of(text, asked, by, groups, END, "ok", "kyverno")
    spec = {**obj["spec"], **changes}
    metadata = {**obj["metadata"], "uid": "a1", "creationTimestamp": "2026-11-21T10:18:00Z"}
    made.stage.client.put({**obj, "metadata": metadata, "spec": spec})


def test_a_denial_shows_who_asks_for_what_and_after_an_approval_the_code():
    async def play(made: Gate) -> None:
        text = await request(made)
        asked = read_request_id(text)
        assert asked is not None
        assert (asked.user, asked.policy, asked.rules, asked.kind, asked.namespace, asked.name) == ("chip", "team", ("needs-team",), "Pod", "shop", "web")  # fmt: skip
        assert is_signed(text, request_key(KEY))
        assert await request(made, replica=1) == text
        approve(made, text)
        code = await made.offered()
        assert await made.offered(replica=1) == code
        assert (await made.ask(with_code(code), replica=1))["allowed"]
        [use] = made.uses()
        assert use["spec"]["code"] == approval_name(asked.digest)

    run(play, APPROVE)


def test_one_approval_is_good_for_one_use():
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        code = await made.offered()
        assert (await made.ask(with_code(code)))["allowed"]
        again = await made.ask(with_code(code))
        assert (again["allowed"], message(again).startswith(NOT_ACCEPTED)) == (False, True)
        denied = message(await made.ask(pod()))
        assert (CODE.search(denied), "the approved one was used" in denied) == (None, True)
        await made.stage.client.clock.advance(1300)
        assert not CODE.search(message(await made.ask(pod())))

    run(play, APPROVE)


def test_a_use_whose_object_was_not_stored_leaves_the_approval_with_another_code():
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        first = await made.offered()
        assert (await made.ask(with_code(first)))["allowed"]
        [use] = made.uses()
        made.stage.client.put({**use, "status": {"state": "NotPersisted"}})
        second = await made.offered()
        assert second != first
        assert not (await made.ask(with_code(first)))["allowed"]
        assert (await made.ask(with_code(second)))["allowed"]
        assert not (await made.ask(with_code(second)))["allowed"]

    run(play, APPROVE)


CHANGES: dict[str, Any] = {
    "another user": {"user": "eve"},
    "approved by the requester": {"issuedBy": "chip"},
    "approved by a service account": {"issuedBy": "system:serviceaccount:ci:bot"},
    "approved by nobody": {"issuedBy": ""},
    "approved by somebody who may not": {"issuedBy": "dale", "issuedByGroups": ["dev"]},
    "no request": {"request": ""},
    "a request that was cut": {"request": "cr1.x"},
    "over": {"expiresAt": "2026-11-21T10:18:00Z"},
    "without an end": {"expiresAt": ""},
    "no approval but an issued code": {"verifier": "0" * 64},
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_sound_approval_leads_to_no_code(change: str):
    async def play(made: Gate) -> None:
        approve(made, await request(made), **CHANGES[change])
        answer = message(await made.ask(pod()))
        assert (CODE.search(answer), bool(ID.search(answer))) == (None, True)

    run(play, APPROVE)


def test_an_approval_that_is_being_deleted_leads_to_no_code():
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        [stored] = made.stage.client.stored(ONE_TIME_CODES)
        going = {"deletionTimestamp": "2026-11-21T10:18:00Z", "finalizers": ["example.org/hold"]}
        made.stage.client.put({**stored, "metadata": {**stored["metadata"], **going}})
        assert not CODE.search(message(await made.ask(pod())))
        made.stage.client.put(stored)
        assert await made.offered()

    run(play, APPROVE)


def test_an_approval_is_good_for_one_code_and_for_another_for_each_use_that_was_lost():
    approvals = Approvals(FakeClient(), "kyverno", KEY, None)
    key, claim = Key(3, b"k" * 32), SimpleNamespace(binding=BOUND)
    codes = {
        lost: approvals.codes(Approval("approval-x", 7, lost, END), claim, [key]) for lost in (0, 1)
    }

    assert codes == {0: [mint(key, BOUND, 7)], 1: [mint(key, BOUND, 7), mint(key, BOUND, 7, 1)]}
    assert approvals.among(Approval("a", 7, 0, END), claim, [mint(key, BOUND, 7, 1)], [key]) == ""
    assert repr(approvals) == "<Approvals in kyverno>"


@pytest.mark.parametrize("by", ["chip", "system:serviceaccount:ci:bot", ""])
def test_without_named_approvers_it_is_still_another_person_who_agrees(by: str):
    async def play(made: Gate) -> None:
        text = await request(made)
        approve(made, text, by=by)
        assert not CODE.search(message(await made.ask(pod())))
        approve(made, text, by="anybody")
        assert await made.offered()

    run(play, grant_policy("approve"))


def test_a_forged_id_leads_to_no_code():
    async def play(made: Gate) -> None:
        asked = read_request_id(await request(made))
        assert asked is not None
        for key in (b"guessed", b""):
            approve(made, request_id(asked, key))
            assert not CODE.search(message(await made.ask(pod())))

    run(play, APPROVE)


def test_a_signed_id_of_another_request_leads_to_no_code():
    async def play(made: Gate) -> None:
        mine = read_request_id(await request(made))
        other = await request(made, pod("db"))
        assert mine is not None
        approve(made, other)
        obj = made.stage.client.stored(ONE_TIME_CODES)[0]
        made.stage.client.put(
            {**obj, "metadata": {**obj["metadata"], "name": approval_name(mine.digest)}}
        )
        assert not CODE.search(message(await made.ask(pod())))
        assert await made.offered(pod("db"))

    run(play, APPROVE)


def test_an_approval_that_was_made_void_and_one_by_a_group():
    async def play(made: Gate) -> None:
        approve(made, await request(made), by="dale", groups=("leads",))
        code = await made.offered()
        [obj] = made.stage.client.stored(ONE_TIME_CODES)
        made.stage.client.put({**obj, "status": {"state": "void"}})
        assert not (await made.ask(with_code(code)))["allowed"]

    run(play, APPROVE)


@pytest.mark.parametrize("kind", ["another image", "another user", "edited policy"])
def test_an_approved_code_is_good_for_nothing_else(kind: str):
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        code = await made.offered()
        obj, fields = pod(), {}
        if kind == "another image":
            obj["spec"]["containers"][0]["image"] = "miner"
        if kind == "another user":
            fields = {"user": {**CHIP, "username": "eve"}}
        if kind == "edited policy":
            from controllers.kube.kinds import CLUSTER_POLICIES

            changed = policy(background=True)
            made.stage.cache.put(
                CLUSTER_POLICIES,
                {**changed, "metadata": {**changed["metadata"], "uid": "uid-of-policy"}},
            )
        assert not (await made.ask(with_code(code, obj=obj), **fields))["allowed"]
        assert made.uses() == []

    run(play, APPROVE)


def test_a_service_account_may_ask_for_approval_and_components_of_kubernetes_may_not():
    async def play(made: Gate) -> None:
        approve(made, await request(made, user=ROBOT))
        code = await made.offered(user=ROBOT)
        assert (await made.ask(with_code(code), user=ROBOT))["allowed"]
        for name in (
            "system:serviceaccount:kube-system:replicaset-controller",
            "system:node:n",
            "system:admin",
        ):
            answer = message(await made.ask(pod("db"), user={"username": name}))
            assert (ID.search(answer), CODE.search(answer)) == (None, None)

    run(play, APPROVE)


def test_a_dry_run_with_an_approved_code_writes_nothing():
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        code = await made.offered()
        before = made.state()
        assert (await made.ask(with_code(code), dryRun=True))["allowed"]
        assert made.state() == before

    run(play, APPROVE)


def test_codes_of_one_mode_do_not_count_in_the_other():
    async def play(made: Gate) -> None:
        code = await made.offered()
        made.stage.client.put(grant_policy("approve"))
        await made.stage.client.clock.advance(11)
        assert not (await made.ask(with_code(code)))["allowed"]

    run(play)


def test_what_an_id_says_is_read_again_and_any_other_text_is_none():
    from engine.codes.requests import CodeRequest

    asked = CodeRequest("ada", "team", ("r", "s"), "Pod", "shop", "web", "d")
    text = request_id(asked, b"k")
    assert read_request_id(text) == asked
    assert is_signed(text, b"k")
    assert not is_signed(request_id(replace(asked, user="eve"), b"k").rpartition(".")[0] + "." + text.rpartition(".")[2], b"k")  # fmt: skip
    for other in ("", "cr1.", "cr1.x.y", "kb1" + text[3:], text.rpartition(".")[0], "cr1.W10.x", "x" * 9000, "cr1.\ud800.x"):  # fmt: skip
        assert read_request_id(other) is None
        assert not is_signed(other, b"k")


CEL = {**vpol(), "metadata": {"name": "team"}}


def with_cel(play: Any, *objects: Any, policies: Any = (CEL,)) -> None:
    async def within(made: Gate) -> None:
        made.route = "fail/vpol"
        await play(made)

    run(within, *objects, policies=policies)


def test_a_policy_written_in_cel_offers_a_code_that_is_good_once():
    async def play(made: Gate) -> None:
        answer = message(await made.ask(pod()))
        assert answer.startswith("one-time code for vpol:team: ")
        assert "Policy team failed: a team is needed" in answer
        block = read_block_id(answer.rpartition("--block ")[2].strip())
        assert block == Block("vpol:team", (), "Pod", "web", "shop")
        code = await made.offered()
        assert (await made.ask(with_code(code)))["allowed"]
        assert not (await made.ask(with_code(code)))["allowed"]
        [use] = made.stage.client.stored(CODE_USES)
        assert use["spec"]["binding"] == {"policy": "vpol:team", "rules": []}

    with_cel(play)


def test_a_code_for_a_cel_policy_is_good_for_nothing_else():
    async def play(made: Gate) -> None:
        code = await made.offered()
        miner = pod()
        miner["spec"]["containers"][0]["image"] = "miner"
        for obj, fields in ((miner, {}), (pod("db"), {}), (pod(), {"user": {"username": "eve"}})):
            assert not (await made.ask(with_code(code, obj=obj), **fields))["allowed"]
        made.route = "fail"
        assert not (await made.ask(with_code(code)))["allowed"]

    with_cel(play, policies=(CEL, policy()))


def test_the_right_to_redeem_is_asked_for_the_cel_policy():
    async def play(made: Gate) -> None:
        asked = []
        made.stage.client.reviews["SubjectAccessReview"] = lambda spec: asked.append(spec["resourceAttributes"]) or {"allowed": True}  # fmt: skip
        await made.offered()
        assert asked == [{"verb": "redeem", "group": "policies.kyverno.io", "resource": "validatingpolicies", "name": "team"}]  # fmt: skip

    with_cel(play)


def test_a_cel_policy_in_mode_approve_shows_an_id_without_rules():
    async def play(made: Gate) -> None:
        text = await request(made)
        asked = read_request_id(text)
        assert asked is not None
        assert (asked.policy, asked.rules) == ("vpol:team", ())
        approve(made, text)
        code = await made.offered()
        assert (await made.ask(with_code(code)))["allowed"]

    with_cel(play, APPROVE)


def test_validations_in_cel_of_a_classic_policy_offer_codes_by_their_rule():
    rule = {
        "name": "in-cel", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "validate": {"cel": {"expressions": [{"expression": "has(object.metadata.labels)", "message": "labels"}]}},
    }  # fmt: skip

    async def play(made: Gate) -> None:
        code = await made.offered()
        miner = orjson.loads(orjson.dumps(pod()))
        miner["spec"]["containers"][0]["image"] = "miner"
        assert not (await made.ask(with_code(code, obj=miner)))["allowed"]
        assert (await made.ask(with_code(code)))["allowed"]
        [use] = made.uses()
        assert use["spec"]["binding"]["rules"] == ["in-cel"]

    run(play, policies=(policy("celled", rules=[rule]),))


def test_an_approved_code_is_used_only_by_somebody_who_may_redeem():
    async def play(made: Gate) -> None:
        approve(made, await request(made))
        code = await made.offered()
        made.may_redeem = False
        assert not (await made.ask(with_code(code)))["allowed"]
        assert made.uses() == []

    run(play, APPROVE)
