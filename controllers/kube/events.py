"""Writes Events: short notes on objects that people see with `kubectl describe` and `kubectl events`.

As core `v1`, so that a policy rule on `v1/Event` sees `message`. Equal notes are counted on one Event instead of written
again, and under pressure notes are dropped and counted; but never those that a policy waits for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.lang import rfc3339

from .clock import Backoff, SystemClock
from .errors import AlreadyExists, KubeError, NotFound, TooManyRequests, Unreachable
from .kinds import EVENTS
from .lease import micro_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Object

    from .client import Client
    from .clock import Clock

MOST_QUEUED = 1000
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 200
_LONGEST_INSTANCE = 128
_SAME_FOR = 600.0
_MOST_REMEMBERED = 4096
_PER_SECOND, _BURST = 50.0, 200.0


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to say about an object (an object reference: apiVersion, kind, namespace, name, uid).

    `controller` is the reporting one (row E-01), `action` what was done (row E-02), `annotations` what our own tools read.
    """

    about: tuple[str, str, str, str, str]
    reason: str
    message: str
    action: str = "None"
    type: str = "Warning"
    controller: str = "kyverno-admission"
    annotations: tuple[tuple[str, str], ...] = ()


def reference(obj: Object) -> tuple[str, str, str, str, str]:
    """Return what a Note is about: apiVersion, kind, namespace, name and uid of an object."""
    metadata = obj.get("metadata") or {}
    return (
        str(obj.get("apiVersion") or ""),
        str(obj.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
        str(metadata.get("uid") or ""),
    )


class Recorder:
    """Takes notes at once and writes them in the background; `run` it as a task.

    `must_keep` tells which Events a policy matches: those are neither counted together nor dropped, and written again
    while the server cannot be asked. Without `counts_equal` no notes are counted together. `dropped` counts what was lost
    for lack of room or because the server refused it; `on_drop` hears of each, with its reason.
    """

    def __init__(
        self,
        client: Client,
        instance: str,
        *,
        clock: Clock | None = None,
        must_keep: Callable[[Object], bool] = lambda _: False,
        most_queued: int = MOST_QUEUED,
        counts_equal: bool = True,
        suffix: Callable[[], str] | None = None,
        on_drop: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._client = client
        self._instance = instance[:_LONGEST_INSTANCE]
        self._clock: Clock = clock or SystemClock()
        self.must_keep = must_keep
        self._most = most_queued
        self._counts_equal = counts_equal
        self._backoff = Backoff()
        self._suffix = suffix
        self._on_drop = on_drop
        self._queue: deque[tuple[Note, Object, bool]] = deque()
        self._written: OrderedDict[Note, tuple[float, str, str, int]] = OrderedDict()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._count = 0
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<Recorder {len(self._queue)} queued, {self.dropped} dropped>"

    def record(self, note: Note) -> None:
        """Queue a note; it is dropped when there is no room and no policy waits for it."""
        if not note.about[3]:
            return
        event = self._event(note)
        is_kept = self.must_keep(event)
        if len(self._queue) >= self._most and not is_kept:
            self._drop(note)
            return
        self._queue.append((note, event, is_kept))
        self._idle.clear()
        self._arrived.set()

    async def run(self) -> None:
        """Write notes until cancelled."""
        tokens, filled_at = _BURST, self._clock.monotonic()
        while True:
            await self._arrived.wait()
            while self._queue:
                now = self._clock.monotonic()
                tokens = min(_BURST, tokens + (now - filled_at) * _PER_SECOND) - 1
                filled_at = now
                if tokens < 0:
                    await self._clock.sleep(-tokens / _PER_SECOND)
                await self._write(*self._queue.popleft())
            self._arrived.clear()
            self._idle.set()

    async def drained(self) -> None:
        """Return when everything that was recorded has been written or given up."""
        await self._idle.wait()

    async def _write(self, note: Note, event: Object, is_kept: bool) -> None:
        try:
            if is_kept or not self._counts_equal or not await self._counted(note):
                made = await self._client.create(EVENTS, event)
                self._remember(note, made)
            self._backoff.reset()
        except AlreadyExists:
            return
        except KubeError as error:
            if is_kept and _may_pass(error):
                self._queue.appendleft((note, event, is_kept))
                await self._clock.sleep(max(self._backoff.next(), error.retry_after or 0.0))
                return
            self._drop(note)

    def _drop(self, note: Note) -> None:
        self.dropped += 1
        self._on_drop(note.reason)

    async def _counted(self, note: Note) -> bool:
        """Count a note on the Event that says the same; False when there is none."""
        known = self._written.get(note)
        now = self._clock.monotonic()
        if known is None or now - known[0] >= _SAME_FOR:
            return False
        first, namespace, name, count = known
        stamp = rfc3339.write(self._clock.now())
        try:
            await self._client.patch(
                EVENTS, name, namespace, {"count": count + 1, "lastTimestamp": stamp}
            )
        except NotFound:
            return False
        self._written[note] = (first, namespace, name, count + 1)
        return True

    def _remember(self, note: Note, made: Object) -> None:
        metadata: dict[str, Any] = made.get("metadata") or {}
        place = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        self._written[note] = (self._clock.monotonic(), *place, 1)
        self._written.move_to_end(note)
        if len(self._written) > _MOST_REMEMBERED:
            self._written.popitem(last=False)

    def _event(self, note: Note) -> Object:
        api_version, kind, namespace, name, uid = note.about
        now = self._clock.now()
        stamp = rfc3339.write(now)
        involved = {"apiVersion": api_version, "kind": kind, "name": name}
        involved |= {key: text for key, text in (("namespace", namespace), ("uid", uid)) if text}
        metadata: Object = {"namespace": namespace or "default", "name": self._name(name)}
        if note.annotations:
            metadata["annotations"] = dict(note.annotations)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "involvedObject": involved,
            "reason": note.reason,
            "message": shortened(note.message),
            "type": note.type,
            "action": note.action,
            "reportingComponent": note.controller,
            "reportingInstance": self._instance,
            "source": {"component": note.controller},
            "eventTime": micro_time(now),
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }

    def _name(self, about: str) -> str:
        """Return a name as client-go makes it: of the object, the instant, and something that no other replica has."""
        self._count += 1
        suffix = self._suffix() if self._suffix else f"{_hash(self._instance)}{self._count:x}"
        nanoseconds = int(self._clock.now().timestamp() * 1_000_000) * 1000
        subject = about[:_LONGEST_NAME].rstrip("-.").replace(":", "-").lower()
        return f"{subject}.{nanoseconds:x}.{suffix}"


def shortened(message: str) -> str:
    """Return a message of at most 1024 bytes, which is what the API server takes."""
    data = message.encode()
    if len(data) <= _LONGEST_MESSAGE:
        return message
    return data[: _LONGEST_MESSAGE - 3].decode(errors="ignore") + "..."


def _may_pass(error: KubeError) -> bool:
    return isinstance(error, Unreachable | TooManyRequests) or error.status >= 500


def _hash(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:6]
