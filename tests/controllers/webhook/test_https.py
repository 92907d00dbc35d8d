"""The server over real TLS on loopback: round trips, deadlines in the query, hostile bodies, new certificates, draining."""

from __future__ import annotations

import asyncio
import gc
import ssl
from asyncio import sslproto
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp
import orjson
import pytest

from controllers.webhook.bodies import LARGEST_BODY
from controllers.webhook.certificates import expiry, new_leaf
from controllers.webhook.connections import NEW_SECONDS
from controllers.webhook.reviewing import OVERLOADED
from controllers.webhook.server import Routes, WebhookServer
from controllers.webhook.tls import ServerTls

from .staging import body, made_certificates, pod, policy, serving, staged


def routes_of(stage, seen=None) -> Routes:
    async def validate(rest: str, sent: bytes, budget: float) -> bytes:
        if seen is not None:
            seen.append((rest, budget))
        return await stage.reviewer.review("validate", rest, sent, budget)

    return Routes(
        reviews={"validate": validate},
        pages={"/health/readiness": lambda: (200 if stage.cache.is_ready else 503, b"")},
    )


def test_a_bad_pod_is_denied_over_https_with_status_200() -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), certificates) as (_, _, session),
        ):
            answer = await session.post("/validate/fail?timeout=10s", data=body(pod()))
            assert (answer.status, answer.content_type) == (200, "application/json")
            assert "Retry-After" not in answer.headers
            assert (await answer.json())["response"]["allowed"] is False

    asyncio.run(go())


def test_readiness_follows_the_world_and_reviews_fail_closed_meanwhile() -> None:
    async def go() -> None:
        async with (
            staged(policy(), ready=False) as stage,
            serving(routes_of(stage), made_certificates()) as (_, _, session),
        ):
            assert (await session.get("/health/readiness")).status == 503
            answer = await session.post("/validate/fail", data=body(pod(labels={"team": "a"})))
            assert (await answer.json())["response"]["allowed"] is False
            stage.listed()
            assert (await session.get("/health/readiness")).status == 200

    asyncio.run(go())


def test_the_deadline_is_taken_from_the_query() -> None:
    async def go() -> None:
        seen: list = []
        async with (
            staged() as stage,
            serving(routes_of(stage, seen), made_certificates()) as (_, _, session),
        ):
            for query in ("?timeout=3s", "", "?timeout=nonsense", "?timeout=900s"):
                await session.post(f"/validate/fail{query}", data=body(pod()))
            assert [(rest, round(budget, 1)) for rest, budget in seen] == [
                ("fail", 2.5), ("fail", 9.5), ("fail", 9.5), ("fail", 29.5)
            ]  # fmt: skip

    asyncio.run(go())


def test_a_connection_reads_no_more_than_a_record_at_once() -> None:
    async def go() -> None:
        async with (
            staged() as stage,
            serving(routes_of(stage), made_certificates()) as (_, _, session),
        ):
            await session.get("/health/readiness")
            gc.collect()
            alive = [one for one in gc.get_objects() if isinstance(one, sslproto.SSLProtocol)]
            assert {len(one.get_buffer(-1)) for one in alive} == {16 * 1024}

    asyncio.run(go())


def test_what_is_no_review_is_refused_without_harm() -> None:
    async def go() -> None:
        deep = b'{"request":' + b"[" * 5000 + b"]" * 5000 + b"}"
        tries = [b"", b"{", b"[]", b"null", deep, b'{"request": 1}', b'{"request": {"uid": "x"}}', b'"\\ud800"']  # fmt: skip
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), made_certificates()) as (_, _, session),
        ):
            for sent in tries:
                answer = await session.post("/validate/fail", data=sent)
                assert answer.status == 400, sent[:20]
            answer = await session.post("/validate/fail", data=b"x", headers={"Content-Encoding": "gzip"})  # fmt: skip
            assert answer.status in (400, 415)
            assert (await session.get("/validate/fail")).status == 405
            assert (await session.post("/nowhere", data=b"")).status == 404
            answer = await session.post("/validate/fail", data=body(pod()))
            assert answer.status == 200

    asyncio.run(go())


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with staged() as stage, serving(routes_of(stage), certificates) as (server, _, _):
            trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting, server_hostname="localhost")  # fmt: skip
            writer.write(b"POST /validate/fail HTTP/1.1\r\nHost: x\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % (LARGEST_BODY + 1))
            await writer.drain()
            assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
            writer.close()

    asyncio.run(go())


def test_a_new_certificate_is_shown_without_a_restart() -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with staged() as stage, serving(routes_of(stage), certificates) as (server, tls, _):
            first = await shown(server.port, certificates)
            fresh = new_leaf(certificates.authority, ["localhost"], datetime.now(UTC))
            assert tls.load(fresh) is True
            assert tls.load(fresh) is False
            second = await shown(server.port, replace(certificates, leaf=fresh))
            assert first != second

    asyncio.run(go())


def test_answers_on_one_connection_are_whole_and_stand_in_the_order_of_the_requests() -> None:
    async def go() -> None:
        certificates = made_certificates()
        good, bad = body(pod(labels={"team": "a"})), body(pod())
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), certificates) as (server, _, _),
        ):
            sent = b"".join(raw(one) for one in (good, bad, good))
            head = b"HTTP/1.1 200 OK"
            reader, writer = await said(server, certificates, sent)
            answers = [await read_answer(reader) for _ in range(3)]
            assert [first for first, _, _ in answers] == [head] * 3
            assert [orjson.loads(told)["response"]["allowed"] for *_, told in answers] == [True, False, True]  # fmt: skip
            for _, headers, _ in answers:
                assert headers["content-type"] == "application/json"
                assert parsedate_to_datetime(headers["date"]).tzinfo is not None
                assert "connection" not in headers
            writer.close()

    asyncio.run(go())


@pytest.mark.parametrize(("version", "header"), [("1.0", ""), ("1.1", "Connection: close\r\n")])
def test_a_caller_that_keeps_no_connection_is_answered_and_let_go(
    version: str, header: str
) -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), certificates) as (server, _, _),
        ):
            reader, writer = await said(server, certificates, raw(body(pod()), version, header))
            first, _, told = await read_answer(reader)
            assert first == f"HTTP/{version} 200 OK".encode()
            assert orjson.loads(told)["response"]["allowed"] is False
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    asyncio.run(go())


def raw(sent: bytes, version: str = "1.1", header: str = "") -> bytes:
    head = f"POST /validate/fail HTTP/{version}\r\nHost: x\r\n{header}Content-Length: {len(sent)}"
    return head.encode() + b"\r\n\r\n" + sent


async def said(
    server, certificates, sent: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting, server_hostname="localhost")  # fmt: skip
    writer.write(sent)
    return reader, writer


async def read_answer(reader: asyncio.StreamReader) -> tuple[bytes, dict[str, str], bytes]:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    first, *lines = head.rstrip().split(b"\r\n")
    fields = (line.decode().partition(": ") for line in lines)
    headers = {name.lower(): value for name, _, value in fields}
    return first, headers, await reader.readexactly(int(headers["content-length"]))


async def shown(port: int, certificates) -> bytes:
    trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting, server_hostname="localhost"
    )
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


def test_a_draining_server_still_decides_and_closes_each_connection() -> None:
    async def go() -> None:
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), made_certificates()) as (server, _, session),
        ):
            before = await session.post("/validate/fail", data=body(pod()))
            assert before.headers.get("Connection") != "close"
            server.drain()
            answer = await session.post("/validate/fail", data=body(pod()))
            assert answer.headers["Connection"] == "close"
            assert (await answer.json())["response"]["allowed"] is False

    asyncio.run(go())


def test_a_request_under_way_is_answered_while_the_server_stops() -> None:
    async def go() -> None:
        async with staged(policy()) as stage:
            entered, release = asyncio.Event(), asyncio.Event()

            async def slow(rest: str, sent: bytes, budget: float) -> bytes:
                entered.set()
                await release.wait()
                return await stage.reviewer.review("validate", rest, sent, budget)

            async with serving(Routes({"validate": slow}), made_certificates()) as (server, _, session):  # fmt: skip
                asked = asyncio.create_task(session.post("/validate/fail", data=body(pod())))
                await entered.wait()
                stopping = asyncio.create_task(server.stop())
                await asyncio.sleep(0)
                release.set()
                answer = await asked
                assert orjson.loads(await answer.read())["response"]["allowed"] is False
                await stopping

    asyncio.run(go())


def post(writer: asyncio.StreamWriter, sent: bytes) -> None:
    head = f"POST /validate/fail HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent)}\r\n\r\n"
    writer.write(head.encode() + sent)


async def last_answer(reader: asyncio.StreamReader) -> bool:
    """Read to the end of a connection, and return whether the review was allowed; it was answered with 200."""
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    return orjson.loads(answer.rpartition(b"\r\n\r\n")[2])["response"]["allowed"]


async def _until_nobody_is_let_in(port: int) -> None:
    with suppress(ConnectionError):
        while True:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()


def test_who_connected_just_before_the_server_stops_is_answered() -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), certificates) as (server, _, _),
        ):
            trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
            port = server.port
            stopping = asyncio.create_task(server.stop())
            await _until_nobody_is_let_in(port)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.1)
            post(writer, body(pod()))
            assert await last_answer(reader) is False
            writer.close()
            await stopping

    asyncio.run(go())


@pytest.mark.parametrize("padding", [0, 100_000])
def test_what_arrived_on_a_used_connection_before_the_server_stops_is_answered(
    padding: int,
) -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with (
            staged(policy()) as stage,
            serving(routes_of(stage), certificates) as (server, _, _),
        ):
            trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
            writer.write(b"GET /health/readiness HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            post(writer, body(pod(labels={"padding": "x" * padding})))
            stopping = asyncio.ensure_future(server.stop())
            assert await last_answer(reader) is False
            writer.close()
            await stopping

    asyncio.run(go())


def test_who_connects_and_says_nothing_does_not_keep_a_server_that_stops() -> None:
    async def go() -> None:
        certificates = made_certificates()
        async with staged() as stage, serving(routes_of(stage), certificates) as (server, _, _):
            trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting)
            async with asyncio.timeout(NEW_SECONDS + 3):
                await server.stop()
                assert await reader.read() == b""
            writer.close()

    asyncio.run(go())


def test_nobody_answers_after_the_server_has_stopped() -> None:
    async def go() -> None:
        async with (
            staged() as stage,
            serving(routes_of(stage), made_certificates()) as (server, _, session),
        ):
            await server.stop()
            try:
                await session.post("/validate/fail", data=body(pod()))
            except aiohttp.ClientConnectionError:
                return
            raise AssertionError("somebody answered")

    asyncio.run(go())


def test_certificates_made_today_are_valid_for_their_terms() -> None:
    certificates = made_certificates()
    days = (expiry(certificates.leaf.certificate) - datetime.now(UTC)).days

    assert 148 <= days <= 150


def test_requests_on_top_of_what_can_be_decided_are_refused_in_words_and_others_are_not() -> None:
    async def go() -> None:
        async with staged(policy()) as stage:
            release, entered = asyncio.Event(), asyncio.Event()

            async def slow(rest: str, sent: bytes, budget: float) -> bytes:
                if budget > 0:
                    entered.set()
                    await release.wait()
                return await stage.reviewer.review("validate", rest, sent, budget)

            certificates = made_certificates()
            server = WebhookServer(
                Routes({"validate": slow}),
                host="127.0.0.1",
                tls=ServerTls(certificates.leaf).context,
                most_at_once=1,
            )
            await server.start()
            trusting = ssl.create_default_context(cadata=certificates.bundle.decode())
            async with aiohttp.ClientSession(
                f"https://127.0.0.1:{server.port}", connector=aiohttp.TCPConnector(ssl=trusting)
            ) as session:
                good = body(pod(labels={"team": "blue"}))
                first = asyncio.create_task(session.post("/validate/fail", data=good))
                await entered.wait()
                second = await session.post("/validate/fail", data=good)
                response = (await second.json())["response"]
                assert (second.status, response["allowed"]) == (200, False)
                assert response["status"]["message"] == OVERLOADED
                assert "Retry-After" not in second.headers
                release.set()
                assert (await (await first).json())["response"]["allowed"] is True
            await server.stop()

    asyncio.run(go())
