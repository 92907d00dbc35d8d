"""What becomes of uses of codes in a cluster of memory: confirmed, or not stored, and told in the trail; never a use undone."""

from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any

import orjson
import pytest

from controllers.kube import Forbidden
from controllers.kube.client import Event
from controllers.kube.kinds import AUDIT_SEGMENTS, CODE_USES, ONE_TIME_CODES, PODS
from controllers.kube.store import Store, by_owner, by_uid
from controllers.loops.codes import CodeLoop
from controllers.loops.codes.confirming import remembered
from controllers.store.audit import AuditTrail
from controllers.store.grants import GRANT_UID
from controllers.store.uses import ABSENT, state_of
from engine.audit import segment_of, verify
from engine.codes import body_digest

from .staging import NOW, Scene, scene

KEY = b"s" * 32
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"a": 1}}  # fmt: skip


TARGET = {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u1"}


FIRST_VERSION = "1"
AS_STORED = {**POD, "metadata": {**POD["metadata"], "generation": 1}}


def use(name: str = "use-a", **spec: Any) -> dict[str, Any]:
    given = {
        "user": "ada", "code": "minted", "operation": "CREATE", "binding": {"policy": "team", "rules": ["r"]},
        "object": TARGET,
        "fingerprint": body_digest(POD), "usedAt": NOW.strftime("%Y-%m-%dT%H:%M:%SZ"), **spec,
    }  # fmt: skip
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "CodeUse", "metadata": {"name": name, "namespace": "kyverno"}, "spec": given}  # fmt: skip


def code(name: str = "code-a", **spec: Any) -> dict[str, Any]:
    given = {
        "user": "ada", "issuedBy": "bob", "expiresAt": "2099-01-01T00:00:00Z", "verifier": "0" * 64, "reason": "migration",
        "binding": {"policy": "team", "rules": ["r"], "object": {"kind": "Pod", "namespace": "shop", "name": "web"}}, **spec,
    }  # fmt: skip
    return {"apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": {"name": name, "namespace": "kyverno"}, "spec": given}  # fmt: skip


def run(play: Any, *objects: Any) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            made.start(CodeLoop(made.context, AuditTrail(made.client, "kyverno", KEY)).run())
            await made.rest()
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 20))


def status(made: Scene, kind: Any = CODE_USES, name: str = "use-a") -> dict[str, Any]:
    return made.stored(kind, name, "kyverno").get("status") or {}


def told(made: Scene) -> list[tuple[str, str, str]]:
    segments = made.stored(AUDIT_SEGMENTS)
    assert verify([segment_of(one) for one in segments], (), KEY) == []
    return [(one["verb"], one["actor"], one["reason"]) for each in segments for one in each["spec"]["records"]]  # fmt: skip


def test_a_use_is_confirmed_as_soon_as_its_object_is_seen():
    async def play(made: Scene) -> None:
        assert status(made) == {}
        assert told(made) == [("use", "ada", "")]
        await made.rest(2)
        made.put(POD)
        await made.rest(2)
        assert status(made)["state"] == "Confirmed"
        assert told(made)[-1] == ("confirm", "kpolicy", "Confirmed")

    run(play, use())


def test_an_object_that_is_deleted_soon_was_stored_all_the_same():
    async def play(made: Scene) -> None:
        made.put(POD)
        await made.rest(2)
        made.take(POD)
        await made.rest(91)
        assert status(made)["state"] == "Confirmed"

    run(play, use())


def test_an_update_that_is_overwritten_soon_was_stored_all_the_same():
    async def play(made: Scene) -> None:
        made.put(POD)
        await made.rest(2)
        made.put({**POD, "spec": {"a": 2}})
        await made.rest(91)
        assert status(made)["state"] == "Confirmed"

    run(play, {**POD, "spec": {"a": 0}}, use(operation="UPDATE"))


def test_of_a_use_whose_outcome_is_known_only_that_is_remembered_that_it_counts():
    counted = {"grant": "shop/web", "usedAt": "2026-11-21T10:18:00Z"}
    metadata = {"name": "use-a", "namespace": "kyverno", "uid": "1"}
    made = use(user="ada", fingerprint="f" * 64, **counted)
    made["metadata"] |= {**metadata, "labels": {GRANT_UID: "g", "kpolicy.io/user-hash": "h"}}

    assert remembered(made) == made
    assert remembered({**made, "status": {"state": "Confirmed", "confirmedAt": "now"}}) == {
        "metadata": {"name": "use-a", "labels": {GRANT_UID: "g"}},
        "spec": counted,
        "status": {"state": "Confirmed"},
    }


def test_a_use_of_a_code_whose_outcome_is_known_takes_a_few_hundred_bytes():
    def stored(number: int) -> dict[str, Any]:
        made = use(user="ada", fingerprint="f" * 64)
        made["metadata"] |= {"name": f"use-{number:032}", "uid": f"{number:036}"}
        found: dict[str, Any] = orjson.loads(orjson.dumps({**made, "status": {"state": "Confirmed"}}))  # fmt: skip
        return found

    store = Store(indexes={"owner": by_owner, "uid": by_uid}, reduce=remembered)
    tracemalloc.start()
    try:
        for number in range(1000):
            store.apply(Event("ADDED", stored(number)))
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert len(store) == 1000
    assert taken / 1000 < 450
    assert {one["status"]["state"] for one in store} == {"Confirmed"}


def test_what_is_not_seen_is_waited_for_until_the_request_is_over():
    async def play(made: Scene) -> None:
        await made.rest(89)
        assert status(made) == {}
        made.put(POD)
        await made.rest(2)
        assert status(made)["state"] == "Confirmed"

    run(play, use())


@pytest.mark.parametrize(
    ("live", "spec"),
    [
        (None, {}),
        ({**POD, "metadata": {**POD["metadata"], "uid": "another"}}, {}),
        (
            {**POD, "spec": {"a": 2}},
            {"operation": "UPDATE", "object": {**TARGET, "resourceVersion": FIRST_VERSION}},
        ),
    ],
)
def test_a_use_whose_object_was_not_stored_ends_so_and_stays_used(live: Any, spec: Any):
    async def play(made: Scene) -> None:
        await made.rest(91)
        assert status(made)["state"] == "NotPersisted"
        assert len(made.stored(CODE_USES)) == 1

    run(play, *([live] if live else []), use(**spec))


def at_version(version: str, content: int = 1) -> dict[str, Any]:
    return {
        **POD,
        "metadata": {**POD["metadata"], "resourceVersion": version},
        "spec": {"a": content},
    }


def test_an_update_that_was_changed_back_before_anybody_looked_is_not_taken_for_one_that_never_was():
    async def play(made: Scene) -> None:
        changed = made.put(at_version("", 0))
        made.put(at_version("", 1))
        made.put(at_version("", 0))
        target = {
            **use()["spec"]["object"],
            "resourceVersion": changed["metadata"]["resourceVersion"],
        }
        made.put(use(operation="UPDATE", object=target))
        await made.rest(91)
        assert status(made)["state"] == "Superseded"
        assert told(made)[-1] == ("confirm", "kpolicy", "Superseded")

    run(play)


def test_an_update_by_grant_that_nobody_proved_counts_although_it_was_changed_back_at_once():
    async def play(made: Scene) -> None:
        before = made.put(at_version("", 0))
        made.put(at_version("", 1))
        made.put(at_version("", 0))
        made.put(reserved(state_of(before), operation="UPDATE", **BY_GRANT))
        await made.rest(95)
        assert [one[0] for one in told(made)][:1] == ["use"]
        assert len(made.stored(CODE_USES)) == 1

    run(play)


APPROVED = {"code": "approval-a"}


def made_and_gone(made: Scene) -> None:
    made.put(use(**APPROVED))
    made.put(POD)
    made.take(POD)


def test_an_object_by_an_approved_code_that_was_deleted_before_anybody_looked_was_stored_all_the_same():
    async def play(made: Scene) -> None:
        made_and_gone(made)
        await made.rest(2)
        assert status(made)["state"] == "Confirmed"
        assert told(made)[-1] == ("confirm", "kpolicy", "Confirmed")

    run(play)


def test_a_new_leader_looks_back_for_an_object_that_was_deleted_while_nobody_led():
    async def play(made: Scene) -> None:
        made.tasks.pop().cancel()
        made_and_gone(made)
        await made.rest(91)
        made.start(CodeLoop(made.context, AuditTrail(made.client, "kyverno", KEY)).run())
        await made.rest(5)
        assert status(made)["state"] == "Confirmed"

    run(play)


def test_what_nobody_can_look_back_for_gives_no_other_code():
    async def play(made: Scene) -> None:
        made_and_gone(made)
        made.client.expire(PODS)
        await made.rest(91)
        assert status(made)["state"] == "Superseded"

    run(play)


def test_an_approved_code_whose_object_was_refused_by_others_is_known_not_to_be_stored():
    async def play(made: Scene) -> None:
        await made.rest(91)
        assert status(made)["state"] == "NotPersisted"

    run(play, use(**APPROVED))


def test_an_update_that_was_stored_is_confirmed():
    async def play(made: Scene) -> None:
        await made.rest(91)
        assert status(made)["state"] == "Confirmed"

    run(play, POD, use(operation="UPDATE"))


def test_a_use_whose_object_may_not_be_read_says_so():
    async def play(made: Scene) -> None:
        refusal = Forbidden("may not get pods", status=403)
        made.client.fail("get", refusal, times=2, resource="pods")
        made.put(use())
        await made.rest(91)
        assert (status(made)["state"], status(made)["message"]) == (
            "Unreadable",
            "may not get pods",
        )

    run(play, POD)


def test_a_code_that_was_issued_is_told_once_and_shows_who_used_it():
    async def play(made: Scene) -> None:
        assert status(made, ONE_TIME_CODES, "code-a")["state"] == "issued"
        made.put(use(code="code-a"))
        await made.rest(91)
        found = status(made, ONE_TIME_CODES, "code-a")
        assert (found["state"], found["usedBy"], found["uses"]) == ("used", "ada", 1)
        assert [verb for verb, _, _ in told(made)] == ["issue", "use", "confirm"]
        assert told(made)[0] == ("issue", "bob", "for ada: migration")

    run(play, POD, code())


def test_issuing_and_using_a_code_are_told_once_in_events_without_the_code():
    async def play(made: Scene) -> None:
        made.put(use(code="code-a"))
        await made.rest(91)
        told = [
            (one["reason"], one["message"], one["involvedObject"]["name"]) for one in made.events
        ]
        assert told == [
            ("CodeIssued", "bob gave out a one-time code for team/r (for ada: migration)", "web"),
            ("CodeUsed", "ada used a one-time code for team/r", "web"),
        ]

    run(play, POD, code())


def test_the_use_of_a_grant_is_told_as_such():
    async def play(made: Scene) -> None:
        assert told(made)[0] == ("use", "ada", "grant shop/web")
        [event] = made.events
        assert (event["reason"], event["message"]) == (
            "GrantUsed",
            "ada used a grant for team/r (grant shop/web)",
        )

    run(play, POD, use(code="grant", grant="shop/web", grantUid="u"))


def test_a_code_that_was_made_void_stays_void():
    async def play(made: Scene) -> None:
        await made.client.patch(ONE_TIME_CODES, "code-a", "kyverno", {"status": {"state": "void"}}, subresource="status")  # fmt: skip
        await made.rest()
        made.put(use(code="code-a"))
        await made.rest(91)
        assert status(made, ONE_TIME_CODES, "code-a")["state"] == "void"
        assert [verb for verb, _, _ in told(made)][:2] == ["issue", "void"]

    run(play, POD, code())


def test_a_new_leader_confirms_what_the_old_one_left():
    async def play(made: Scene) -> None:
        made.tasks.pop().cancel()
        await made.rest(91)
        made.start(CodeLoop(made.context, AuditTrail(made.client, "kyverno", KEY)).run())
        await made.rest()
        assert status(made)["state"] == "Confirmed"
        assert [verb for verb, _, _ in told(made)] == ["use", "confirm"]

    run(play, POD, use())


BY_GRANT = {"code": "grant", "grant": "shop/web", "grantUid": "g1"}


def reserved(seen: str = ABSENT, **spec: Any) -> dict[str, Any]:
    return use(unproven=seen, **spec)


def test_a_use_that_nobody_proved_is_told_of_once_its_object_is_there():
    async def play(made: Scene) -> None:
        await made.rest(30)
        assert told(made) == []
        made.put(POD)
        await made.rest(5)
        assert told(made)[0] == ("use", "ada", "grant shop/web")
        [segment] = made.stored(AUDIT_SEGMENTS)
        assert segment["spec"]["records"][0]["unproven"] is True
        assert status(made)["state"] == "Confirmed"

    run(play, reserved(**BY_GRANT))


def test_a_use_of_a_grant_by_a_forged_review_is_given_back_and_told_to_nobody():
    async def play(made: Scene) -> None:
        await made.rest(89)
        assert len(made.stored(CODE_USES)) == 1
        await made.rest(5)
        assert (made.stored(CODE_USES), told(made), made.events) == ([], [], [])

    run(play, reserved(**BY_GRANT))


def test_a_forged_update_of_an_object_that_stays_as_it_is_uses_nothing():
    async def play(made: Scene) -> None:
        await made.rest(95)
        assert (made.stored(CODE_USES), told(made)) == ([], [])

    run(play, POD, reserved(state_of(AS_STORED), operation="UPDATE", **BY_GRANT))


@pytest.mark.parametrize("after", [{**POD, "spec": {"a": 2}}, None])
def test_an_update_that_was_seen_counts_whatever_became_of_its_object(after: Any):
    async def play(made: Scene) -> None:
        made.put(after) if after else made.take(POD)
        await made.rest(2)
        assert [one[0] for one in told(made)] == ["use"]

    run(play, POD, reserved(state_of(AS_STORED), operation="UPDATE", **BY_GRANT))


def test_a_claimed_code_whose_request_was_never_seen_stays_used():
    async def play(made: Scene) -> None:
        await made.rest(95)
        assert status(made)["state"] == "NotPersisted"
        assert told(made) == []

    run(play, reserved())
