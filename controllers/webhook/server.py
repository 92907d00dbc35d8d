"""The HTTP side of the webhook: paths, bodies, deadlines, draining. It knows paths and bytes, not policies.

Reviews are always answered with 200; other statuses are for what is no review.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from controllers.runtime.logs import current_request
from controllers.runtime.memory import bound_heap
from engine.errors import DocumentError
from engine.lang import duration

from .bodies import Bodies, BodyLimits, BodyRefused
from .caller import Caller, Callers, current_caller
from .connections import Connections, bound_buffers
from .requests import JSON, TEXT, Request
from .reviewing import budget_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

    from controllers.runtime.tracing import Tracer


DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0
MOST_AT_ONCE = 256
"""Requests under way; whoever comes on top of them is given no time, which is a refusal in words."""
_TURNS = 8
"""Turns of the event loop, more than a request takes from its socket to its handler."""

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
        assert self._connections is not None
        return self._connections.port

    async def start(self) -> None:
        """Begin to listen; raises OSError when the port cannot be had."""
        bound_heap()
        bound_buffers()
        self._connections = Connections(self._handle)
        await self._connections.listen(
            self._host, self._port, self._tls, shared_port=self._shared_port
        )

    def drain(self) -> None:
        """Close each connection with its next answer, so that callers move to other replicas."""
        self._is_draining = True

    async def stop(self) -> None:
        """Stop listening, finish what is being answered, and close."""
        self.drain()
        connections = self._connections
        if connections is None:
            return
        connections.close()
        await connections.asked()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._all_answered(), LONGEST_TIMEOUT)
        await connections.end(LONGEST_TIMEOUT)
        self._connections = None

    async def _all_answered(self) -> None:
        """Wait until nothing is under way, nor was on its way to a handler when that was so."""
        quiet = 0
        while quiet < _TURNS:
            await self._nothing_under_way.wait()
            await asyncio.sleep(0)
            quiet = 0 if self._under_way else quiet + 1

    async def _handle(self, request: Request) -> bytes:
        try:
            status, body, kind = await self._answer(request)
        except DocumentError as error:
            status, body, kind = 400, error.message.encode(), TEXT
        except TimeoutError:
            status, body, kind = 408, b"the body did not arrive in time", TEXT
        except ConnectionError:
            status, body, kind = 400, b"the connection ended within the body", TEXT
        except BodyRefused as refused:
            status, body, kind = refused.status, refused.text.encode(), TEXT
        if current_caller.get() is not Caller.NOBODY and (status != 200 or request.is_given_up):
            self._on_outage()
        if self._is_draining or status == 403 or not request.is_complete:
            request.keep_alive = False
        return request.encoded(status, body, kind)

    async def _answer(self, request: Request) -> tuple[int, bytes, str]:
        path, query = _parts(request.target)
        page = self._routes.pages.get(path)
        if page is not None:
            status, body = page()
            return status, body, TEXT
        caller, inner = self._who(request, path)
        first, _, rest = inner[1:].partition("/")
        review = self._routes.reviews.get(first)
        if review is None:
            return 404, b"there is nothing here", TEXT
        if request.method != b"POST":
            return 405, b"reviews are posted", TEXT
        if caller is None:
            return 403, b"reviews are answered to the API server", TEXT
        if b"content-encoding" in request.headers:
            return 415, b"bodies are read as they are", TEXT
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._under_way += 1
        self._nothing_under_way.clear()
        try:
            with self._bodies.place(request) as place:
                body = await place.read(request)
                budget = budget_of(_timeout(query)) - (loop.time() - began)
                if self._under_way > self._most_at_once:
                    budget = 0.0
                with self._trace(request, first):
                    return 200, await review(unquote(rest), body, max(budget, 0.0)), JSON
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._nothing_under_way.set()

    def _trace(self, request: Request, webhook: str) -> AbstractContextManager[None]:
        """Return what makes answering a request a trace, or part of the caller's, where reviews are traced."""
        if self._tracer is None:
            return _UNTRACED
        return self._tracer.review(
            webhook, request.headers.get(b"traceparent", b"").decode("latin-1")
        )

    def _who(self, request: Request, path: str) -> tuple[Caller | None, str]:
        """Return who asks, None where that is not answered, and what for; remember it for the request."""
        found = (
            (Caller.NOBODY, path)
            if self._callers is None
            else self._callers.who(request.transport, path)
        )
        current_caller.set(found[0] or Caller.NOBODY)
        current_request.set("")
        return found


@lru_cache(maxsize=64)
def _parts(target: bytes) -> tuple[str, str]:
    """Return path and query of a request's target; raises DocumentError for one that is no URL."""
    try:
        path, _, query = target.decode("ascii").partition("?")
        path = path if path.startswith("/") else urlsplit(path).path
    except ValueError as error:
        raise DocumentError("the path of the request is not one of a URL") from error
    return path, query.partition("#")[0]


@lru_cache(maxsize=64)
def _timeout(query: str) -> float:
    """Return the seconds the caller waits, from `timeout=10s` (A10)."""
    given = parse_qs(query).get("timeout", [""])[0]
    nanoseconds = duration.parse(given)
    if nanoseconds is None or nanoseconds <= 0:
        return DEFAULT_TIMEOUT
    return min(nanoseconds / 1e9, LONGEST_TIMEOUT)
