"""What people are told about grants: Events, warnings before the end, and signed notices to an address of their choice."""

from __future__ import annotations

import asyncio
import base64
import hmac
from dataclasses import replace
from typing import Any

import orjson
import pytest

from controllers.kube import Unreachable
from controllers.kube.kinds import GRANTS
from controllers.loops.grants import GrantReconciler
from controllers.loops.notices import MOST_TRIES, Notices, target_in
from controllers.store.audit import AuditTrail

from .staging import NOW, Scene, scene

KEY = b"s" * 32
SIGNING = b"a key of the receiver"
HOUR = 3600
POLICY = {
    "apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "default"},
    "spec": {"approvers": [{"users": ["bob"]}], "maxDuration": "8h"},
}  # fmt: skip


def grant(length: str = "4h", *decisions: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "kpolicy.io/v1alpha1", "kind": "Grant",
        "metadata": {"name": "web", "namespace": "shop", "creationTimestamp": NOW.strftime("%Y-%m-%dT%H:%M:%SZ")},
        "spec": {"requester": "ada", "policy": "no-root", "rules": ["r"], "target": {"kind": "Deployment", "name": "web"},
                 "duration": length, "reason": "image is rebuilt on Monday", "decisions": list(decisions)},
    }  # fmt: skip


def secret(
    url: str = "https://hooks.example/kpolicy", key: bytes = SIGNING, form: str = ""
) -> dict[str, Any]:
    texts = {"url": url.encode(), "key": key, **({"format": form.encode()} if form else {})}
    data = {name: base64.b64encode(text).decode() for name, text in texts.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kpolicy-notify", "namespace": "kyverno"}, "data": data}  # fmt: skip


class Receiver:
    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.fails = 0

    async def __call__(self, url: str, headers: Any, body: bytes, authorities: str = "") -> None:
        if self.fails:
            self.fails -= 1
            raise Unreachable("gone")
        self.got.append((url, dict(headers), body))

    @property
    def reasons(self) -> list[str]:
        return [orjson.loads(body)["reason"] for _, _, body in self.got]


def run(play: Any, *objects: Any, receiver: Receiver | None = None) -> None:
    async def within() -> None:
        async with scene(*objects) as made:
            context = replace(made.context, post=receiver)
            notices = Notices(context)
            trail = AuditTrail(made.client, "kyverno", KEY)
            made.loop = GrantReconciler(context, trail, notices)
            made.start(notices.run())
            made.start(made.loop.run())
            await made.rest()
            await play(made)

    asyncio.run(asyncio.wait_for(within(), 20))


async def approve(made: Scene) -> None:
    stored = made.stored(GRANTS, "web", "shop")
    decisions = [{"by": "bob", "verdict": "approve"}]
    made.put({**stored, "spec": {**stored["spec"], "decisions": decisions}})
    await made.rest()


def reasons(made: Scene) -> list[tuple[str, str]]:
    return [
        (one["reason"], one["type"]) for one in made.events if one["reason"].startswith("Grant")
    ]


def test_the_life_of_a_grant_is_told_in_events_and_its_end_before_it_comes():
    async def play(made: Scene) -> None:
        await approve(made)
        await made.rest(4 * HOUR - 48 * 60 - 1)
        assert reasons(made) == [("GrantPending", "Normal"), ("GrantActive", "Normal")]
        await made.rest(2)
        assert reasons(made)[2:] == [("GrantExpiring", "Warning")]
        await made.rest(43 * 60)
        assert len(reasons(made)) == 4
        await made.rest(6 * 60)
        assert reasons(made)[3:] == [("GrantExpiring", "Warning"), ("GrantExpired", "Normal")]
        told = [one["message"] for one in made.events if one["reason"] == "GrantExpiring"]
        assert told[0].startswith(
            "exception from no-root/r for Deployment/web, asked for by ada, ends in 4"
        )

    run(play, POLICY, grant())


def test_a_new_leader_does_not_warn_again():
    async def play(made: Scene) -> None:
        await approve(made)
        await made.rest(4 * HOUR - 40 * 60)
        before = reasons(made)
        made.tasks.pop().cancel()
        made.start(GrantReconciler(made.context, AuditTrail(made.client, "kyverno", KEY)).run())
        await made.rest(60)
        assert reasons(made) == before
        assert made.stored(GRANTS, "web", "shop")["status"]["warnedAt"] == "2026-11-21T13:30:00Z"

    run(play, POLICY, grant())


def test_a_short_grant_is_warned_of_once():
    async def play(made: Scene) -> None:
        await approve(made)
        await made.rest(300)
        assert [one for one, _ in reasons(made)].count("GrantExpiring") == 1

    run(play, POLICY, grant("5m"))


def test_notices_are_signed_and_say_what_happened():
    receiver = Receiver()

    async def play(made: Scene) -> None:
        await approve(made)
        assert receiver.reasons == ["GrantPending", "GrantActive"]
        for url, headers, body in receiver.got:
            assert url == "https://hooks.example/kpolicy"
            mac = hmac.digest(
                SIGNING, headers["X-Kpolicy-Time"].encode() + b"." + body, "sha256"
            ).hex()
            assert headers["X-Kpolicy-Signature"] == f"v1={mac}"
            assert headers["X-Kpolicy-Notice"] == orjson.loads(body)["id"]
        told = orjson.loads(receiver.got[1][2])
        assert (told["state"], told["requester"], told["object"]["name"], told["expiresAt"]) == (
            "active",
            "ada",
            "web",
            "2026-11-21T14:18:00Z",
        )

    run(play, POLICY, grant(), secret(), receiver=receiver)


def test_a_notice_that_does_not_arrive_is_sent_again_and_given_up_after_some_time():
    receiver = Receiver()
    receiver.fails = 3

    async def play(made: Scene) -> None:
        await made.rest(60)
        assert receiver.reasons == ["GrantPending"]
        receiver.fails = MOST_TRIES * 3
        await approve(made)
        await made.rest(2 * HOUR)
        assert receiver.reasons == ["GrantPending"]
        assert receiver.fails == MOST_TRIES * 2

    run(play, POLICY, grant(), secret(), receiver=receiver)


@pytest.mark.parametrize(
    "obj",
    [secret("http://hooks.example"), secret("ftp://x"), secret(""), secret(key=b"short"), {"metadata": {}, "data": {"url": "%"}}, {"metadata": {}}],
)  # fmt: skip
def test_a_target_without_tls_or_key_gets_nothing(obj: Any):
    assert target_in(obj) is None


def test_a_target_shows_neither_address_nor_key():
    found = target_in(secret())
    assert repr(found) == "<Target>"


@pytest.mark.parametrize("form", ["slack", "teams"])
def test_a_chat_gets_the_sentence_and_the_command_that_approves_but_no_link_and_no_markup(form):
    receiver = Receiver()
    made = grant()
    made["spec"]["target"]["name"] = "web"
    made["spec"]["policy"] = "<!channel>"

    async def play(scene: Scene) -> None:
        await scene.rest(1)

    run(play, POLICY, made, secret(key=b"", form=form), receiver=receiver)

    (_, headers, body), *_ = receiver.got
    text = body.decode()
    assert headers == {}
    assert "kubectl kpolicy grant approve web -n shop --comment WHY" in text
    assert "http" not in text.replace("https://hooks", "http")
    if form == "slack":
        assert "<" not in orjson.loads(body)["text"]
        assert {one["text"]["type"] for one in orjson.loads(body)["blocks"]} == {"plain_text"}
    else:
        card = orjson.loads(body)["attachments"][0]["content"]
        assert {one["type"] for one in card["body"]} == {"RichTextBlock"}


@pytest.mark.parametrize(
    ("key", "form", "is_known"),
    [(SIGNING, "", True), (b"", "", False), (b"", "generic", False), (b"", "slack", True),
     (SIGNING, "teams", True), (b"short", "slack", False), (SIGNING, "mail", False)],
)  # fmt: skip
def test_only_chats_need_no_key_and_only_known_formats_are_sent(key, form, is_known):
    assert (target_in(secret(key=key, form=form)) is not None) is is_known


def test_gauges_show_the_grants_that_are_there():
    async def play(made: Scene) -> None:
        assert dict(made.loop.states()) == {
            ("draft",): 0,
            ("active",): 0,
            ("pending",): 1,
            ("scheduled",): 0,
        }
        await approve(made)
        assert dict(made.loop.states())[("active",)] == 1
        assert [name for name, _ in made.loop.ends()] == [("shop/web",)]

    run(play, POLICY, grant())
