"""Connections of the webhook server: what of HTTP/1.1 is answered, what is refused, and what each may hold."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from controllers.webhook import connections
from controllers.webhook.connections import KEEP_ALIVE_SECONDS, MOST_HEAD, MOST_WAITING, Connections
from controllers.webhook.requests import TEXT
from controllers.webhook.server import Routes, WebhookServer
from tests.clock import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from controllers.webhook.requests import Request

    Connect = Callable[[bytes], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

PATIENCE = 5
LARGE = 4 * 1024 * 1024


class Echo:
    """A server's reviews and pages: reviews are answered with their bodies, `bodies` are those that came."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def review(self, _rest: str, body: bytes, _budget: float) -> bytes:
        self.bodies.append(body)
        return body

    @property
    def routes(self) -> Routes:
        pages = {"/page": lambda: (200, b"page"), "/large": lambda: (200, b"x" * LARGE)}
        return Routes({"validate": self.review}, pages)


@asynccontextmanager
async def listening(echo: Echo) -> AsyncIterator[Connect]:
    """Yield a way to connect to a server without TLS, and to send it something at once."""
    server = WebhookServer(echo.routes, host="127.0.0.1")
    await server.start()
    opened = []

    async def connect(sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        opened.append(writer)
        writer.write(sent)
        return reader, writer

    try:
        yield connect
    finally:
        for writer in opened:
            writer.transport.abort()
        await server.stop()


def asked(
    target: str = "/page",
    *,
    method: str = "GET",
    version: str = "1.1",
    fields: str = "",
    body: bytes = b"",
) -> bytes:
    return f"{method} {target} HTTP/{version}\r\nHost: x\r\n{fields}\r\n".encode() + body


def posted(body: bytes, fields: str = "") -> bytes:
    return asked(
        "/validate", method="POST", fields=f"Content-Length: {len(body)}\r\n{fields}", body=body
    )


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    """Return status, head in small letters and body of the next answer."""
    async with asyncio.timeout(PATIENCE):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return int(head.split()[1]), head, await reader.readexactly(length)


async def last(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return status and body of an answer after which the connection ends, and says so."""
    status, head, body = await answer(reader)
    assert b"connection: close" in head
    async with asyncio.timeout(PATIENCE):
        assert await reader.read() == b""
    return status, body


def test_requests_that_come_together_are_answered_in_their_order_however_many() -> None:
    async def go() -> None:
        echo, count = Echo(), 3 * MOST_WAITING
        async with listening(echo) as connect:
            reader, _ = await connect(b"".join(posted(b"%d" % one) for one in range(count)))
            assert [(await answer(reader))[2] for _ in range(count)] == [
                b"%d" % one for one in range(count)
            ]

    asyncio.run(go())


def test_a_request_that_comes_byte_by_byte_is_whole_when_it_is_answered() -> None:
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            reader, writer = await connect(b"")
            for one in posted(b"body"):
                writer.write(bytes([one]))
                await settle(2)
            assert (await answer(reader))[::2] == (200, b"body")

    asyncio.run(go())


def test_a_body_in_chunks_is_put_together_and_fields_behind_it_are_no_part_of_the_next_request() -> (
    None
):
    async def go() -> None:
        echo = Echo()
        chunked = asked("/validate", method="POST", fields="Transfer-Encoding: chunked\r\n")
        chunks = b"3\r\nabc\r\n2\r\nde\r\n0\r\nContent-Encoding: gzip\r\n\r\n"
        async with listening(echo) as connect:
            reader, _ = await connect(chunked + chunks + posted(b"f"))
            assert [(await answer(reader))[0] for _ in range(2)] == [200, 200]
            assert echo.bodies == [b"abcde", b"f"]

    asyncio.run(go())


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 hello\r\n\r\n",
        b"GET /page\r\n\r\n",
        b"GET /page HTTP/9.9\r\n\r\n",
        asked(fields="no field\r\n"),
        asked("/validate", method="POST", fields="Content-Length: -1\r\n"),
        asked(
            "/validate",
            method="POST",
            fields="Content-Length: 1\r\nContent-Length: 2\r\n",
            body=b"ab",
        ),
        asked(
            "/validate",
            method="POST",
            fields="Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
            body=b"0\r\n\r\n",
        ),
        asked("/validate", method="POST", fields="Transfer-Encoding: chunked\r\n", body=b"zz\r\n"),
        asked("/p\xe4ge"),
    ],
)
def test_what_is_no_request_is_refused_with_400_after_what_was_asked_before(sent: bytes) -> None:
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            reader, _ = await connect(posted(b"before") + sent)
            assert (await answer(reader))[2] == b"before"
            assert (await last(reader))[0] == 400
            assert echo.bodies == [b"before"]

    asyncio.run(go())


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * MOST_HEAD,
        b"GET /page HTTP/1.1\r\nX: " + b"x" * MOST_HEAD,
        b"GET /page HTTP/1.1\r\n" + b"A: b\r\n" * (MOST_HEAD // 6 + 1),
    ],
)
def test_a_head_that_does_not_end_is_refused(sent: bytes) -> None:
    async def go() -> None:
        async with listening(Echo()) as connect:
            reader, _ = await connect(sent)
            assert (await last(reader))[0] == 431

    asyncio.run(go())


def test_a_body_of_little_else_than_sizes_of_chunks_is_refused() -> None:
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            head = asked("/validate", method="POST", fields="Transfer-Encoding: chunked\r\n")
            reader, _ = await connect(head + b"1\r\nx\r\n" * (MOST_HEAD // 4))
            assert (await last(reader))[0] == 431
            assert echo.bodies == []

    asyncio.run(go())


def test_a_caller_that_waits_for_leave_to_send_its_body_is_given_it_or_the_refusal() -> None:
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            expects = "Expect: 100-continue\r\n"
            reader, writer = await connect(posted(b"abc", expects)[:-3])
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"abc")
            assert (await answer(reader))[::2] == (200, b"abc")
            reader, _ = await connect(
                posted(b"abc", expects).replace(b"/validate", b"/nowhere")[:-3]
            )
            assert (await last(reader))[0] == 404

    asyncio.run(go())


def test_a_head_is_answered_without_a_body() -> None:
    async def go() -> None:
        async with listening(Echo()) as connect:
            reader, _ = await connect(asked(method="HEAD") + asked())
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            assert b"Content-Length: 4\r\n" in head
            assert (await answer(reader))[2] == b"page"

    asyncio.run(go())


def test_a_request_to_speak_something_else_is_answered_as_any_other_and_ends_the_connection() -> (
    None
):
    async def go() -> None:
        async with listening(Echo()) as connect:
            reader, _ = await connect(
                asked(fields="Connection: Upgrade\r\nUpgrade: h2c\r\n") + b"PRI *"
            )
            assert await last(reader) == (200, b"page")

    asyncio.run(go())


def test_targets_may_be_whole_urls() -> None:
    async def go() -> None:
        async with listening(Echo()) as connect:
            reader, _ = await connect(asked("http://host:1/page?timeout=1s"))
            assert (await answer(reader))[2] == b"page"

    asyncio.run(go())


def test_an_answer_before_the_end_of_a_body_ends_the_connection_so_that_the_rest_is_no_request() -> (
    None
):
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            reader, writer = await connect(asked(fields="Content-Length: 100000\r\n"))
            status, head, _ = await answer(reader)
            assert (status, b"connection: close" in head) == (200, True)
            writer.write(posted(b"smuggled").ljust(100_000))
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            assert echo.bodies == []

    asyncio.run(go())


def test_a_caller_that_leaves_within_its_body_leaves_nothing_under_way() -> None:
    async def go() -> None:
        echo = Echo()
        server = WebhookServer(echo.routes, host="127.0.0.1")
        await server.start()
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(posted(b"x" * 3000)[:-1000])
        while "1 under way" not in repr(server):
            await settle(1)
        writer.transport.abort()
        while "0 under way" not in repr(server):
            await settle(1)
        assert echo.bodies == []
        await server.stop()

    asyncio.run(go())


def test_a_caller_that_does_not_read_its_answers_is_given_no_more_of_them_than_fit() -> None:
    async def go() -> None:
        echo = Echo()
        async with listening(echo) as connect:
            reader, writer = await connect(asked("/large") * 8 + posted(b"behind"))
            writer.transport.pause_reading()
            await settle(200)
            assert echo.bodies == []
            writer.transport.resume_reading()
            for _ in range(8):
                assert len((await answer(reader))[2]) == LARGE
            assert (await answer(reader))[2] == b"behind"

    asyncio.run(go())


@asynccontextmanager
async def held(most: int) -> AsyncIterator[tuple[Connections, Connect]]:
    """Yield connections of which there may be so many, all answered at once, and a way to connect and ask."""

    async def handler(request: Request) -> bytes:
        return request.encoded(200, b"ok", TEXT)

    made, opened = Connections(handler, most=most), []
    await made.listen("127.0.0.1", 0, None, shared_port=False)

    async def connect(sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        opened.append(writer)
        writer.write(sent)
        return reader, writer

    try:
        yield made, connect
    finally:
        for writer in opened:
            writer.transport.abort()
        made.close()
        await made.end(1)


def test_who_has_been_idle_longest_makes_room_for_another_one() -> None:
    async def go() -> None:
        async with held(2) as (_, connect):
            first, first_writer = await connect(asked())
            await answer(first)
            second, _ = await connect(asked())
            await answer(second)
            first_writer.write(asked())
            await answer(first)
            third, _ = await connect(asked())
            assert (await answer(third))[0] == 200
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await second.readexactly(1)
            first_writer.write(asked())
            assert (await answer(first))[0] == 200

    asyncio.run(go())


def test_connections_on_which_nobody_asks_are_closed_after_a_while() -> None:
    async def go() -> None:
        async with held(2) as (made, connect):
            reader, _ = await connect(asked())
            await answer(reader)
            now = asyncio.get_running_loop().time()
            made.close_idle(now + KEEP_ALIVE_SECONDS - 1)
            await settle(5)
            assert not reader.at_eof()
            made.close_idle(now + KEEP_ALIVE_SECONDS + 1)
            assert await asyncio.wait_for(reader.read(), PATIENCE) == b""

    asyncio.run(go())


def test_a_fault_of_ours_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(_request: Request) -> bytes:
        raise LookupError("a fault")

    async def go() -> None:
        made = Connections(broken)
        await made.listen("127.0.0.1", 0, None, shared_port=False)
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(asked())
        assert (await last(reader))[0] == 500
        made.close()
        await made.end(1)
        writer.close()

    asyncio.run(go())
    assert connections.__name__ in {record.name for record in caplog.records}
