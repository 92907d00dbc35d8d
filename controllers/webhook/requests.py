"""Requests of HTTP/1.1: head and body of one as they come in on its connection, and answers as bytes."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEADERS: Final = frozenset(
    {b"content-encoding", b"content-length", b"expect", b"traceparent", b"transfer-encoding"}
)
"""The fields of a head that anything is decided by; others are not kept."""

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_BODILESS: Final = b"HEAD"


class Request:
    """One request; `keep_alive` says whether its connection stays open after the answer, and may be taken back.

    `target` is path and query as they were sent. Bytes of the body wait here until they are taken; `on_taken` is given their number.
    """

    __slots__ = (
        "_chunks",
        "_error",
        "_is_invited",
        "_on_taken",
        "_waiter",
        "headers",
        "is_complete",
        "keep_alive",
        "method",
        "target",
        "transport",
        "version",
    )

    def __init__(
        self,
        method: bytes,
        target: bytes,
        version: str,
        headers: Mapping[bytes, bytes],
        transport: asyncio.Transport,
        on_taken: Callable[[int], None],
        *,
        keep_alive: bool,
    ) -> None:
        self.method, self.target, self.version, self.headers = method, target, version, headers
        self.transport, self.keep_alive = transport, keep_alive
        self.is_complete = self._is_invited = False
        self._chunks: deque[bytes] = deque()
        self._on_taken = on_taken
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None

    @property
    def content_length(self) -> int | None:
        """The length of the body, None where it comes in chunks."""
        if b"transfer-encoding" in self.headers:
            return None
        return int(self.headers.get(b"content-length", b"0"))

    @property
    def is_given_up(self) -> bool:
        """Whether whoever asks does not wait for the answer any more."""
        return self.transport.is_closing()

    def feed(self, data: bytes) -> None:
        """Add what has come of the body."""
        self._chunks.append(data)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Nothing of the body comes any more: it is complete, or there is an error that whoever reads it is given."""
        self.is_complete, self._error = error is None, error
        self._wake()

    def take(self) -> bytes:
        """Return what has come of the body and was not taken yet."""
        chunks = self._chunks
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        self._on_taken(len(data))
        return data

    def drop(self) -> None:
        """Forget what has come of the body and was not taken."""
        if self._chunks:
            self.take()

    async def drop_rest(self) -> None:
        """Read the body to its end and forget it; raises what ended it before."""
        self._is_invited = True
        while not self.is_complete:
            await self.more()

    async def more(self) -> bytes:
        """Return the next bytes of the body, nothing at its end; raises what ended it before."""
        if not self._chunks and not self.is_complete:
            self._invite()
            while not (self._chunks or self.is_complete):
                if self._error is not None:
                    raise self._error
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        return self.take()

    def encoded(self, status: int, body: bytes, kind: str) -> bytes:
        """Return an answer as bytes, its body of the media type `kind`."""
        told = b"" if self.method == _BODILESS else body
        if status == HTTPStatus.OK and self.keep_alive:
            return b"%b%d\r\n\r\n%b" % (_head(kind, int(time.time())), len(body), told)
        return encoded(
            status, body, kind, version=self.version, keep_alive=self.keep_alive, told=told
        )

    def _invite(self) -> None:
        """Have a caller that waits for leave to send its body send it."""
        if self._is_invited or self.headers.get(b"expect", b"").lower() != b"100-continue":
            return
        self._is_invited = True
        if self.version == "1.1":
            self.transport.write(_CONTINUE)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def encoded(
    status: int,
    body: bytes,
    kind: str,
    *,
    version: str = "1.1",
    keep_alive: bool = False,
    told: bytes | None = None,
) -> bytes:
    """Return an answer as bytes; `told` is what is sent of the body where that is not all."""
    head = [
        f"HTTP/{version} {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        f"Date: {formatdate(time.time(), usegmt=True)}",
        *([] if keep_alive else ["Connection: close"]),
        f"Content-Length: {len(body)}\r\n\r\n",
    ]
    return "\r\n".join(head).encode() + (body if told is None else told)


@lru_cache(maxsize=4)
def _head(kind: str, second: int) -> bytes:
    """Return what good answers within one second begin with, up to their length."""
    date = formatdate(second, usegmt=True)
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nDate: {date}\r\nContent-Length: ".encode()
