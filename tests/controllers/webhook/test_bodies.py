"""What is refused by its header, what by its size, and who waits for whom."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager

import orjson
import pytest

from controllers.runtime.metrics import Metrics
from controllers.runtime.queues import BackgroundQueue
from controllers.webhook.bodies import SMALL_BODY, BodyLimits, decoded_size
from controllers.webhook.caller import Callers
from controllers.webhook.secret_path import Shared
from controllers.webhook.server import Routes, WebhookServer
from controllers.webhook.tls import ServerTls
from tests.clock import settle

from .staging import NOW, made_certificates

CLOSED = b"connection: close"


class Desk:
    """Reviews that take until they are let go."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.entered, self.release = asyncio.Event(), asyncio.Event()

    async def review(self, _rest: str, body: bytes, _budget: float) -> bytes:
        self.sizes.append(len(body))
        self.entered.set()
        await self.release.wait()
        return b"{}"


@asynccontextmanager
async def listening(
    validator: Desk, limits: BodyLimits | None = None, callers: Callers | None = None
):
    """Yield a way to open connections to a server."""
    certificates = made_certificates()
    server = WebhookServer(
        Routes({"validate": validator.review}),
        host="127.0.0.1",
        tls=ServerTls(certificates.leaf).context,
        body_limits=limits or BodyLimits(),
        callers=callers,
    )
    await server.start()
    trusting = ssl.create_default_context(cadata=certificates.bundle.decode())

    async def connect(sent: bytes):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=trusting, server_hostname="localhost"
        )
        writer.write(sent)
        return reader, writer

    connect.server = server
    try:
        yield connect
    finally:
        validator.release.set()
        await server.stop()


async def answer(reader: asyncio.StreamReader) -> bytes:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    return head.lower()


def post(body: bytes, *headers: str) -> bytes:
    lines = [f"content-length: {len(body)}", *headers]
    head = "\r\n".join(["POST /validate HTTP/1.1", "host: x", *lines, "", ""])
    return head.encode() + body


def test_who_may_not_ask_is_refused_before_a_byte_of_the_body_has_come() -> None:
    async def go() -> None:
        validator = Desk()
        callers = Callers(now=lambda: NOW)
        callers.take(Shared(current=b"k" * 32, was_written=True, written_at=NOW))
        async with listening(validator, callers=callers) as connect:
            reader, writer = await connect(post(b"", "x: y").replace(b"length: 0", b"length: 1000000"))  # fmt: skip
            head = await answer(reader)
            assert b" 403 " in head
            assert CLOSED in head
            assert validator.sizes == []
            writer.transport.abort()

    asyncio.run(go())


def test_a_body_of_unknown_length_is_read_only_as_far_as_bodies_may_go() -> None:
    async def go() -> None:
        validator = Desk()
        async with listening(validator, BodyLimits(read=1 << 20)) as connect:
            reader, writer = await connect(
                b"POST /validate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            chunk = b"%x\r\n%b\r\n" % (1 << 16, b"x" * (1 << 16))
            for _ in range(17):
                writer.write(chunk)
            head = await answer(reader)
            assert b" 413 " in head
            assert CLOSED in head
            assert validator.sizes == []
            writer.transport.abort()

    asyncio.run(go())


def test_a_body_that_would_take_too_much_memory_when_decoded_is_not_decoded() -> None:
    async def go() -> None:
        validator = Desk()
        async with listening(validator, BodyLimits(decoded=8 << 20)) as connect:
            reader, writer = await connect(post(b"[" + b"[]," * 100_000 + b"0]"))
            assert b" 413 " in await answer(reader)
            validator.release.set()
            reader, writer_2 = await connect(post(b'["' + b"x" * 300_000 + b'"]'))
            assert b" 200 " in await answer(reader)
            assert validator.sizes == [300_004]
            writer.transport.abort()
            writer_2.transport.abort()

    asyncio.run(go())


def test_large_bodies_wait_for_each_other_and_small_ones_do_not_wait_for_them() -> None:
    async def go() -> None:
        validator, large = Desk(), post(b'["' + b"x" * (600 << 10) + b'"]')
        async with listening(validator, BodyLimits(decoded=1 << 20)) as connect:
            first, writer = await connect(large)
            await validator.entered.wait()
            validator.entered.clear()
            second, writer_2 = await connect(large)
            small, writer_3 = await connect(post(b"{}"))
            await validator.entered.wait()
            assert validator.sizes == [(600 << 10) + 4, 2]
            validator.release.set()
            for reader in (first, second, small):
                assert b" 200 " in await answer(reader)
            for one in (writer, writer_2, writer_3):
                one.transport.abort()

    asyncio.run(go())


def test_a_large_body_for_which_there_is_no_room_in_time_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("controllers.webhook.bodies.WAIT_SECONDS", 0.0)

    async def go() -> None:
        validator, large = Desk(), post(b'["' + b"x" * (600 << 10) + b'"]')
        async with listening(validator, BodyLimits(decoded=1 << 20)) as connect:
            first, writer = await connect(large)
            await validator.entered.wait()
            second, writer_2 = await connect(large)
            head = await answer(second)
            assert b" 503 " in head
            assert b"retry-after" not in head
            text = await second.readexactly(len(b"too many large bodies are being read"))
            assert text == b"too many large bodies are being read"
            validator.release.set()
            assert b" 200 " in await answer(first)
            for one in (writer, writer_2):
                one.transport.abort()

    asyncio.run(go())


def test_small_bodies_give_back_what_they_do_not_need_where_room_gets_scarce() -> None:
    async def go() -> None:
        validator, small = Desk(), post(b'["' + b"x" * 3_000 + b'"]')
        async with listening(validator, BodyLimits(small=400_000)) as connect:
            opened = [await connect(small) for _ in range(20)]
            while len(validator.sizes) < 20:
                await asyncio.wait_for(validator.entered.wait(), 5)
                validator.entered.clear()
            validator.release.set()
            for reader, writer in opened:
                assert b" 200 " in await answer(reader)
                writer.transport.abort()

    asyncio.run(go())


def test_small_bodies_for_which_there_is_no_room_are_refused_as_well(monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr("controllers.webhook.bodies.WAIT_SECONDS", 0.0)

    async def go() -> None:
        validator, small = Desk(), post(b"[" + b"[]," * 1_000 + b"0]")
        async with listening(validator, BodyLimits(small=300_000)) as connect:
            opened = []
            for _ in range(2):
                opened.append(await connect(small))
                await asyncio.wait_for(validator.entered.wait(), 5)
                validator.entered.clear()
            refused, writer = await connect(small)
            assert b" 503 " in await answer(refused)
            validator.release.set()
            for reader, writer_of_it in opened:
                assert b" 200 " in await answer(reader)
                writer_of_it.transport.abort()
            again, writer_again = await connect(small)
            assert b" 200 " in await answer(again)
            for one in (writer, writer_again):
                one.transport.abort()

    asyncio.run(go())


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controllers.webhook.bodies.BODY_SECONDS", 0.0)

    async def go() -> None:
        validator = Desk()
        async with listening(validator) as connect:
            reader, writer = await connect(post(b"{}")[:-1])
            head = await answer(reader)
            assert b" 408 " in head
            assert CLOSED in head
            writer.transport.abort()

    asyncio.run(go())


@pytest.mark.parametrize("unit", [b"[],", b"[[0]],", b'{"a":{}},', b'{"":0},', b'"a",', b"1.5,", '"é",'.encode()])  # fmt: skip
def test_what_a_body_is_decoded_to_is_never_estimated_too_low(unit: bytes) -> None:
    import tracemalloc

    body = b"[" + unit * 20_000 + b"0]"
    tracemalloc.start()
    try:
        held = orjson.loads(body)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert len(held) == 20_001
    assert taken <= decoded_size(body) <= 4 * taken


def test_an_ordinary_review_counts_as_small() -> None:
    assert SMALL_BODY >= 64 * 1024
    assert decoded_size(b'{"a":"b"}') < 1024


def test_work_after_requests_is_dropped_when_it_holds_too_much_and_counted() -> None:
    async def go() -> None:
        metrics = Metrics()
        background_queue = BackgroundQueue(metrics, workers=1, most_bytes=100)
        done = []

        async def work() -> None:
            done.append(1)

        assert background_queue.add(work, 90)
        assert not background_queue.add(work, 90)
        assert background_queue.add(work, 10)
        background_queue.start()
        await background_queue.finish()
        assert background_queue.add(work, 1000)
        await background_queue.finish()
        await background_queue.stop()
        assert len(done) == 3
        assert "kyverno_breaker_drops" in str(metrics.dump())

    asyncio.run(go())


def test_a_body_that_is_on_its_way_when_the_server_ends_is_read_and_answered() -> None:
    async def play() -> None:
        validator = Desk()
        validator.release.set()
        async with listening(validator) as connect:
            sent = post(b"x" * 3000)
            reader, writer = await connect(sent[:-1000])
            _, idle = await connect(b"")
            while "1 under way" not in repr(connect.server):
                await settle(1)
            ending = asyncio.ensure_future(connect.server.stop())
            await settle(40)
            assert not ending.done()
            writer.write(sent[-1000:])
            head = await answer(reader)
            assert b" 200 " in head
            assert CLOSED in head
            await asyncio.wait_for(ending, 5)
            idle.close()
        assert validator.sizes == [3000]

    asyncio.run(play())
