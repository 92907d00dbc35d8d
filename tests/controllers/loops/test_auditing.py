"""What webhooks noted comes into the trail once, with what became of it; a grant that is gone is never passed over."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from controllers.kube import Unreachable
from controllers.kube.kinds import AUDIT_NOTES, AUDIT_SEGMENTS, CODE_USES, POLICY_EXCEPTIONS
from controllers.loops.auditing import NoteLoop
from controllers.loops.grants import GrantReconciler
from controllers.store.audit import AuditedAction, AuditTrail, Shown, content_of, note_key, note_of
from engine.audit import segment_of, verify

from .staging import NOW, Scene, scene

KEY = b"s" * 32
UID = "uid-of-web"
GRANT = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant", "metadata": {"name": "web", "namespace": "shop", "uid": UID},
    "spec": {"requester": "ada", "policy": "no-root", "rules": ["r"], "target": {"kind": "Pod", "name": "web"}, "duration": "4h"},
    "status": {"state": "active", "expiresAt": "2026-11-21T14:18:00Z", "startsAt": "2026-11-21T10:18:00Z", "grantPolicy": "g"},
}  # fmt: skip
POLICY = {
    "apiVersion": "kpolicy.io/v1alpha1",
    "kind": "GrantPolicy",
    "metadata": {"name": "g"},
    "spec": {},
}


def note(verb: str = "delete", actor: str = "eve", uid: str = UID, key: bytes = b"k" * 32, kind: str = "Grant", after: int = 0) -> Any:  # fmt: skip
    about = {
        "apiVersion": "kpolicy.io/v1alpha1",
        "kind": kind,
        "namespace": "shop",
        "name": "web",
        "uid": uid,
    }
    return note_of(AuditedAction(verb, about, "it was active", "no-root/r"), actor, NOW + timedelta(seconds=after), namespace="kyverno", key=note_key(key))  # fmt: skip


def run(play: Any, *objects: Any) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            trail = AuditTrail(made.client, "kyverno", KEY)
            made.start(NoteLoop(made.context, trail).run())
            made.start(GrantReconciler(made.context, trail).run())
            await made.rest()
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 20))


def told(made: Scene) -> list[tuple[str, str, str]]:
    segments = made.stored(AUDIT_SEGMENTS)
    assert verify([segment_of(one) for one in segments], (), KEY) == []
    return [(one["verb"], one["actor"], one["result"]) for each in segments for one in each["spec"]["records"]]  # fmt: skip


def test_a_deleted_grant_is_in_the_trail_with_who_deleted_it_and_its_exception_goes():
    async def play(made: Scene) -> None:
        assert [one["metadata"]["name"] for one in made.stored(POLICY_EXCEPTIONS)] == ["grant-web"]
        made.put(note())
        made.take(GRANT)
        await made.rest(60)
        assert told(made) == [("delete", "eve", "ok")]
        assert (made.stored(AUDIT_NOTES), made.stored(POLICY_EXCEPTIONS)) == ([], [])

    run(play, POLICY, GRANT)


def test_a_grant_that_nobody_saw_deleted_is_told_of_all_the_same():
    async def play(made: Scene) -> None:
        made.take(GRANT)
        await made.rest(5)
        assert told(made) == []
        await made.rest(60)
        assert told(made) == [("delete", "unknown", "ok")]
        made.put(note())
        await made.rest(60)
        assert told(made) == [("delete", "unknown", "ok")]

    run(play, POLICY, GRANT)


def test_a_deletion_that_did_not_take_place_is_told_as_one_that_failed():
    async def play(made: Scene) -> None:
        made.put(note())
        await made.rest(39)
        assert told(made) == []
        await made.rest(5)
        assert told(made) == [("delete", "eve", "failed")]

    run(play, POLICY, GRANT)


def test_a_deletion_that_was_refused_first_is_told_once_it_takes_place():
    async def play(made: Scene) -> None:
        made.put(note())
        await made.rest(45)
        assert told(made) == [("delete", "eve", "failed")]
        made.put(note(after=45))
        made.take(GRANT)
        await made.rest(60)
        assert told(made) == [("delete", "eve", "failed"), ("delete", "eve", "ok")]
        assert made.stored(AUDIT_NOTES) == []

    run(play, POLICY, GRANT)


def test_whoever_asked_last_for_what_is_gone_has_deleted_it_and_others_were_refused():
    async def play(made: Scene) -> None:
        made.put(note(actor="eve"))
        made.put(note(actor="bob", after=5))
        await made.rest(6)
        assert told(made) == []
        made.take(GRANT)
        await made.rest(60)
        assert told(made) == [("delete", "bob", "ok"), ("delete", "eve", "failed")]
        assert made.stored(AUDIT_NOTES) == []

    run(play, POLICY, GRANT)


def test_who_tries_again_and_again_is_told_of_once():
    async def play(made: Scene) -> None:
        for after in (0, 1, 20, 50):
            made.put(note(after=after))
        await made.rest(200)
        assert told(made) == [("delete", "eve", "failed")]
        assert made.stored(AUDIT_NOTES) == []

    run(play, POLICY, GRANT)


def test_a_grant_of_the_same_name_made_anew_is_another_one():
    async def play(made: Scene) -> None:
        made.put(note(uid="the-one-before"))
        await made.rest(1)
        assert told(made) == [("delete", "eve", "ok")]

    run(play, POLICY, GRANT)


def test_a_change_is_told_at_once():
    async def play(made: Scene) -> None:
        made.put(note("change", kind="GrantPolicy"))
        await made.rest()
        assert told(made) == [("change", "eve", "ok")]

    run(play, POLICY)


def test_a_note_that_somebody_made_up_puts_no_words_into_the_trail():
    async def play(made: Scene) -> None:
        made.put(note("change", actor="bob", key=b"guessed"))
        await made.rest()
        assert told(made) == [("forge", "unknown", "refused")]
        assert made.stored(AUDIT_NOTES) == []

    run(play, POLICY)


def test_after_a_crash_between_trail_and_note_nothing_is_told_twice():
    async def play(made: Scene) -> None:
        made.client.fail("delete", Unreachable("gone"), times=2)
        made.put(note("change", kind="GrantPolicy"))
        await made.rest(60)
        assert told(made) == [("change", "eve", "ok")]
        assert made.stored(AUDIT_NOTES) == []

    run(play, POLICY)


def test_the_exception_of_a_grant_that_went_while_nobody_led_is_removed():
    async def play(made: Scene) -> None:
        for task in made.tasks[1:]:
            task.cancel()
        del made.tasks[1:]
        await made.rest()
        for one in made.stored(POLICY_EXCEPTIONS):
            made.put(one)
        made.take(GRANT)
        made.start(GrantReconciler(made.context, AuditTrail(made.client, "kyverno", KEY)).run())
        await made.rest(5)
        assert made.stored(POLICY_EXCEPTIONS) == []

    run(play, POLICY, GRANT)


EXCEPTION = {
    "apiVersion": "kyverno.io/v2", "kind": "PolicyException",
    "metadata": {"name": "web", "namespace": "shop", "uid": "e1", "creationTimestamp": "2026-11-21T10:18:00Z"},
    "spec": {"exceptions": [{"policyName": "team", "ruleNames": ["r"]}]},
}  # fmt: skip


def unproven(how: str, content: str = "", verb: str = "", uid: str = "e1") -> Any:
    about = {"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "namespace": "shop", "name": "web", "uid": uid}  # fmt: skip
    action = AuditedAction(verb or how, about, shown=Shown(how, content))
    return note_of(action, "bob-the-auditor", NOW, namespace="kyverno", key=note_key(b"k" * 32))


def test_what_nobody_proved_comes_into_the_trail_as_far_as_it_is_seen_and_its_actor_as_claimed():
    async def play(made: Scene) -> None:
        made.put(unproven("made", content_of(EXCEPTION)))
        await made.rest(1)
        assert told(made) == []
        made.put(EXCEPTION)
        await made.rest(2)
        made.put(unproven("gone"))
        await made.rest(2)
        made.take(EXCEPTION)
        await made.rest(2)
        assert told(made) == [("made", "bob-the-auditor", "ok"), ("gone", "bob-the-auditor", "ok")]
        [segment] = made.stored(AUDIT_SEGMENTS)
        assert [one["unproven"] for one in segment["spec"]["records"]] == [True, True]

    run(play)


def test_what_never_happened_comes_never_into_the_trail_however_well_it_is_forged():
    async def play(made: Scene) -> None:
        long_ago = {**EXCEPTION, "metadata": {**EXCEPTION["metadata"], "creationTimestamp": "2026-11-21T09:00:00Z"}}  # fmt: skip
        made.put(long_ago)
        for note in (
            unproven("made", content_of(EXCEPTION)),
            unproven("made", content_of(EXCEPTION), uid="made-up"),
            unproven("changed", "0" * 64),
            unproven("gone"),
            unproven("gone", uid=""),
        ):
            made.put(note)
        await made.rest(60)
        await made.rest(60)
        assert told(made) == []
        assert made.stored(AUDIT_NOTES) == []

    run(play)


def test_a_change_that_nobody_proved_is_told_once_the_object_shows_it():
    async def play(made: Scene) -> None:
        made.put(EXCEPTION)
        after = {**EXCEPTION, "spec": {"exceptions": []}}
        made.put(unproven("changed", content_of(after)))
        await made.rest(5)
        assert told(made) == []
        made.put(after)
        await made.rest(5)
        assert told(made) == [("changed", "bob-the-auditor", "ok")]

    run(play)


ABOUT = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "CodeUse"}
USE = {
    **ABOUT,
    "metadata": {"name": "use-a", "namespace": "kyverno"},
    "spec": {"user": "ada", "usedAt": "2026-11-21T10:00:00Z"},
    "status": {"state": "Confirmed"},
}


def reuse(actor: str) -> Any:
    action = AuditedAction("reuse", {**ABOUT, **USE["metadata"]}, "already used by ada")
    return note_of(action, actor, NOW, namespace="kyverno", key=note_key(b"k" * 32))


def test_a_used_code_that_is_brought_again_is_told_once_of_each_person_and_of_five_at_most():
    async def play(made: Scene) -> None:
        for actor in ("eve", "eve", "u1", "u2", "u3", "u1", "u4", "u5", "u6"):
            made.put(reuse(actor))
            await made.rest(2)
        people = ["eve", "u1", "u2", "u3", "u4"]
        assert told(made) == [("reuse", one, "refused") for one in people]
        [use] = made.stored(CODE_USES)
        assert use["status"] == {"state": "Confirmed", "broughtAgainBy": people}
        assert made.stored(AUDIT_NOTES) == []

    run(play, USE)


def test_a_leader_that_dies_between_the_trail_and_the_use_tells_of_it_once():
    async def play(made: Scene) -> None:
        made.client.fail("patch", Unreachable("gone"), resource="codeuses")
        made.put(reuse("eve"))
        await made.rest(60)
        assert told(made) == [("reuse", "eve", "refused")]
        assert made.stored(CODE_USES)[0]["status"]["broughtAgainBy"] == ["eve"]

    run(play, USE)


def test_a_use_that_is_not_on_record_any_more_is_not_told_of():
    async def play(made: Scene) -> None:
        made.put(reuse("eve"))
        await made.rest(2)
        assert (told(made), made.stored(AUDIT_NOTES)) == ([], [])

    run(play)
