"""Secret paths: which are good when, for which reviews only, and that none is ever shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import aiohttp
import orjson
import pytest

from controllers.webhook.address import Address
from controllers.webhook.caller import Caller, Callers, current_caller
from controllers.webhook.grants import GrantValidator
from controllers.webhook.secret_path import OVERLAP, PLACES, Paths, Shared, unpacked
from controllers.webhook.server import Routes, WebhookServer
from tests.clock import ManualClock
from tests.controllers.kube.fake import FakeClient

from .staging import NOW, body

FIRST = Shared(b"1" * 32, rotated_at=NOW)
WRITTEN = replace(FIRST, written_at=NOW, was_written=True)
ROTATED = Shared(b"2" * 32, previous=b"1" * 32, rotated_at=NOW, was_written=True)


def at(shared: Shared, place: str, inner: str = "") -> str:
    return f"/{shared.prefix(place)}/{place}{inner}"


def paths(shared: Shared, clock: ManualClock | None = None) -> Paths:
    made = Paths((clock or ManualClock(NOW)).now)
    made.take(shared)
    return made


def test_a_path_is_good_for_the_reviews_of_its_own_place_only():
    known = paths(WRITTEN)
    for place in PLACES:
        for other in PLACES:
            inner = known.inner(f"/{WRITTEN.prefix(place)}/{other}/fail")
            assert inner == (f"/{other}/fail" if place == other else None)


@pytest.mark.parametrize("path", ["/", "", "/validate/fail", "//validate", "/k-x/validate", "/\udc80/validate", "/x/elsewhere"])  # fmt: skip
def test_any_other_path_is_not_the_secret_one(path: str):
    assert paths(WRITTEN).inner(path) is None


def test_the_paths_before_are_good_until_the_configurations_have_followed_and_a_moment_longer():
    async def go() -> None:
        clock = ManualClock(NOW)
        before, after = at(WRITTEN, "validate"), at(ROTATED, "validate")
        known = paths(ROTATED, clock)
        await clock.advance(3600)
        assert known.inner(before) == known.inner(after) == "/validate"
        known.take(replace(ROTATED, written_at=clock.now()))
        await clock.advance(OVERLAP.total_seconds() - 1)
        assert known.inner(before) == "/validate"
        await clock.advance(1)
        assert known.inner(before) is None
        assert known.inner(after) == "/validate"

    asyncio.run(go())


def test_no_path_is_shown_and_one_in_another_s_words_is_hidden():
    secret = WRITTEN.prefix("validate")
    callers = Callers(now=ManualClock(NOW).now)
    callers.take(WRITTEN)
    shown = (
        repr(WRITTEN) + repr(paths(WRITTEN)) + repr(callers) + repr(Address(b"", shared=WRITTEN))
    )
    assert secret not in shown
    assert str(WRITTEN.current) not in shown
    assert (
        ROTATED.hide(f"Post https://x/{secret}/validate: no") == "Post https://x/.../validate: no"
    )


def test_what_is_shared_is_read_as_it_was_written_and_nothing_else_is_read():
    whole = replace(ROTATED, authority=b"pem", names=("a", "b"), certified_at=NOW, written_at=NOW)
    assert unpacked(whole.packed()) == whole
    for text in ("", "x", "e30=", "bnVsbA==", "W10=", Shared(b"short").packed()):
        assert unpacked(text) is None


def test_webhooks_are_called_at_the_paths_of_their_places():
    inside = Address(b"", shared=WRITTEN).client_config("/validate/fail")
    outside = Address(b"", url="https://x/", shared=WRITTEN).client_config("/auditnote")
    assert inside["service"]["path"] == at(WRITTEN, "validate", "/fail")
    assert outside["url"] == f"https://x{at(WRITTEN, 'auditnote')}"


async def answers(callers: Callers, *asked: str) -> list[Any]:
    """Return status and, of an answer, what was known of the caller for each path."""

    async def review(rest: str, _body: bytes, _budget: float) -> bytes:
        return orjson.dumps([rest, current_caller.get().value])

    server = WebhookServer(
        Routes(reviews={"validate": review, "auditnote": review}), host="127.0.0.1", callers=callers
    )
    await server.start()
    found = []
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
        for path in asked:
            async with session.post(path, data=b"{}") as response:
                said = await response.json() if response.status == 200 else None
                found.append((response.status, said))
    await server.stop()
    return found


def test_plain_paths_are_answered_as_nobody_s_until_secret_ones_are_written_and_refused_from_then_on():
    async def go() -> None:
        callers = Callers(now=ManualClock(NOW).now)
        callers.take(FIRST)
        plain, secret = "/validate/fail", at(FIRST, "validate", "/fail")
        assert await answers(callers, plain, secret) == [(200, ["fail", "nobody"]), (200, ["fail", "path"])]  # fmt: skip
        callers.take(WRITTEN)
        assert await answers(callers, plain, secret) == [(403, None), (200, ["fail", "path"])]
        stolen = f"/{WRITTEN.prefix('auditnote')}/validate/fail"
        assert await answers(callers, stolen, at(ROTATED, "validate")) == [(404, None)] * 2

    asyncio.run(go())


@pytest.mark.parametrize(("trusts", "known"), [(False, Caller.PATH), (True, Caller.TRUSTED_PATH)])
def test_a_path_proves_nothing_unless_operators_say_that_it_does(trusts: bool, known: Caller):
    callers = Callers(now=ManualClock(NOW).now, trusts_path=trusts)
    callers.take(WRITTEN)
    assert callers.who(None, at(WRITTEN, "validate")) == (known, "/validate")
    assert known.is_proven is trusts
    assert not Caller.NOBODY.is_proven
    assert Caller.CERTIFICATE.is_proven


def test_once_a_certificate_was_known_paths_are_over_and_never_come_back():
    async def go() -> None:
        clock = ManualClock(NOW)
        callers = Callers(now=clock.now, trusts_path=True)
        callers.take(WRITTEN)
        callers.take(replace(WRITTEN, authority=b"pem", certified_at=NOW))
        asked = at(WRITTEN, "validate")
        assert callers.who(None, asked)[0] is Caller.TRUSTED_PATH
        await clock.advance(OVERLAP.total_seconds())
        assert callers.who(None, asked)[0] is None
        callers.take(WRITTEN)
        assert callers.who(None, asked)[0] is None
        assert callers.who(None, "/validate")[0] is None

    asyncio.run(go())


@pytest.mark.parametrize(
    ("codes", "caller", "allowed"),
    [
        ({"mode": "off"}, Caller.PATH, True),
        ({"mode": "acknowledge"}, Caller.PATH, False),
        ({"mode": "approve"}, Caller.NOBODY, False),
        ({"mode": "acknowledge", "strict": True}, Caller.PATH, True),
        ({"mode": "acknowledge"}, Caller.TRUSTED_PATH, True),
        ({"mode": "acknowledge"}, Caller.CERTIFICATE, True),
    ],
)
def test_codes_that_objects_carry_are_not_turned_on_where_the_api_server_proves_nothing(codes, caller, allowed):  # fmt: skip
    obj = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "codes"}, "spec": {"codes": codes}}  # fmt: skip

    async def go() -> Any:
        current_caller.set(caller)
        validator = GrantValidator(FakeClient(), ManualClock(NOW), b"k" * 32)
        return orjson.loads(await validator.review("", body(obj), 5.0))["response"]

    answer = asyncio.run(go())
    assert answer["allowed"] is allowed
    assert allowed or "--client-ca" in answer["status"]["message"]
