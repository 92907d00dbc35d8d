"""HTTP to one API server: credentials, TLS, retries, time-outs, and nothing about kinds.

Apart from `http` so that what may be repeated, and what may go out beside our credentials, is read in one place. No
redirect is followed and no foreign exception gets out.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import weakref
from typing import TYPE_CHECKING

import aiohttp
import orjson
from multidict import CIMultiDict
from yarl import URL

from engine.lang.work import LIMITS, Limits

from .clock import Clock, ServerClock, SystemClock
from .errors import AccessError, Invalid, KubeError, Unauthorized, Unreachable, error_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest, ConnectionKey
    from aiohttp.tracing import Trace

    from engine.model import Json

    from .access import Access, Tls
    from .credentials import Presented

JSON = "application/json"
REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 10.0
_TRIES = 5
_LONGEST_PAUSE = 30.0
_PARALLEL = 64
_LARGEST_ERROR = 64 * 1024
_TRANSIENT = frozenset({429, 500, 502, 503, 504})
_SAFE_TO_REPEAT = frozenset({502, 503, 504})


class _LastUsedFirst(aiohttp.TCPConnector):
    """Goes on with the connection that was used last, so that those which only a rush needed come to rest and are closed.

    By turns, as is aiohttp's way, all of them stay, and each keeps buffers as large as the largest that it ever carried.
    For the same reason none stays for longer than `LONGEST_SECONDS`, after which a server that came back gets its share, too.
    """

    LONGEST_SECONDS = 300.0

    async def _create_connection(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        self._loop.call_later(self.LONGEST_SECONDS, _ended, weakref.ref(protocol))
        return protocol

    def _release(
        self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False
    ) -> None:
        super()._release(key, protocol, should_close=should_close)
        kept = self._conns.get(key)
        if kept and kept[-1][0] is protocol:
            kept.rotate()


def _ended(connection: weakref.ref[ResponseHandler]) -> None:
    """Have a connection closed at the end of the answer that it carries, or is given next."""
    protocol = connection()
    if protocol is not None:
        protocol.force_close()


class Transport:
    """Sends requests to the server of an Access."""

    def __init__(self, access: Access, clock: Clock | None, seconds: float) -> None:
        self.access = access
        self._clock: Clock = clock or SystemClock()
        self._seconds = seconds
        self._session: aiohttp.ClientSession | None = None
        self._trust: ssl.SSLContext | bool = True
        self._certificate: bytes | None = None
        self._slots = asyncio.Semaphore(_PARALLEL)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        content_type: str = JSON,
        accept: str = JSON,
        limit: int = 0,
        seconds: float = 0,
    ) -> bytes:
        """Send a request and return the body of a good answer, read up to `limit` bytes."""
        limits = aiohttp.ClientTimeout(total=seconds or self._seconds, sock_connect=CONNECT_SECONDS)
        sent = (_encoded(body), content_type) if body is not None else None
        async with self._slots:
            response = await self.open(method, path, query or {}, sent, accept, limits)
            try:
                return await read_at_most(response.content, limit)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise unreachable(self.access.server, error) from error
            finally:
                hang_up(response) if not response.content.at_eof() else response.release()

    async def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        sent: tuple[bytes, str] | None,
        accept: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Return an answer below status 300; tries again where the server, or a lost connection, allows it."""
        pause = 0.25
        for attempt in range(1, _TRIES + 1):
            try:
                return await self._once(method, path, query, sent, accept, limits)
            except KubeError as error:
                wait = _pause_after(error, method, pause)
                if (
                    isinstance(error, Unauthorized)
                    and attempt == 1
                    and self.access.credentials.spoil()
                ):
                    wait = 0.0
                if wait is None or attempt == _TRIES:
                    raise
            await self._clock.sleep(wait)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    async def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        sent: tuple[bytes, str] | None,
        accept: str,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        presented = await self.access.credentials.current(self._clock)
        url = URL(self.access.server + path, encoded=True)
        if query:
            url = url.update_query(query)
        headers = self._headers(presented, accept)
        if sent:
            headers["Content-Type"] = sent[1]
        try:
            response = await self._connection(presented).request(
                method,
                url,
                data=sent[0] if sent else None,
                headers=headers,
                timeout=limits,
                allow_redirects=False,
                ssl=self._trust,
                server_hostname=self.access.tls.server_name or None,
                proxy=self.access.proxy or None,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise unreachable(self.access.server, error) from error
        if isinstance(self._clock, ServerClock):
            self._clock.observe(response.headers.get("Date", ""))
        if response.status < 300:
            return response
        raise await self._refusal(response)

    async def _refusal(self, response: aiohttp.ClientResponse) -> KubeError:
        try:
            data = await read_at_most(response.content, _LARGEST_ERROR)
        except (aiohttp.ClientError, TimeoutError, OSError, KubeError):
            data = b""
        finally:
            response.close()
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            body = None
        return error_of(response.status, body, retry_after=_retry_after(response.headers))

    def _headers(self, presented: Presented, accept: str) -> CIMultiDict[str]:
        headers: CIMultiDict[str] = CIMultiDict({"Accept": accept, "User-Agent": "kpolicy"})
        if presented.authorization:
            headers["Authorization"] = presented.authorization
        acting = self.access.impersonate
        if acting is not None:
            headers["Impersonate-User"] = acting.user
            if acting.uid:
                headers["Impersonate-Uid"] = acting.uid
            for group in acting.groups:
                headers.add("Impersonate-Group", group)
            for key, value in acting.extra:
                headers.add(f"Impersonate-Extra-{key}", value)
        return headers

    def _connection(self, presented: Presented) -> aiohttp.ClientSession:
        """Return the session, with TLS for the client certificate that is valid now."""
        if self._session is None:
            connector = _LastUsedFirst(limit=0, ttl_dns_cache=60)
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=True, cookie_jar=aiohttp.DummyCookieJar()
            )
        is_new = self._certificate != presented.certificate
        if is_new and self.access.server.startswith("https:"):
            self._trust = client_context(self.access.tls, presented)
            self._certificate = presented.certificate
        return self._session


def _encoded(body: Json) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        raise Invalid("the object cannot be written as JSON") from error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE) if text.isascii() and text.isdigit() else None


def _pause_after(error: KubeError, method: str, pause: float) -> float | None:
    """Return how long to wait before trying again, None when it must not be tried.

    A server that names a time has not acted; one that is gone or overloaded may have, so only reading is repeated.
    """
    if error.status in _TRANSIENT and error.retry_after is not None:
        return min(error.retry_after, _LONGEST_PAUSE)
    is_reading = method == "GET"
    is_lost = isinstance(error, Unreachable) and is_reading and pause <= 0.5
    if is_lost or (is_reading and error.status in _SAFE_TO_REPEAT) or error.status == 429:
        return pause
    return None


def hang_up(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an answer that is not read to its end, without waiting for the server's farewell.

    A connection that still waits when its loop ends is never closed.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def use_up(response: aiohttp.ClientResponse) -> None:
    """Have the connection of an answer closed at its end, and not kept for others."""
    if response.connection is not None and response.connection.protocol is not None:
        response.connection.protocol.force_close()


def unreachable(server: str, error: BaseException) -> KubeError:
    """Translate what the HTTP library raised when there was no usable answer."""
    if isinstance(error, ValueError) and not isinstance(error, aiohttp.ClientError | OSError):
        return Invalid("the request cannot be put into a valid HTTP message")
    if isinstance(error, TimeoutError):
        return Unreachable(f"`{server}` did not answer in time")
    if isinstance(error, aiohttp.ClientConnectorCertificateError | ssl.SSLCertVerificationError):
        return Unreachable(
            f"the certificate of `{server}` is not trusted",
            help="check certificate-authority in the kubeconfig",
        )
    return Unreachable(
        f"`{server}` cannot be reached", help="check the address, and whether the server runs"
    )


# TLS contexts and bounded reading for the HTTP client.


async def read_at_most(content: aiohttp.StreamReader, limit: int) -> bytes:
    """Return a whole body; raise Invalid as soon as it is longer than `limit` (0: no bound)."""
    parts: list[bytes] = []
    size = 0
    async for part in content.iter_any():
        size += len(part)
        if limit and size > limit:
            raise Invalid(f"the answer is longer than the {limit} bytes allowed")
        parts.append(part)
    return b"".join(parts)


def limits_of(size: int) -> Limits:
    """Return the bounds of a JSON answer of at most `size` bytes (0: no bound on the size)."""
    return Limits(size=size or 1 << 62, depth=LIMITS.depth)


def client_context(trust: Tls, presented: Presented) -> ssl.SSLContext:
    """Return the TLS context of a client; raises AccessError for certificates that cannot be used.

    Not `create_default_context`: from Python 3.13 on that one refuses the authorities of many clusters for missing
    extensions that Kubernetes does not ask for.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if not trust.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif trust.authorities:
            context.load_verify_locations(cadata=trust.authorities.decode("ascii"))
        else:
            context.load_default_certs()
        if presented.certificate:
            _load_pair(context, presented)
    except (ssl.SSLError, ValueError) as error:
        raise AccessError("a certificate or key of the kubeconfig cannot be used") from error
    return context


def _load_pair(context: ssl.SSLContext, presented: Presented) -> None:
    """Load certificate and key, which the standard library takes from a file only; ours is unreadable to others."""
    handle, path = tempfile.mkstemp(prefix="kpolicy-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(presented.certificate + b"\n" + presented.key)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)  # noqa: PTH108 - a descriptor and a name, not a path that somebody gave
