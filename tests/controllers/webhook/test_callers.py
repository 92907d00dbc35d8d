"""Who may ask the webhook: the API server by its certificate, and nobody who merely reaches the port."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import orjson
import pytest

from controllers.webhook.caller import Caller, Callers, current_caller
from controllers.webhook.secret_path import Shared
from controllers.webhook.server import Routes, WebhookServer
from controllers.webhook.tls import ServerTls
from tests.clock import ManualClock
from tests.e2e.server.keys import Authority

from .staging import NOW, made_certificates

if TYPE_CHECKING:
    from pathlib import Path

NAME = "kube-apiserver"


def by(*names: str) -> Callers:
    return Callers(frozenset(names), now=ManualClock(NOW).now)


@asynccontextmanager
async def answering(
    folder: Path, callers: Callers | None, *, user: str = "", stranger: bool = False
):
    """Yield a session that shows a certificate for `user`, and what the server was asked by whom."""
    folder.joinpath("elsewhere").mkdir()
    known, unknown = Authority(folder), Authority(folder / "elsewhere")
    seen: list[Caller] = []

    async def review(_rest: str, sent: bytes, _budget: float) -> bytes:
        seen.append(current_caller.get())
        return sent

    certificates = made_certificates()
    trusted = known.pair.certificate.read_bytes() if callers is not None else b""
    if callers is not None:
        callers.take(Shared(b"s" * 32, authority=trusted, certified_at=NOW))
    server = WebhookServer(
        Routes(reviews={"validate": review}, pages={"/health/readiness": lambda: (200, b"ok")}),
        host="127.0.0.1", tls=ServerTls(certificates.leaf, trusted).context, callers=callers,
    )  # fmt: skip
    await server.start()
    context = ssl.create_default_context(cadata=certificates.bundle.decode())
    if user:
        shown = (unknown if stranger else known).user(user)
        context.load_cert_chain(shown.certificate, shown.key)
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{server.port}", connector=connector) as session:  # fmt: skip
        try:
            yield session, seen
        finally:
            await server.stop()


@pytest.mark.parametrize(
    ("callers", "user", "status"),
    [
        (by(NAME), NAME, 200),
        (by(NAME), "kubernetes-admin", 403),
        (by(NAME), f"{NAME}-2", 403),
        (by(NAME), "", 403),
        (by(), "anybody of this authority", 200),
        (by(), "", 403),
    ],
)
def test_only_who_shows_the_api_server_s_certificate_is_answered(tmp_path, callers, user, status):
    async def go() -> None:
        async with answering(tmp_path, callers, user=user) as (session, seen):
            answer = await session.post("/validate/fail", data=orjson.dumps({}))
            assert answer.status == status
            assert seen == ([Caller.CERTIFICATE] if status == 200 else [])
            assert (await session.get("/health/readiness")).status == 200

    asyncio.run(go())


def test_a_certificate_of_another_authority_opens_no_connection(tmp_path):
    async def go() -> None:
        async with answering(tmp_path, by(), user=NAME, stranger=True) as (session, seen):
            with pytest.raises(aiohttp.ClientError):
                await session.post("/validate/fail", data=b"{}")
            assert seen == []

    asyncio.run(go())


def test_where_no_authority_is_known_everybody_is_answered_and_nobody_authenticated(tmp_path):
    async def go() -> None:
        async with answering(tmp_path, None, user=NAME) as (session, seen):
            assert (await session.post("/validate/fail", data=b"{}")).status == 200
            assert seen == [Caller.NOBODY]

    asyncio.run(go())
