"""A web server on loopback that answers as the test says, and remembers what it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seen:
    address: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [path for _, path, _, _ in self.requests]


@asynccontextmanager
async def serving(handler: Handler, *, ssl_context=None) -> AsyncIterator[Seen]:
    seen = Seen()

    async def remember(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        seen.requests.append((request.method, request.path_qs, dict(request.headers), body))
        return await handler(request)

    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", remember)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ssl_context)
    await site.start()
    port = runner.addresses[0][1]
    seen.address = f"{'https' if ssl_context else 'http'}://127.0.0.1:{port}"
    try:
        yield seen
    finally:
        await runner.cleanup()


def answering(*answers: web.Response | tuple[int, object]) -> Handler:
    """Answer in turn; the last answer stays."""
    left = list(answers)

    async def handle(request: web.Request) -> web.StreamResponse:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, tuple):
            return web.json_response(answer[1], status=answer[0])
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)

    return handle


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 40))
