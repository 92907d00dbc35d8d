"""Watch streams: one JSON document per line, arriving in pieces of any size, read the more at once the quicker they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from .errors import KubeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.model import Json

    from .clock import Clock

_LONGEST_LINE = 32 * 1024 * 1024
QUICK: Final = 0.01
"""Seconds within which a part comes after another one in a rush."""

REST: Final = 0.05
"""Seconds for which parts gather in a rush."""


async def unhurried(parts: AsyncIterator[bytes], clock: Clock) -> AsyncIterator[bytes]:
    """Yield parts; while they come in quick succession let some gather, because a process that is woken for each costs more."""
    asked_at = clock.monotonic()
    async for part in parts:
        waited = clock.monotonic() - asked_at
        yield part
        if waited < QUICK:
            await clock.sleep(REST)
        asked_at = clock.monotonic()


async def documents(parts: AsyncIterator[bytes]) -> AsyncIterator[Json]:
    """Yield the documents of a stream; raise KubeError for a line that is not JSON or endless."""
    pending: list[bytes] = []
    size = 0
    async for part in parts:
        *lines, rest = part.split(b"\n")
        for line in lines:
            pending.append(line)
            text = b"".join(pending)
            pending, size = [], 0
            if text.strip():
                yield _decoded(text)
        if rest:
            pending.append(rest)
            size += len(rest)
            if size > _LONGEST_LINE:
                raise KubeError("the server sent a watch event without an end")


def _decoded(text: bytes) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise KubeError("the server sent a watch event that is not JSON") from error
