"""The HTTP side of the webhook: connections, bodies, deadlines, draining. It knows paths and bytes, not policies.

aiohttp's low-level server without router and middleware, because every request takes this way and most are answered in a
fraction of a millisecond. Reviews are always answered with 200; other statuses are for what is no review.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

from aiohttp import HttpVersion11, StreamReader, web

from controllers.runtime.logs import current_request
from controllers.runtime.memory import bound_heap
from engine.errors import DocumentError
from engine.lang import duration

from .bodies import SMALL_BODY, Bodies, BodyLimits, BodyRefused
from .caller import Caller, Callers, current_caller
from .connections import Connection, Connections, Site, bound_buffers, port_of
from .reviewing import budget_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import RawRequestMessage

    from controllers.runtime.tracing import Tracer


KEEP_ALIVE_SECONDS = 120.0
LINGER_SECONDS = 1.0
DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0
MOST_AT_ONCE = 256
"""Requests under way; whoever comes on top of them is given no time, which is a refusal in words."""
_TURNS = 8
"""Turns of the event loop, more than a request takes from its socket to its handler."""

JSON = "application/json"
_BODY_LIMITS = BodyLimits()
_UNTRACED: AbstractContextManager[None] = nullcontext()


@dataclass(frozen=True, slots=True)
class Routes:
    """What a server answers.

    `reviews` by first path segment are given the rest of the path, the body and the seconds they have, 0 where there are
    too many requests; `pages` by whole path give status and text.
    """

    reviews: Mapping[str, Callable[[str, bytes, float], Awaitable[bytes]]] = field(
        default_factory=dict
    )
    pages: Mapping[str, Callable[[], tuple[int, bytes]]] = field(default_factory=dict)


class WebhookServer:
    """One listening socket with its connections; `callers` says whose reviews are answered, without it everybody's.

    `on_outage` is called where the API server may tell somebody at which path it called: it has no answer, or one that is none.
    """

    def __init__(
        self,
        routes: Routes,
        *,
        host: str = "",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        shared_port: bool = False,
        most_at_once: int = MOST_AT_ONCE,
        callers: Callers | None = None,
        on_outage: Callable[[], None] = lambda: None,
        body_limits: BodyLimits = _BODY_LIMITS,
        tracer: Tracer | None = None,
    ) -> None:
        self._routes = routes
        self._host, self._port = host or None, port
        self._tls = tls
        self._callers, self._on_outage = callers, on_outage
        self._shared_port = shared_port
        self._runner: web.ServerRunner | None = None
        self._connections: Connections | None = None
        self._is_draining = False
        self._most_at_once = most_at_once
        self._under_way = 0
        self._nothing_under_way = asyncio.Event()
        self._nothing_under_way.set()
        self._bodies = Bodies(body_limits)
        self._tracer = tracer

    def __repr__(self) -> str:
        return f"<WebhookServer at port {self.port}, {self._under_way} under way>"

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return port_of(self._runner)

    async def start(self) -> None:
        """Begin to listen; raises OSError when the port cannot be had."""
        bound_heap()
        bound_buffers()
        self._connections = Connections(
            self._handle,
            request_factory=self._request,
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            lingering_time=LINGER_SECONDS,
        )
        self._runner = web.ServerRunner(self._connections, shutdown_timeout=LONGEST_TIMEOUT)
        await self._runner.setup()
        site = Site(self._runner, self._host, self._port, self._tls, shared_port=self._shared_port)
        await site.start()

    def drain(self) -> None:
        """Close each connection with its next answer, so that callers move to other replicas."""
        self._is_draining = True

    async def stop(self) -> None:
        """Stop listening, finish what is being answered, and close."""
        self.drain()
        connections = self._connections
        if self._runner is None or connections is None:
            return
        for site in list(self._runner.sites):
            await site.stop()
        await connections.asked()
        # INVARIANT: connections that are told to end read nothing more, not the rest of a body either, so all are read before.
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_answered(), LONGEST_TIMEOUT)
        connections.pre_shutdown()
        await self._runner.cleanup()
        self._runner = self._connections = None

    async def _all_answered(self) -> None:
        """Wait until nothing is under way, nor was on its way to a handler when that was so."""
        quiet = 0
        while quiet < _TURNS:
            await self._nothing_under_way.wait()
            await asyncio.sleep(0)
            quiet = 0 if self._under_way else quiet + 1

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse | _ReviewAnswer:
        try:
            status, body, kind = await self._answer(request)
        except DocumentError as error:
            status, body, kind = 400, error.message.encode(), "text/plain"
        except TimeoutError:
            status, body, kind = 408, b"the body did not arrive in time", "text/plain"
        except ConnectionError:
            status, body, kind = 400, b"the connection ended within the body", "text/plain"
        except BodyRefused as refused:
            status, body, kind = refused.status, refused.text.encode(), "text/plain"
        if current_caller.get() is not Caller.NOBODY and (status != 200 or _is_gone(request)):
            self._on_outage()
        is_plain = request.keep_alive and request.version == HttpVersion11
        if kind is JSON and is_plain and not self._is_draining:
            return _ReviewAnswer(body)
        response = web.Response(status=status, body=body, content_type=kind)
        if self._is_draining or status == 403 or (status > 403 and not request.content.at_eof()):
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> tuple[int, bytes, str]:
        path = request.rel_url.raw_path
        page = self._routes.pages.get(path)
        if page is not None:
            status, body = page()
            return status, body, "text/plain"
        caller, inner = self._who(request, path)
        first, _, rest = inner[1:].partition("/")
        review = self._routes.reviews.get(first)
        if review is None:
            return 404, b"there is nothing here", "text/plain"
        if request.method != "POST":
            return 405, b"reviews are posted", "text/plain"
        if caller is None:
            return 403, b"reviews are answered to the API server", "text/plain"
        if "Content-Encoding" in request.headers:
            return 415, b"bodies are read as they are", "text/plain"
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._under_way += 1
        self._nothing_under_way.clear()
        try:
            with self._bodies.place(request) as place:
                body = await place.read(request)
                budget = budget_of(_timeout(request.rel_url.raw_query_string)) - (
                    loop.time() - began
                )
                if self._under_way > self._most_at_once:
                    budget = 0.0
                with self._trace(request, first):
                    return 200, await review(unquote(rest), body, max(budget, 0.0)), JSON
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._nothing_under_way.set()

    def _trace(self, request: web.BaseRequest, webhook: str) -> AbstractContextManager[None]:
        """Return what makes answering a request a trace, or part of the caller's, where reviews are traced."""
        if self._tracer is None:
            return _UNTRACED
        return self._tracer.review(webhook, request.headers.get("traceparent", ""))

    def _who(self, request: web.BaseRequest, path: str) -> tuple[Caller | None, str]:
        """Return who asks, None where that is not answered, and what for; remember it for the request."""
        found = (
            (Caller.NOBODY, path)
            if self._callers is None
            else self._callers.who(request.transport, path)
        )
        current_caller.set(found[0] or Caller.NOBODY)
        current_request.set("")
        return found

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Connection,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        protocol.is_new = False
        loop = asyncio.get_running_loop()
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=SMALL_BODY
        )


class _ReviewAnswer:
    """The answer to a review on a connection that stays open, written as one piece of which only the length is worked out.

    It stands where aiohttp takes a `web.StreamResponse` and has what is asked of one.
    """

    __slots__ = ("_body", "_writer")
    status = 200
    keep_alive = True

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def prepare(self, request: web.BaseRequest) -> None:
        """Take the connection that the request came on."""
        self._writer = request._payload_writer  # noqa: SLF001 - as every response of aiohttp does

    async def write_eof(self) -> None:
        """Write the answer; raises ConnectionError where nobody is there any more."""
        body = self._body
        await self._writer.write_eof(b"%b%d\r\n\r\n%b" % (_head(int(time.time())), len(body), body))


@lru_cache(maxsize=1)
def _head(second: int) -> bytes:
    """Return what the answers within one second begin with, up to their length."""
    date = formatdate(second, usegmt=True)
    return f"HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nDate: {date}\r\nContent-Length: ".encode()


def _is_gone(request: web.BaseRequest) -> bool:
    """Tell whether whoever asks has given up waiting."""
    return request.transport is None or request.transport.is_closing()


@lru_cache(maxsize=64)
def _timeout(query: str) -> float:
    """Return the seconds the caller waits, from `timeout=10s` (A10)."""
    given = parse_qs(query).get("timeout", [""])[0]
    nanoseconds = duration.parse(given)
    if nanoseconds is None or nanoseconds <= 0:
        return DEFAULT_TIMEOUT
    return min(nanoseconds / 1e9, LONGEST_TIMEOUT)
