"""Keys of codes that are rotated, uses that are forgotten, and segments of the trail that stay small, in a cluster of memory."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from controllers.kube.kinds import AUDIT_SEGMENTS, CODE_USES, SECRETS
from controllers.loops.codes import PruneLoop, RotationLoop
from controllers.store.audit import AuditTrail
from controllers.store.code_keys import SECRET_NAME, CodeKeys
from engine.audit import segment_of, verify
from tests.controllers.kube.fake import FakeClient

from .staging import NOW, Scene, scene

KEY = b"s" * 32


def run(play: Any, *objects: Any, loop: Any = RotationLoop) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            trail = AuditTrail(made.client, "kyverno", KEY)
            made.trail = trail
            made.start(loop(made.context, trail).run())
            await made.rest()
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 20))


def told(made: Scene) -> list[tuple[str, str]]:
    segments = made.stored(AUDIT_SEGMENTS)
    assert verify([segment_of(one) for one in segments], (), KEY) == []
    return [(one["verb"], one["actor"]) for each in segments for one in each["spec"]["records"]]


async def live(made: Scene) -> tuple[int, ...]:
    keys = CodeKeys(made.client, made.clock, "kyverno", made.context.key)
    return tuple(one.id for one in await keys.current())


async def ask(made: Scene, text: str) -> None:
    annotated = {"metadata": {"annotations": {"kpolicy.io/rotate": text}}}
    await made.client.patch(SECRETS, SECRET_NAME, "kyverno", annotated)
    await made.rest(6)


def test_an_administrator_asks_for_another_key_and_the_one_before_stays_alive():
    async def play(made: Scene) -> None:
        assert await live(made) == (1,)
        await ask(made, "rotate bob: somebody left")
        assert await live(made) == (2, 1)
        await made.rest(60)
        assert await live(made) == (2, 1)
        assert told(made) == [("rotate", "kpolicy")]

    run(play)


def test_an_administrator_revokes_all_codes():
    async def play(made: Scene) -> None:
        await ask(made, "revoke bob: they leaked")
        assert await live(made) == (2,)
        assert told(made) == [("revoke-codes", "kpolicy")]
        [segment] = made.stored(AUDIT_SEGMENTS)
        assert "they leaked" in segment["spec"]["records"][0]["reason"]

    run(play)


def test_a_key_is_replaced_after_thirty_days():
    async def play(made: Scene) -> None:
        for ago, keys in ((29, (1,)), (30, (2, 1))):
            at = (NOW - timedelta(days=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
            annotated = {"metadata": {"annotations": {"kpolicy.io/rotated-at": at}}}
            await made.client.patch(SECRETS, SECRET_NAME, "kyverno", annotated)
            await made.rest(6)
            assert await live(made) == keys

    run(play)


def _put_back(made: Scene, older: list[dict[str, Any]]) -> None:
    for one in made.stored(AUDIT_SEGMENTS):
        made.take(one)
    for one in older:
        made.put(one)


@pytest.mark.parametrize("writes_on", [False, True])
def test_a_cluster_that_was_put_back_gets_a_key_that_never_was_and_all_codes_die(writes_on: bool):
    async def play(made: Scene) -> None:
        await made.trail.record({"id": "1", "verb": "a", "actor": "x"})
        older = orjson.loads(orjson.dumps(made.stored(AUDIT_SEGMENTS)))
        await made.trail.record({"id": "2", "verb": "b", "actor": "x"})
        _put_back(made, older)
        if writes_on:
            await made.trail.record({"id": "3", "verb": "c", "actor": "x"})
        await made.rest(61)
        await made.rest(6)
        assert await live(made) == (2,)
        assert told(made)[-1] == ("revoke-codes", "kpolicy")
        assert made.context.metrics.value("kpolicy_audit_regressions") == 1
        await made.rest(120)
        assert await live(made) == (2,)

    run(play)


def test_another_record_in_the_place_of_one_that_was_seen_is_a_regression():
    async def play(made: Scene) -> None:
        await made.trail.record({"id": "1", "verb": "a", "actor": "x"})
        older = orjson.loads(orjson.dumps(made.stored(AUDIT_SEGMENTS)))
        await made.trail.record({"id": "2", "verb": "b", "actor": "x"})
        _put_back(made, older)
        await AuditTrail(made.client, "kyverno", KEY).record({"id": "3", "verb": "c", "actor": "x"})
        await made.rest(61)
        await made.rest(6)
        assert await live(made) == (2,)

    run(play)


def test_a_trail_that_is_as_it_was_is_not_read_as_a_whole():
    async def play(made: Scene) -> None:
        await made.trail.record({"id": "1", "verb": "a", "actor": "x"})
        before = len(made.client.calls)
        await made.rest(200)
        listed = [
            one
            for one in made.client.calls[before:]
            if (one.verb, one.resource) == ("list", "auditsegments")
        ]
        assert listed == []

    run(play)


def test_a_trail_that_goes_on_is_no_regression():
    async def play(made: Scene) -> None:
        for number in range(5):
            await made.trail.record({"id": str(number), "verb": "a", "actor": "x"})
            await made.rest(61)
        assert made.context.metrics.value("kpolicy_audit_regressions") == 0

    run(play)


def test_no_segment_grows_beyond_what_an_object_may_be():
    async def play(made: Scene) -> None:
        for number in range(60):
            await made.trail.record(
                {"id": str(number), "verb": "a", "actor": "x", "reason": "é" * 10_000}
            )
        segments = sorted(made.stored(AUDIT_SEGMENTS), key=lambda one: one["metadata"]["name"])
        assert len(segments) > 1
        assert all(len(orjson.dumps(one)) <= 512 << 10 for one in segments)
        assert [one["spec"]["sealed"] for one in segments] == [*[True] * (len(segments) - 1), False]
        assert len(told(made)) == 60

    run(play)


def test_a_record_at_the_end_of_a_sealed_segment_is_not_told_again():
    async def play(made: Scene) -> None:
        for number in range(502):
            await made.trail.record({"id": str(number), "verb": "a", "actor": "x"})
        again = AuditTrail(made.client, "kyverno", KEY)
        for trail in (made.trail, again):
            await trail.record({"id": "499", "verb": "a", "actor": "x"})
        assert len(told(made)) == 502

    run(play)


def use(
    name: str, at: str, state: str = "Confirmed", code: str = "minted", **labels: str
) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "CodeUse",
        "metadata": {"name": name, "namespace": "kyverno", "labels": labels},
        "spec": {"user": "ada", "code": code, "usedAt": at}, "status": {"state": state},
    }  # fmt: skip


OLD, NEW = "2026-10-01T00:00:00Z", NOW.strftime("%Y-%m-%dT%H:%M:%SZ")


def names(made: Scene) -> set[str]:
    return {one["metadata"]["name"] for one in made.stored(CODE_USES)}


def test_old_uses_are_forgotten_once_they_are_told_and_nothing_depends_on_them():
    code = {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "OneTimeCode", "metadata": {"name": "code-x", "namespace": "kyverno"},
        "spec": {"expiresAt": "2027-01-01T00:00:00Z"},
    }  # fmt: skip
    grant = {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "g", "namespace": "shop", "uid": "g1"},
        "spec": {}, "status": {"state": "active"},
    }  # fmt: skip
    over = {
        **grant,
        "metadata": {**grant["metadata"], "name": "h", "uid": "g2"},
        "status": {"state": "expired"},
    }

    async def play(made: Scene) -> None:
        assert names(made) == {"new", "untold", "usable", "of-active"}
        assert told(made) == [("prune", "kpolicy")]

    run(
        play, code, grant, over, use("old", OLD), use("new", NEW), use("untold", OLD, ""), use("usable", OLD, code="code-x"),
        use("gone", OLD, code="code-gone"), use("of-active", OLD, code="grant", **{"kpolicy.io/grant-uid": "g1"}),
        use("of-over", OLD, code="grant", **{"kpolicy.io/grant-uid": "g2"}), loop=PruneLoop,
    )  # fmt: skip


def test_a_code_that_is_good_for_long_keeps_its_use():
    policy = {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "g"},
        "spec": {"codes": {"mode": "acknowledge", "duration": "40d"}},
    }  # fmt: skip

    async def play(made: Scene) -> None:
        assert names(made) == {"old"}

    run(play, policy, use("old", OLD), loop=PruneLoop)


def test_of_too_many_uses_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("controllers.loops.codes.upkeep.MOST", 3)

    async def play(made: Scene) -> None:
        assert names(made) == {"u4", "u5", "waiting"}

    uses = [
        use(f"u{n}", f"2026-11-2{n}T00:00:00Z" if n < 2 else f"2026-11-21T0{n}:00:00Z")
        for n in range(6)
    ]
    run(play, *uses, use("waiting", OLD, ""), loop=PruneLoop)


def test_of_many_uses_few_are_read_at_once_and_all_are_looked_at(monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []
    listing = FakeClient.list

    async def noted(self: FakeClient, kind: Any, *args: Any, **options: Any) -> Any:
        page = await listing(self, kind, *args, **options)
        if kind == CODE_USES:
            read.append(len(page.items))
        return page

    monkeypatch.setattr(FakeClient, "list", noted)

    async def play(made: Scene) -> None:
        assert names(made) == {"new"}
        assert sum(read) == 121
        assert max(read) <= 50

    run(play, *(use(f"u{n:03}", OLD) for n in range(120)), use("new", NEW), loop=PruneLoop)
