"""Bodies of requests: what is refused by its header, what is read, and how much memory all of them may take at once.

A few bytes of JSON become many bytes of objects (an empty list in a list is three bytes on the wire and sixty-five in memory),
so what counts is an estimate of the decoded size, made from the body by counting the bytes that open values. It is never much
below the truth. Small bodies, which nearly all reviews are, have room of their own that large ones cannot take. While there is
much of it they take what no body of their length can exceed, which needs no counting; as it gets scarce they give the rest back.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from controllers.runtime.memory import trim

if TYPE_CHECKING:
    from types import TracebackType

    from .requests import Request

LARGEST_BODY: Final = 16 * 1024 * 1024
"""Bytes of one body: twice what the API server makes of the largest change of the largest object that it stores."""
SMALL_BODY: Final = 64 * 1024
BODY_SECONDS: Final = 5.0
WAIT_SECONDS: Final = 1.0
"""How long a body may wait for room."""

_COSTS: Final = ((b"{", 110), (b"[", 72), (b":", 90), (b",", 32), (b'"', 24))
_TRIM_SECONDS: Final = 1.0
"""How long after a large body what it took goes back to the system."""
_WIDE: Final = 4
"""Bytes of a character in a text that holds one outside the basic plane."""

_MOST_PER_BYTE: Final = _WIDE + max(cost for _, cost in _COSTS)

_place: Final[ContextVar[Place | None]] = ContextVar("place", default=None)


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Bytes that may be held at once: for `small` bodies with what they are decoded to, for large ones as they are `read`, and for what these are `decoded` to.

    A single body that would need more than the room of its class is refused.
    """

    small: int = 16 * 1024 * 1024
    read: int = 24 * 1024 * 1024
    decoded: int = 48 * 1024 * 1024


class BodyRefused(Exception):  # noqa: N818 - it names the outcome
    """A body that is not read, or not decoded; `status` and `text` are the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Bodies:
    """The bodies of one server that are read or worked on."""

    def __init__(self, limits: BodyLimits) -> None:
        self._small = _Room(limits.small)
        self._read, self._decoded = _Room(limits.read), _Room(limits.decoded)
        self._trimming: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """Bytes that are taken now."""
        return self._small.taken + self._read.taken + self._decoded.taken

    def place(self, request: Request) -> Place:
        """Return the place of a request's body, to be entered, and free again at its end; raises BodyRefused by its header."""
        length = request.content_length
        if length is None or length > SMALL_BODY:
            if length is not None and length > LARGEST_BODY:
                raise too_large()
            return Place(self, length, self._read, self._decoded)
        return Place(self, length, self._small, self._small)

    def left(self, *, is_small: bool, error: BaseException | None) -> None:
        """Let what large bodies took, and small ones that came to no end, go back to the system soon."""
        if not is_small or isinstance(error, (BodyRefused, ConnectionError, TimeoutError)):
            self._trim_later()

    def _trim_later(self) -> None:
        if self._trimming is None:
            loop = asyncio.get_running_loop()
            self._trimming = loop.call_later(_TRIM_SECONDS, self._trim)

    def _trim(self) -> None:
        self._trimming = None
        # a body that never came to its end is held by its connection's own cycles
        gc.collect(1)
        trim()


class Place:
    """The room that one body has, from where it is entered to where it is left.

    INVARIANT: a body that was read waits only for others that are decoded, never for others that are still read.
    """

    __slots__ = ("_bodies", "_body", "_decoded", "_is_small", "_length", "_room", "_room_decoded", "_taken")  # fmt: skip

    def __init__(
        self, bodies: Bodies, length: int | None, room: _Room, room_decoded: _Room
    ) -> None:
        self._bodies, self._length, self._body = bodies, length, b""
        self._room, self._room_decoded = room, room_decoded
        self._is_small = room is room_decoded
        self._taken = self._decoded = 0

    def __enter__(self) -> Self:
        _place.set(self)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:  # fmt: skip
        self._room_decoded.loose.discard(self)
        self._room.free(self._taken)
        self._room_decoded.free(self._decoded)
        self._taken = self._decoded = 0
        self._body = b""
        if error is not None or not self._is_small:
            self._bodies.left(is_small=self._is_small, error=error)

    @property
    def decoded(self) -> int:
        """About how many bytes the body is decoded to."""
        return decoded_size(self._body)

    async def read(self, request: Request) -> bytes:
        """Return the body, with room for what it will be decoded to; raises BodyRefused and TimeoutError."""
        length = self._length
        if self._is_small and request.is_complete:
            body = request.take()
        else:
            if length is not None and not self._is_small:
                await self._take(length)
            async with asyncio.timeout(BODY_SECONDS):
                body = await self._collected(request)
        self._body, room = body, self._room_decoded
        most = len(body) * _MOST_PER_BYTE
        if self._is_small and room.try_take(most):
            self._decoded = most
            room.loose.add(self)
            return body
        for one in room.loose:
            one.tighten()
        room.loose.clear()
        size = self.decoded
        if not room.try_take(size):
            await room.take(size, 0)
        self._decoded = size
        return body

    def tighten(self) -> None:
        """Give back what was taken beyond what the body is decoded to."""
        size = self.decoded
        self._room_decoded.free(self._decoded - size)
        self._decoded = size

    async def _collected(self, request: Request) -> bytes:
        chunks, length = [], 0
        while chunk := await request.more():
            length += len(chunk)
            if length > LARGEST_BODY:
                raise too_large()
            if self._length is None:
                await self._take(len(chunk))
            chunks.append(chunk)
        return b"".join(chunks)

    async def _take(self, size: int) -> None:
        if not self._room.try_take(size):
            await self._room.take(size, self._taken)
        self._taken += size


class _Room:
    """A number of bytes; who finds too few left waits in turn, for a short time.

    `loose` are bodies that have taken the most they may need. INVARIANT: there are none where anybody waits.
    """

    def __init__(self, size: int) -> None:
        self.size, self.taken = size, 0
        self.loose: set[Place] = set()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def try_take(self, size: int) -> bool:
        """Take room if there is some and nobody waits for it."""
        if self._waiting or self.taken + size > self.size:
            return False
        self.taken += size
        return True

    async def take(self, size: int, has: int) -> None:
        """Take room when it is there; raises BodyRefused for what never fits beside what the body `has`, or not in time."""
        if size + has > self.size:
            raise BodyRefused(413, "the body would take too much memory")
        turn = asyncio.get_running_loop().create_future()
        waiting = (size, turn)
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await turn
        except BaseException as error:
            self._leave(waiting)
            if isinstance(error, TimeoutError):
                raise BodyRefused(503, "too many large bodies are being read") from None
            raise

    def free(self, size: int) -> None:
        """Give room back, to those first who wait longest."""
        self.taken -= size
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self.taken + self._waiting[0][0] <= self.size:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.taken += size
                turn.set_result(None)

    def _leave(self, waiting: tuple[int, asyncio.Future[None]]) -> None:
        size, turn = waiting
        if turn.done() and not turn.cancelled():
            self.free(size)
            return
        with suppress(ValueError):
            self._waiting.remove(waiting)
        self._serve()


def too_large() -> BodyRefused:
    """Return the refusal of a body that is too long."""
    return BodyRefused(413, "the body is too large")


def size_of_current() -> int:
    """Return about how many bytes the body of the request that is being answered is decoded to, 0 outside of one."""
    place = _place.get()
    return place.decoded if place is not None else 0


def decoded_size(body: bytes) -> int:
    """Return about how many bytes the values in a JSON body will take, which is more than they do.

    Bytes of texts count like the same bytes outside: a text full of braces is estimated too high, none too low.
    """
    size = len(body)
    if not body.isascii() or (b"\\" in body and b"\\u" in body):
        size *= _WIDE
    for sign, cost in _COSTS:
        size += body.count(sign) * cost
    return size
