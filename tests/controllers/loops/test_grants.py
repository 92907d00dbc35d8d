"""Grants in a cluster of memory: the state that is written, the exception beside it, and the trail of both."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import (
    AUDIT_SEGMENTS,
    CEL_EXCEPTIONS,
    CODE_USES,
    GRANT_POLICIES,
    GRANTS,
    POLICY_EXCEPTIONS,
)
from controllers.loops.grants import GrantReconciler
from controllers.store.audit import AuditTrail, seal_key, size_of
from engine.audit import MAX_BYTES, segment_of, verify

from .staging import NOW, Scene, hold_lists_of, scene

if TYPE_CHECKING:
    from controllers.kube import Kind

KEY = b"s" * 32
HOUR = 3600


def grant_policy(name: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": name},
        "spec": {"approvers": [{"users": ["bob", "cyd"]}], "maxDuration": "8h", **spec},
    }  # fmt: skip


def grant(name: str = "web", *decisions: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant",
        "metadata": {"name": name, "namespace": "shop", "creationTimestamp": NOW.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {
            "requester": "ada", "policy": "no-root", "rules": ["r"], "target": {"kind": "Deployment", "name": "web"},
            "duration": "4h", "reason": "image is rebuilt on Monday", "decisions": list(decisions), **spec,
        },
    }  # fmt: skip


def vote(by: str, verdict: str = "approve") -> dict[str, str]:
    return {"by": by, "verdict": verdict}


def run(play: Any, *objects: Any) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            start(made)
            await made.rest()
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 20))


def start(made: Scene) -> None:
    trail = AuditTrail(made.client, "kyverno", KEY)
    made.start(GrantReconciler(made.context, trail).run())


def state(made: Scene, name: str = "web") -> str:
    return made.stored(GRANTS, name, "shop")["status"]["state"]


def decide(made: Scene, *decisions: dict[str, str], name: str = "web") -> None:
    stored = made.stored(GRANTS, name, "shop")
    made.put({**stored, "spec": {**stored["spec"], "decisions": list(decisions)}})


def exceptions(made: Scene) -> list[str]:
    return [one["metadata"]["name"] for one in made.stored(POLICY_EXCEPTIONS)]


def trail_of(made: Scene) -> list[tuple[str, str]]:
    return [(one["verb"], one["actor"]) for one in records(made)]


def records(made: Scene) -> list[dict[str, Any]]:
    segments = made.stored(AUDIT_SEGMENTS)
    assert verify([segment_of(one) for one in segments], (), KEY) == []
    return [one for each in segments for one in each["spec"]["records"]]


def test_an_approved_grant_has_its_exception_until_its_end_and_the_trail_tells_it():
    async def play(made: Scene) -> None:
        assert (state(made), exceptions(made)) == ("pending", [])
        decide(made, vote("bob"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("active", ["grant-web"])
        [made_exception] = made.stored(POLICY_EXCEPTIONS)
        assert (
            made_exception["metadata"]["ownerReferences"][0]["uid"]
            == made.stored(GRANTS, "web", "shop")["metadata"]["uid"]
        )
        await made.rest(4 * HOUR)
        assert (state(made), exceptions(made)) == ("expired", [])
        assert trail_of(made) == [
            ("request", "ada"),
            ("approve", "bob"),
            ("active", "kpolicy"),
            ("expired", "kpolicy"),
        ]

    run(play, grant_policy(), grant())


OF_CEL = {
    "vpol:team": ("ValidatingPolicy", "team"),
    "nivpol:shop/signed": ("NamespacedImageValidatingPolicy", "signed"),
    "dpol:sweep": ("DeletingPolicy", "sweep"),
}


@pytest.mark.parametrize("policy", OF_CEL)
def test_a_grant_from_a_cel_policy_has_an_exception_of_its_group_until_its_end(policy: str):
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("active", [])
        [found] = made.stored(CEL_EXCEPTIONS)
        kind, name = OF_CEL[policy]
        assert found["spec"]["policyRefs"] == [{"name": name, "kind": kind}]
        assert found["spec"]["expiresAt"] == made.stored(GRANTS, "web", "shop")["status"]["expiresAt"]  # fmt: skip
        await made.rest(4 * HOUR)
        assert (state(made), made.stored(CEL_EXCEPTIONS)) == ("expired", [])
        assert {one["policy"] for one in records(made)} == {policy}

    run(play, grant_policy(), grant(policy=policy, rules=[]))


@pytest.mark.parametrize("kind", [GRANTS, GRANT_POLICIES, CODE_USES], ids=lambda one: one.plural)
def test_a_new_leader_takes_nothing_for_gone_before_everything_was_listed(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
):
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        [granted] = made.stored(POLICY_EXCEPTIONS)
        made.put({"apiVersion": "kyverno.io/v2", "kind": "PolicyException", **granted})
        assert list(made.context.snapshot.granted.values())
        made.put(grant("new"))
        made.tasks.pop().cancel()
        await made.rest()
        seen = hold_lists_of(made, kind, monkeypatch)
        start(made)
        before = made.client.stored(GRANTS)
        await made.rest()
        assert made.stored(POLICY_EXCEPTIONS) == [granted]
        assert made.client.stored(GRANTS) == before
        seen.set()
        await made.rest()
        assert made.stored(POLICY_EXCEPTIONS) == [granted]
        assert (state(made), state(made, "new")) == ("active", "pending")
        assert not [one for one in made.client.calls if one.verb == "delete"]

    run(play, grant_policy(), grant())


def test_the_exception_of_a_cel_policy_goes_with_its_grant():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        assert made.stored(CEL_EXCEPTIONS)
        await made.client.delete(GRANTS, "web", "shop")
        await made.rest()
        assert made.stored(CEL_EXCEPTIONS) == []

    run(play, grant_policy(), grant(policy="vpol:team", rules=[]))


def test_a_grant_that_names_no_kind_of_policy_is_denied_in_words():
    async def play(made: Scene) -> None:
        status = made.stored(GRANTS, "web", "shop")["status"]
        assert status["state"] == "denied"
        assert "`xpol:` of `xpol:team` is no short name of a kind of policy" in status["message"]

    run(play, grant_policy(), grant(policy="xpol:team"))


def test_nothing_happens_on_an_own_approval():
    async def play(made: Scene) -> None:
        decide(made, vote("ada"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("pending", [])

    run(play, grant_policy(approvers=[{"users": ["ada", "bob"]}]), grant())


def test_a_revoked_grant_loses_its_exception_at_once():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        decide(made, vote("bob"), vote("cyd", "revoke"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("revoked", [])
        assert trail_of(made)[-1] == ("revoked", "cyd")

    run(play, grant_policy(), grant())


def test_a_replica_says_once_that_it_goes_by_the_exception_of_a_grant_no_more():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        granted = made.stored(POLICY_EXCEPTIONS)
        for one in (*granted, {**granted[0], "metadata": {"name": "by-hand", "namespace": "shop"}}):
            made.take(made.put(one))
        await made.rest()
        [event] = [one for one in made.events if one["reason"] == "GrantEndTaken"]
        about = {"kind": "Grant", "namespace": "shop", "name": "web"}
        assert about.items() <= event["involvedObject"].items()
        assert (event["type"], event["reportingInstance"]) == ("Normal", "kpolicy-0")

    run(play, grant_policy(), grant())


def test_a_grant_that_is_being_deleted_loses_its_exception_although_something_holds_it():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        assert made.stored(POLICY_EXCEPTIONS)
        [held] = made.stored(GRANTS)
        going = {
            "deletionTimestamp": held["metadata"]["creationTimestamp"],
            "finalizers": ["example.org/hold"],
        }
        made.put({**held, "metadata": {**held["metadata"], **going}})
        await made.rest()
        assert made.stored(GRANTS)
        assert made.stored(POLICY_EXCEPTIONS) == []

    run(play, grant_policy(), grant())


def test_a_request_beyond_the_limits_is_denied_in_words():
    async def play(made: Scene) -> None:
        status = made.stored(GRANTS, "web", "shop")["status"]
        assert status["state"] == "denied"
        assert "exceeds maximum 8h of grantpolicy/default; try --for 8h" in status["message"]
        assert exceptions(made) == []

    run(play, grant_policy(), grant(duration="9h"))


def test_a_request_that_nobody_decides_times_out():
    async def play(made: Scene) -> None:
        await made.rest(2 * HOUR)
        assert state(made) == "timed-out"
        decide(made, vote("bob"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("timed-out", [])

    run(play, grant_policy(approvalTimeout="2h"), grant())


def test_an_exception_that_somebody_deleted_comes_back_with_the_next_look():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        [found] = made.stored(POLICY_EXCEPTIONS)
        made.take(found)
        await made.rest(60)
        assert exceptions(made) == ["grant-web"]

    run(play, grant_policy(), grant())


@pytest.mark.parametrize("owner", ["as before", "another"])
def test_an_exception_that_comes_back_after_its_grant_was_revoked_goes_again(owner: str):
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        [found] = made.stored(POLICY_EXCEPTIONS)
        decide(made, vote("bob"), vote("cyd", "revoke"))
        await made.rest()
        assert exceptions(made) == []
        again = {
            key: value
            for key, value in found["metadata"].items()
            if key not in ("uid", "resourceVersion")
        }
        if owner == "another":
            again["ownerReferences"] = []
        made.put({**found, "metadata": again})
        await made.rest()
        assert exceptions(made) == []

    run(play, grant_policy(), grant())


def test_an_exception_of_the_same_name_that_is_not_the_grant_s_is_left_alone():
    foreign = {
        "apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": {"name": "grant-web", "namespace": "shop"},
        "spec": {"exceptions": [], "match": {}},
    }  # fmt: skip

    async def play(made: Scene) -> None:
        decide(made, vote("ada", "withdraw"))
        await made.rest()
        assert (state(made), exceptions(made)) == ("withdrawn", ["grant-web"])

    run(play, grant_policy(), grant(), foreign)


def test_open_grants_count_against_the_limit():
    async def play(made: Scene) -> None:
        made.put(grant("second"))
        await made.rest()
        assert state(made, "second") == "denied"
        assert "has 1 open grants" in made.stored(GRANTS, "second", "shop")["status"]["message"]

    run(play, grant_policy(limits={"openPerUser": 1}), grant())


def test_a_leader_that_was_held_up_does_not_write_over_what_another_one_did():
    async def play(made: Scene) -> None:
        write, held = made.client.patch, asyncio.Event()

        async def held_up(kind: Any, name: str, namespace: str, patch: Any, **options: Any) -> Any:
            if (patch.get("status") or {}).get("state") == "active" and not held.is_set():
                held.set()
                decide(made, vote("bob"), vote("ada", "withdraw"))
                over = {"state": "withdrawn", "endedAt": "2026-11-21T10:18:00Z", "endedBy": "ada"}
                await write(kind, name, namespace, {"status": over}, subresource="status")
            return await write(kind, name, namespace, patch, **options)

        made.client.patch = held_up
        decide(made, vote("bob"))
        await made.rest(60)
        assert held.is_set()
        assert (state(made), exceptions(made)) == ("withdrawn", [])

    run(play, grant_policy(), grant())


def test_after_a_crash_between_trail_and_status_nothing_is_told_twice():
    async def play(made: Scene) -> None:
        real, failures = made.client.patch, 2

        async def patch(*given: Any, **named: Any) -> Any:
            nonlocal failures
            if failures:
                failures -= 1
                raise Unreachable("connection lost", status=0)
            return await real(*given, **named)

        made.client.patch = patch
        decide(made, vote("bob"))
        await made.rest(5)
        await made.rest(60)
        assert (state(made), exceptions(made)) == ("active", ["grant-web"])
        assert trail_of(made) == [("request", "ada"), ("approve", "bob"), ("active", "kpolicy")]

    run(play, grant_policy(), grant())


def used(number: int, uid: str, at: str = "2026-11-21T10:18:00Z") -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "CodeUse",
        "metadata": {"name": f"grant-use-{number}", "namespace": "kyverno", "labels": {"kpolicy.io/grant-uid": uid}},
        "spec": {"user": "chip", "code": "grant", "grant": "shop/web", "grantUid": uid, "usedAt": at},
    }  # fmt: skip


def uid_of(made: Scene) -> str:
    return str(made.stored(GRANTS, "web", "shop")["metadata"]["uid"])


def test_the_uses_of_a_limited_grant_are_shown_and_the_last_one_ends_it():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        made.put(used(1, uid_of(made)))
        await made.rest()
        status = made.stored(GRANTS, "web", "shop")["status"]
        assert (status["state"], status["uses"], status["lastUsedAt"]) == ("active", 1, "2026-11-21T10:18:00Z")  # fmt: skip
        made.put(used(2, uid_of(made)))
        await made.rest()
        assert (state(made), exceptions(made)) == ("active", ["grant-web"])
        await made.rest(5)
        assert (state(made), exceptions(made)) == ("exhausted", [])
        assert made.stored(GRANTS, "web", "shop")["status"]["uses"] == 2
        assert trail_of(made)[-1] == ("exhausted", "kpolicy")

    run(play, grant_policy(), grant(uses=2))


def test_uses_of_another_grant_of_the_same_name_do_not_count():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        made.put(used(1, "of-the-one-before"))
        await made.rest(60)
        assert state(made) == "active"
        assert "uses" not in made.stored(GRANTS, "web", "shop")["status"]

    run(play, grant_policy(), grant(uses=1))


def test_a_new_leader_counts_the_uses_that_it_finds():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest()
        made.tasks.pop().cancel()
        made.put(used(1, uid_of(made)))
        start(made)
        await made.rest(6)
        assert state(made) == "exhausted"

    run(play, grant_policy(), grant(uses=1))


def test_a_grant_that_nobody_uses_ends_and_one_that_is_used_goes_on():
    async def play(made: Scene) -> None:
        decide(made, vote("bob"))
        await made.rest(HOUR - 1)
        assert state(made) == "active"
        told = {
            "status": {"uses": 1, "lastUsedAt": made.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        }
        await made.client.patch(GRANTS, "web", "shop", told, subresource="status")
        await made.rest(HOUR - 1)
        assert (state(made), exceptions(made)) == ("active", ["grant-web"])
        await made.rest(2)
        assert (state(made), exceptions(made)) == ("idle-expired", [])

    run(play, grant_policy(), grant(idle="1h"))


def test_a_new_leader_goes_on_with_the_trail():
    async def play(made: Scene) -> None:
        made.tasks.pop().cancel()
        start(made)
        await made.rest()
        decide(made, vote("bob"))
        await made.rest()
        assert [verb for verb, _ in trail_of(made)] == ["request", "approve", "active"]

    run(play, grant_policy(), grant())


def test_a_full_segment_is_sealed_and_followed_by_another():
    async def play(made: Scene) -> None:
        trail = AuditTrail(made.client, "kyverno", KEY)
        for number in range(100):
            await trail.record({"id": f"n{number}", "actor": "x", "verb": "v", "reason": "r" * 800})
        first, second = sorted(made.stored(AUDIT_SEGMENTS), key=lambda one: one["metadata"]["name"])
        assert first["spec"]["sealed"]
        assert not second["spec"]["sealed"]
        assert len(trail_of(made)) == len(first["spec"]["records"]) + len(second["spec"]["records"])
        assert len(orjson.dumps(first)) < 70_000
        assert sum(map(size_of, first["spec"]["records"])) <= MAX_BYTES
        assert not list(verify([segment_of(one) for one in (first, second)], key=KEY))

    run(play)


def test_a_record_costs_a_bounded_write_however_long_the_trail_is(monkeypatch):
    written: list[int] = []

    async def play(made: Scene) -> None:
        trail = AuditTrail(made.client, "kyverno", KEY)
        for verb in ("create", "update"):
            send = getattr(made.client, verb)

            async def counted(kind: Any, obj: Any, send: Any = send, **more: Any) -> Any:
                written.append(len(orjson.dumps(obj)))
                return await send(kind, obj, **more)

            monkeypatch.setattr(made.client, verb, counted)
        for number in range(600):
            await trail.record({"id": f"n{number}", "actor": "x", "verb": "v", "reason": "r" * 600})
        assert max(written) < 70_000
        assert sum(written) / 600 < 40_000

    run(play)


def test_a_record_is_found_again_by_its_id_beyond_the_segment_before():
    async def play(made: Scene) -> None:
        trail = AuditTrail(made.client, "kyverno", KEY)
        for number in range(300):
            await trail.record({"id": f"n{number}", "actor": "x", "verb": "v", "reason": "r" * 600})
        assert len(made.stored(AUDIT_SEGMENTS)) > 2
        for writer in (trail, AuditTrail(made.client, "kyverno", KEY)):
            assert not await writer.record({"id": "n0", "actor": "x", "verb": "v"})

    run(play)


def test_a_record_says_whether_it_is_new_and_the_trail_goes_on_where_it_ended():
    async def play(made: Scene) -> None:
        trail = AuditTrail(made.client, "kyverno", KEY)
        entry = {"id": "n1", "actor": "x", "verb": "v"}
        assert await trail.record(entry) is True
        assert await trail.record(entry) is False
        again = AuditTrail(made.client, "kyverno", KEY)
        assert await again.record(entry) is False
        assert await again.record({**entry, "id": "n2"}) is True
        [segment] = made.stored(AUDIT_SEGMENTS)
        assert [one["seq"] for one in segment["spec"]["records"]] == [1, 2]

    run(play)


def test_seals_are_made_with_a_key_of_their_own():
    shared = b"k" * 32

    assert seal_key(shared) == hmac.new(shared, b"kpolicy audit seal", hashlib.sha256).digest()
