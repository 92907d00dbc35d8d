"""Connections of the webhook server: how many there may be, and how much each may buffer.

A connection under TLS costs memory before anybody has said a word on it, so their number is bounded. Where there is no room
for another one, the one that has been idle longest makes room; callers open a new one with their next request.
"""

from __future__ import annotations

import asyncio
import gc
from asyncio import sslproto
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

if TYPE_CHECKING:
    import ssl

MOST_CONNECTIONS: Final = 256
HANDSHAKE_SECONDS: Final = 5.0
READ_BUFFER: Final = 16 * 1024
"""Bytes after which a connection is not read from until the handler has taken some."""
NEW_SECONDS: Final = 1.0
"""How long a server that ends waits for the first request of a connection: a caller that sent it into its end has no answer."""
_LOOK_SECONDS: Final = 0.01
_COLLECT_SECONDS: Final = 1.0
_TLS_BUFFER: Final = 16 * 1024
"""Bytes that TLS reads at once, a record; asyncio takes 256 KiB for each connection from its beginning on.

OpenSSL keeps a third more beside it for as long as the connection lasts, once that much came at once.
"""


class Connection(RequestHandler):
    """One connection, from before its handshake; `is_new` until something is asked on it."""

    __slots__ = ("__weakref__", "is_new")
    is_new: bool

    def make_room(self) -> bool:
        """Close at once where no request is under way; return whether that was done now."""
        transport = self.transport
        if self._current_request is not None or transport is None or transport.is_closing():
            return False
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
        return True


class Connections(web.Server):
    """A factory of connections that knows how many there are; raises ConnectionAbortedError, which refuses one, where all are busy."""

    def __init__(self, handler: Any, *, most: int = MOST_CONNECTIONS, **settings: Any) -> None:
        super().__init__(handler, read_bufsize=READ_BUFFER, **settings)
        self._most = most
        self._alive: WeakSet[Connection] = WeakSet()
        self._collected_at = 0.0

    def __call__(self) -> RequestHandler:
        """Return the protocol of a new connection."""
        if len(self._alive) >= self._most and not self._has_made_room():
            raise ConnectionAbortedError("there are too many connections")
        made = Connection(self, loop=self._loop, **self._kwargs)
        made.is_new = True
        self._alive.add(made)
        return made

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection that has ended."""
        super().connection_lost(handler, exc)
        self._alive.discard(handler)  # type: ignore[arg-type] # - any other is not in it

    async def asked(self) -> None:
        """Wait until something was asked on every connection that there is, for as long as one that was just made may take."""
        until = self._loop.time() + NEW_SECONDS
        while any(one.is_new for one in self._alive) and self._loop.time() < until:
            await asyncio.sleep(_LOOK_SECONDS)

    def _has_made_room(self) -> bool:
        if any(isinstance(one, Connection) and one.make_room() for one in self.connections):
            return True
        # connections that never finished their handshake are told nobody; they are gone once they are collected
        now = self._loop.time()
        if now - self._collected_at < _COLLECT_SECONDS:
            return False
        self._collected_at = now
        gc.collect()
        return len(self._alive) < self._most


class Site(web.TCPSite):
    """A listening socket whose callers have only so long for the handshake."""

    def __init__(
        self,
        runner: web.ServerRunner,
        host: str | None,
        port: int,
        tls: ssl.SSLContext | None,
        *,
        shared_port: bool,
    ) -> None:
        super().__init__(runner, host, port, ssl_context=tls, reuse_port=shared_port or None)
        self._shared_port = shared_port

    async def start(self) -> None:
        """Begin to listen; raises OSError when the port cannot be had."""
        await web.BaseSite.start(self)
        loop, server = asyncio.get_running_loop(), self._runner.server
        assert server is not None
        self._server = await loop.create_server(
            server,
            self._host,
            self._port,
            ssl=self._ssl_context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._ssl_context else None,
            reuse_port=self._shared_port or None,
            backlog=1024,
        )


def port_of(runner: web.ServerRunner | None) -> int:
    """Return the port that a runner which was started listens on."""
    assert runner is not None
    address: tuple[Any, ...] = runner.addresses[0]
    return int(address[1])


def bound_buffers() -> None:
    """Let each connection of this process take less memory than asyncio gives it."""
    sslproto.SSLProtocol.max_size = _TLS_BUFFER
