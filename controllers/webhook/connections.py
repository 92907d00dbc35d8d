"""Connections of the webhook server: HTTP/1.1 on each, how many there may be, and how much each may buffer.

Every request of a cluster takes this way, and most are answered in a fraction of a millisecond, so a connection is no more than
a parser and a task that answers one request after the other. A connection under TLS costs memory before anybody has said a word
on it, so their number is bounded. Where there is no room for another one, the one that has been idle longest makes room;
callers open a new one with their next request.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from asyncio import sslproto
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import httptools

from .bodies import BodyRefused
from .requests import HEADERS, TEXT, Request, encoded

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    Handler = Callable[[Request], Awaitable[bytes]]
    """Answers a request with bytes as they are sent; raises nothing but what is a fault of ours."""

MOST_CONNECTIONS: Final = 256
MOST_WAITING: Final = 16
"""Requests on one connection that wait for the one before them, beyond which it is not read from."""
MOST_HEAD: Final = 64 * 1024
"""Bytes of a request beside its body: head, and the sizes of chunks."""
VERSIONS: Final = ("1.1", "1.0")
READ_BUFFER: Final = 16 * 1024
"""Bytes of bodies after which a connection is not read from until the handler has taken some."""
HANDSHAKE_SECONDS: Final = 5.0
KEEP_ALIVE_SECONDS: Final = 120.0
LINGER_SECONDS: Final = 1.0
"""How long the rest of a request that was refused early is read: a connection cut before that takes the answer with it."""
NEW_SECONDS: Final = 1.0
"""How long a server that ends waits for the first request of a connection: a caller that sent it into its end has no answer."""
_LOOK_SECONDS: Final = 0.01
_SWEEP_SECONDS: Final = 10.0
_COLLECT_SECONDS: Final = 1.0
_TLS_BUFFER: Final = 16 * 1024
"""Bytes that TLS reads at once, a record; asyncio takes 256 KiB for each connection from its beginning on.

OpenSSL keeps a third more beside it for as long as the connection lasts, once that much came at once.
"""

_log = logging.getLogger(__name__)


class Connection(asyncio.Protocol):
    """One connection, from before its handshake; `is_new` until something is asked on it."""

    def __init__(self, connections: Connections, handler: Handler) -> None:
        self._connections, self._handler = connections, handler
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._target, self._headers = b"", dict[bytes, bytes]()
        self._incoming: Request | None = None
        self._current: Request | None = None
        self._waiting: deque[Request] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._refusal: BodyRefused | None = None
        self._held = self._beside_bodies = 0
        self._is_paused = self._is_ending = False
        self.is_new = True
        self.idle_since = self._loop.time()

    @property
    def is_open(self) -> bool:
        """Whether its handshake is over and nobody has closed it."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_idle(self) -> bool:
        """Whether nothing that was asked on it waits for an answer."""
        return self._current is None and not self._waiting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to answer what is asked."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._task = self._loop.create_task(self._serve(transport))

    def connection_lost(self, _exc: Exception | None) -> None:
        """End: what is being answered is, for what follows from it, though nobody is there to read it."""
        self._connections.forget(self)
        self._is_ending = True
        self._waiting.clear()
        if self._incoming is not None:
            self._incoming.end(ConnectionResetError("the connection ended"))
        _resolve(self._writable)
        self._wake()

    def data_received(self, data: bytes) -> None:
        """Take the next bytes of requests."""
        if self._refusal is not None or (self._is_ending and self._incoming is None):
            return
        self._beside_bodies += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_ending = (
                True  # the request is answered as any other, and what follows is no HTTP
            )
        except httptools.HttpParserError:
            self._refuse(400, "the request is not HTTP/1.1")
        if self._beside_bodies > MOST_HEAD and self._refusal is None:
            self._refuse(431, "the head of the request is too large")
        self._regulate()
        self._wake()

    def eof_received(self) -> None:
        """Let the connection end, as there is nobody to answer."""

    def pause_writing(self) -> None:
        """Answer no further request until the caller has read what it was answered."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """Answer again."""
        _resolve(self._writable)
        self._writable = None

    def on_message_begin(self) -> None:
        """Begin a request, of which no field came behind the chunks of the one before."""
        self._target, self._headers = b"", {}

    def on_url(self, part: bytes) -> None:
        """Take the next bytes of a request's target."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of a request's head, or one behind its chunks."""
        name = name.lower()
        if name in HEADERS:
            self._headers[name] = value

    def on_headers_complete(self) -> None:
        """Let a request be answered whose head has come."""
        assert self._transport is not None
        parser, self.is_new = self._parser, False
        version = parser.get_http_version()
        if version not in VERSIONS:
            raise httptools.HttpParserError(version)
        self._incoming = request = Request(
            parser.get_method(),
            self._target,
            version,
            self._headers,
            self._transport,
            self._taken,
            keep_alive=version == "1.1"
            and parser.should_keep_alive()
            and not parser.should_upgrade(),
        )
        self._headers = {}  # what comes behind chunks is no field of this request
        self._waiting.append(request)

    def on_body(self, data: bytes) -> None:
        """Take the next bytes of a request's body."""
        assert self._incoming is not None
        self._beside_bodies -= len(data)
        self._held += len(data)
        self._incoming.feed(data)

    def on_message_complete(self) -> None:
        """End a request's body."""
        assert self._incoming is not None
        self._incoming.end()
        self._incoming = None
        self._beside_bodies = 0

    def make_room(self) -> None:
        """Close at once."""
        self._is_ending = True
        if self._transport is not None:
            self._transport.abort()

    def end(self) -> None:
        """Close when what was asked is answered."""
        self._is_ending = True
        self._wake()

    async def ended(self) -> None:
        """Wait until everything is answered and the connection is closing."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Give up what is being answered."""
        if self._task is not None:
            self._task.cancel()

    async def _serve(self, transport: asyncio.Transport) -> None:
        try:
            while (request := await self._next()) is not None:
                transport.write(await self._handler(request))
                if not request.keep_alive:
                    await self._linger(request)
                    return
                request.drop()
                if self._writable is not None:
                    await self._writable
                self._current, self.idle_since = None, self._loop.time()
            if self._refusal is not None:
                transport.write(encoded(self._refusal.status, self._refusal.text.encode(), TEXT))
        except Exception:
            _log.exception("a request failed")
            transport.write(encoded(500, b"the server failed", TEXT))
        finally:
            self._current = None
            transport.close()

    async def _next(self) -> Request | None:
        """Return the next request when it is there, None at the end."""
        while not self._waiting:
            if self._is_ending or self._refusal is not None:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        self._current = request = self._waiting.popleft()
        self._regulate()
        return request

    async def _linger(self, request: Request) -> None:
        """Read the rest of a request for a moment and drop it."""
        with suppress(TimeoutError, ConnectionError, BodyRefused):
            async with asyncio.timeout(LINGER_SECONDS):
                await request.drop_rest()

    def _refuse(self, status: int, text: str) -> None:
        """Read nothing more; who waits for a body is given the refusal, or it is answered after what was asked before."""
        self._refusal = BodyRefused(status, text)
        if self._incoming is not None:
            self._incoming.keep_alive = False
            self._incoming.end(self._refusal)

    def _taken(self, size: int) -> None:
        self._held -= size
        self._regulate()

    def _regulate(self) -> None:
        """Read from the connection or not, by what waits to be taken from it."""
        is_full = self._held > READ_BUFFER or len(self._waiting) > MOST_WAITING
        if is_full is self._is_paused or self._transport is None or self._transport.is_closing():
            return
        self._is_paused = is_full
        if is_full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiting or self._is_ending or self._refusal is not None:
            _resolve(self._waiter)


class Connections:
    """A factory of connections that knows those there are; raises ConnectionAbortedError, which refuses one, where all are busy."""

    def __init__(self, handler: Handler, *, most: int = MOST_CONNECTIONS) -> None:
        self._handler, self._most = handler, most
        self._loop = asyncio.get_running_loop()
        self._alive: WeakSet[Connection] = WeakSet()
        self._collected_at = 0.0
        self._sweeping: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None

    def __call__(self) -> Connection:
        """Return the protocol of a new connection."""
        if len(self._alive) >= self._most and not self._has_made_room():
            raise ConnectionAbortedError("there are too many connections")
        made = Connection(self, self._handler)
        self._alive.add(made)
        return made

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def listen(
        self, host: str | None, port: int, tls: ssl.SSLContext | None, *, shared_port: bool
    ) -> None:
        """Let callers connect, who have only so long for the handshake and to take their leave; raises OSError when the port cannot be had."""
        self._server = await self._loop.create_server(
            self,
            host,
            port,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if tls else None,
            ssl_shutdown_timeout=HANDSHAKE_SECONDS if tls else None,
            reuse_port=shared_port or None,
            backlog=1024,
        )
        self._sweep()

    def close(self) -> None:
        """Let nobody connect any more."""
        if self._server is not None:
            self._server.close()
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def asked(self) -> None:
        """Wait until something was asked on every connection that there is, for as long as one that was just made may take."""
        until = self._loop.time() + NEW_SECONDS
        while any(one.is_new for one in self._alive) and self._loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)

    async def end(self, seconds: float) -> None:
        """Close each connection when what was asked on it is answered, after some seconds in any case."""
        alive = list(self._alive)
        for one in alive:
            one.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for one in alive:
                    await one.ended()
        for one in alive:
            one.cancel()

    def forget(self, connection: Connection) -> None:
        """Count a connection no more that has ended."""
        self._alive.discard(connection)

    def close_idle(self, now: float) -> None:
        """Close the connections on which nobody has asked for long; `now` is the event loop's time."""
        for one in list(self._alive):
            if one.is_idle and now - one.idle_since > KEEP_ALIVE_SECONDS:
                one.end()

    def _sweep(self) -> None:
        self.close_idle(self._loop.time())
        self._sweeping = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def _has_made_room(self) -> bool:
        idle = [one for one in self._alive if one.is_idle and one.is_open]
        if idle:
            min(idle, key=lambda one: one.idle_since).make_room()
            return True
        # connections that never finished their handshake are told nobody; they are gone once they are collected
        now = self._loop.time()
        if now - self._collected_at < _COLLECT_SECONDS:
            return False
        self._collected_at = now
        gc.collect()
        return len(self._alive) < self._most


def bound_buffers() -> None:
    """Let each connection of this process take less memory than asyncio gives it."""
    sslproto.SSLProtocol.max_size = _TLS_BUFFER


def _resolve(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
