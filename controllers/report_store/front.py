"""The HTTP side: requests of the API server in, answers and streams out. It knows headers and bytes, not reports."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from controllers.kube import KubeError

from .api import Answer, Api, Call, refusal
from .changing import LARGEST, too_large

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from .requester import Requester

KEEP_ALIVE_SECONDS: Final = 120.0
HEALTH: Final = ("/livez", "/readyz", "/healthz")
_JSON: Final = "application/json"
_LARGEST_BODY: Final = 2 * LARGEST


class Front:
    """A listening socket; `who` tells who asks from the certificate that TLS has checked and the headers."""

    def __init__(
        self,
        api: Api,
        who: Callable[[Any, web.BaseRequest], Requester | None],
        *,
        host: str = "",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._api, self._who = api, who
        self._host, self._port, self._tls = host or None, port, tls
        self._runner: web.ServerRunner | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._runner is not None
        return int(self._runner.addresses[0][1])

    async def start(self) -> None:
        """Begin to listen; raises OSError when the port cannot be had."""
        server = web.Server(self._handle, access_log=None, keepalive_timeout=KEEP_ALIVE_SECONDS)
        self._runner = web.ServerRunner(server, shutdown_timeout=5.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()

    async def stop(self) -> None:
        """Stop listening, finish what is being answered, and close."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in HEALTH:
            return web.Response(text="ok")
        try:
            call = await self._call(request)
        except KubeError as error:
            return _response(refusal(error))
        answer = await self._api.answer(call)
        return _response(answer) if answer.parts is None else await _stream(request, answer)

    async def _call(self, request: web.BaseRequest) -> Call:
        transport = request.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        requester = self._who(tls.getpeercert() if tls is not None else None, request)
        body = await _body(request) if requester is not None else b""
        return Call(
            request.method,
            request.path,
            requester,
            dict(reversed(list(request.query.items()))),
            request.headers.get("Accept", ""),
            body,
        )


async def _body(request: web.BaseRequest) -> bytes:
    """Return the body; raises KubeError for one that is larger than any report."""
    parts, size = [], 0
    async for part in request.content.iter_any():
        size += len(part)
        if size > _LARGEST_BODY:
            raise too_large("the body is too large")
        parts.append(part)
    return b"".join(parts)


def _response(answer: Answer) -> web.Response:
    headers = {"Retry-After": str(answer.retry_after)} if answer.retry_after else {}
    return web.Response(status=answer.status, body=answer.body, content_type=_JSON, headers=headers)


async def _stream(request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    assert answer.parts is not None
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": _JSON})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async with aclosing(answer.parts) as parts:
        async for part in parts:
            await response.write(part)
    await response.write_eof()
    return response
