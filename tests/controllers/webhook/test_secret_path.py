"""The secret path: whoever calls there is the API server, everybody else gets no codes; and no codes without any proof at all."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import orjson
import pytest

from controllers.kube import ManualClock
from controllers.kube.fake import FakeClient
from controllers.webhook.caller import is_authenticated
from controllers.webhook.configurations import Address
from controllers.webhook.grants import GrantDesk
from controllers.webhook.secret_path import SecretPath
from controllers.webhook.server import Routes, WebhookServer

from .staging import NOW, body

KEY = b"k" * 32


def path_at(at: datetime, key: bytes = KEY) -> SecretPath:
    return SecretPath(key, lambda: at)


def test_a_path_is_good_on_its_day_and_the_ones_beside_it():
    made = path_at(NOW).current
    assert len(made) == 33
    for days, inner in ((0, "/validate/fail"), (1, "/validate/fail"), (-1, "/validate/fail"), (2, None), (-2, None)):  # fmt: skip
        assert path_at(NOW + timedelta(days=days)).inner(f"{made}/validate/fail") == inner


@pytest.mark.parametrize("path", ["/", "", "/validate/fail", "//validate", "/k-x/validate", "/\udc80/x"])  # fmt: skip
def test_any_other_path_is_not_the_secret_one(path: str):
    assert path_at(NOW).inner(path) is None


def test_another_key_has_another_path_and_none_is_shown():
    assert path_at(NOW).current != path_at(NOW, b"x").current
    assert path_at(NOW).inner(path_at(NOW, b"x").current + "/validate") is None
    assert path_at(NOW).inner(path_at(NOW).current) is None
    secret = path_at(NOW)
    assert secret.current[1:] not in repr(secret) + repr(Address(b"", prefix=secret.current))


def test_webhooks_are_called_at_the_secret_path():
    prefix = path_at(NOW).current
    inside = Address(b"", prefix=prefix).client_config("/validate/fail")
    outside = Address(b"", url="https://x/", prefix=prefix).client_config("/validate/fail")
    assert inside["service"]["path"] == f"{prefix}/validate/fail"
    assert outside["url"] == f"https://x{prefix}/validate/fail"


def test_who_calls_at_the_secret_path_is_authenticated_and_nobody_else():
    async def review(rest: str, _body: bytes, _budget: float) -> bytes:
        return orjson.dumps({"rest": rest, "known": is_authenticated.get()})

    async def go() -> list[Any]:
        secret = SecretPath(KEY, lambda: datetime.now(UTC))
        server = WebhookServer(
            Routes(reviews={"validate": review}), host="127.0.0.1", secret_path=secret
        )
        await server.start()
        found = []
        async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as session:
            guessed = path_at(NOW, b"guessed").current
            for path in (
                f"{secret.current}/validate/fail",
                "/validate/fail",
                f"{guessed}/validate/fail",
            ):
                async with session.post(path, data=b"{}") as response:
                    found.append(
                        (response.status, await response.json() if response.status == 200 else None)
                    )
        await server.stop()
        return found

    assert asyncio.run(go()) == [
        (200, {"rest": "fail", "known": True}),
        (200, {"rest": "fail", "known": False}),
        (404, None),
    ]


@pytest.mark.parametrize(("mode", "known", "allowed"), [("off", False, True), ("acknowledge", False, False), ("approve", False, False), ("acknowledge", True, True)])  # fmt: skip
def test_codes_are_not_turned_on_where_nobody_can_prove_to_be_the_api_server(mode, known, allowed):
    obj = {"apiVersion": "kpolicy.io/v1alpha1", "kind": "GrantPolicy", "metadata": {"name": "codes"}, "spec": {"codes": {"mode": mode}}}  # fmt: skip

    async def go() -> Any:
        desk = GrantDesk(FakeClient(), ManualClock(NOW), KEY, knows_callers=known)
        return orjson.loads(await desk.review("", body(obj), 5.0))["response"]

    answer = asyncio.run(go())
    assert answer["allowed"] is allowed
    assert allowed or "--client-ca" in answer["status"]["message"]
