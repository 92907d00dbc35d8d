"""Writes Events: short notes on objects that people see with `kubectl describe` and `kubectl events`.

As core `v1`, so that a policy rule on `v1/Event` sees `message`. Equal notes are counted on one Event instead of written
again, and under pressure notes are written slowly, then dropped and counted; but never those that a policy waits for.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.lang import rfc3339

from .clock import Backoff, Clock, SystemClock
from .errors import AlreadyExists, KubeError, NotFound, TooManyRequests, Unreachable
from .kinds import EVENTS
from .lease import micro_time
from .rush import Rush

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.model import Object

    from .client import Client

MOST_QUEUED = 1000
_LONGEST_MESSAGE = 1024
_LONGEST_NAME = 200
_LONGEST_INSTANCE = 128
_SAME_FOR = 600.0
_MOST_REMEMBERED = 4096
_PER_SECOND, _BURST = 50.0, 200.0
_RUSH_PER_SECOND, _RUSH_BURST = 5.0, 10.0
"""While more than `_PER_SECOND` requests a second are decided: an Event costs the server as much as a Pod that somebody waits for."""
_COUNTED_PER_SECOND, _COUNTED_BURST = 5.0, 50.0


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to say about an object (an object reference: apiVersion, kind, namespace, name, uid).

    `controller` is the reporting one (row E-01), `action` what was done (row E-02), `annotations` what our own tools read, and
    `latest` more of it that is told of the last of several notes that are counted together, and does not tell them apart.
    """

    about: tuple[str, str, str, str, str]
    reason: str
    message: str
    action: str = "None"
    type: str = "Warning"
    controller: str = "kyverno-admission"
    annotations: tuple[tuple[str, str], ...] = ()
    latest: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(slots=True)
class _Again:
    """A note that was written or waits to be, and how often it was taken since."""

    note: Note
    times: int = 1


class _Pace:
    """Lets notes through, so many each second and so many at once after a pause."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left, self._at = math.inf, clock.monotonic()

    async def turn(self, per_second: float, burst: float) -> None:
        """Return when the next one may go."""
        now = self._clock.monotonic()
        self._left = min(burst, self._left + (now - self._at) * per_second) - 1
        self._at = now
        if self._left < 0:
            await self._clock.sleep(-self._left / per_second)


def reference(about: Mapping[str, str]) -> tuple[str, str, str, str, str]:
    """Return what a Note is about, from the reference to an object (see `kinds.object_reference`)."""
    kind = about.get("apiVersion", ""), about.get("kind", "")
    return *kind, about.get("namespace", ""), about.get("name", ""), about.get("uid", "")


class Recorder:
    """Takes notes at once and writes them in the background; `run` it as a task.

    `must_keep` tells which Events a policy matches: those are neither counted together nor dropped, and written again
    while the server cannot be asked. Without `counts_equal` no notes are counted together. `dropped` counts what was lost
    for lack of room or because the server refused it; `on_drop` hears of each, with its reason. `rush` is told of every request
    that is decided, and others are written slowly while there are many.
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
        self.rush = Rush(self._clock)
        self._most = most_queued
        self._counts_equal = counts_equal
        self._backoff = Backoff()
        self._suffix = suffix
        self._on_drop = on_drop
        self._queue: deque[tuple[Note, Object, bool]] = deque()
        self._queued: set[Note] = set()
        self._again: dict[Note, _Again] = {}
        self._repeated = asyncio.Event()
        self._written: OrderedDict[Note, tuple[float, str, str, int]] = OrderedDict()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._count = 0
        self.dropped = 0

    def __repr__(self) -> str:
        return f"<Recorder {len(self._queue)} queued, {len(self._written)} remembered, {self.dropped} dropped>"

    @property
    def is_full(self) -> bool:
        """Tell whether a note is dropped unless a policy waits for it."""
        return len(self._queue) >= self._most

    def record(self, note: Note) -> None:
        """Queue a note; it is dropped when there is no room and no policy waits for it."""
        if not note.about[3]:
            return
        if (again := self._again.get(note)) is not None:
            again.note, again.times = note, again.times + 1
            return
        event = self._event(note)
        is_kept = self.must_keep(event)
        if self.is_full and not is_kept:
            self.drop(note.reason)
            return
        self._idle.clear()
        if not is_kept and self._counts_equal:
            if note in self._queued or self._known(note) is not None:
                self._again[note] = _Again(note)
                self._repeated.set()
                return
            self._queued.add(note)
        self._queue.append((note, event, is_kept))
        self._arrived.set()

    async def run(self) -> None:
        """Write notes until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write_new())
            group.create_task(self._write_counts())

    async def _write_new(self) -> None:
        pace = _Pace(self._clock)
        while True:
            await self._arrived.wait()
            while self._queue:
                is_slow = self.rush.rate >= _PER_SECOND and not self._queue[0][2]
                await pace.turn(
                    *(_RUSH_PER_SECOND, _RUSH_BURST) if is_slow else (_PER_SECOND, _BURST)
                )
                note, event, is_kept = self._queue.popleft()
                await self._write(note, event, is_kept)
                self._queued.discard(note)
            self._arrived.clear()
            self._repeated.set()
            self._rest()

    async def _write_counts(self) -> None:
        """Write how often notes were taken again; those that are taken meanwhile go along with it."""
        pace = _Pace(self._clock)
        while True:
            await self._repeated.wait()
            self._repeated.clear()
            for note in [one for one in self._again if one not in self._queued]:
                await pace.turn(_COUNTED_PER_SECOND, _COUNTED_BURST)
                again = self._again.pop(note)
                await self._write(again.note, self._event(again.note), False, again.times)
            self._rest()

    def _rest(self) -> None:
        if not (self._queue or self._again):
            self._idle.set()

    async def drained(self) -> None:
        """Return when everything that was recorded has been written or given up."""
        await self._idle.wait()

    async def _write(self, note: Note, event: Object, is_kept: bool, times: int = 1) -> None:
        try:
            if is_kept or not self._counts_equal or not await self._counted(note, times):
                made = await self._client.create(EVENTS, {**event, "count": times})
                self._remember(note, made, times)
            self._backoff.reset()
        except AlreadyExists:
            return
        except KubeError as error:
            if is_kept and _may_pass(error):
                self._queue.appendleft((note, event, is_kept))
                await self._clock.sleep(max(self._backoff.next(), error.retry_after or 0.0))
                return
            self.drop(note.reason)

    def drop(self, reason: str) -> None:
        """Count a note that is lost."""
        self.dropped += 1
        self._on_drop(reason)

    def _known(self, note: Note) -> tuple[float, str, str, int] | None:
        """Return where a note was written lately, and how often it was counted."""
        known = self._written.get(note)
        is_old = known is None or self._clock.monotonic() - known[0] >= _SAME_FOR
        return None if is_old else known

    async def _counted(self, note: Note, times: int) -> bool:
        """Count a note on the Event that says the same; False when there is none."""
        known = self._known(note)
        if known is None:
            return False
        first, namespace, name, count = known
        change: Object = {"count": count + times, "lastTimestamp": rfc3339.write(self._clock.now())}
        if note.latest:
            change["metadata"] = {"annotations": dict(note.latest)}
        try:
            await self._client.patch(EVENTS, name, namespace, change)
        except NotFound:
            return False
        self._written[note] = (first, namespace, name, count + times)
        return True

    def _remember(self, note: Note, made: Object, times: int) -> None:
        metadata: dict[str, Any] = made.get("metadata") or {}
        place = (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
        now = self._clock.monotonic()
        self._written[note] = (now, *place, times)
        self._written.move_to_end(note)
        while len(self._written) > _MOST_REMEMBERED or self._oldest() <= now - _SAME_FOR:
            self._written.popitem(last=False)

    def _oldest(self) -> float:
        return next(iter(self._written.values()))[0]

    def _event(self, note: Note) -> Object:
        api_version, kind, namespace, name, uid = note.about
        now = self._clock.now()
        stamp = rfc3339.write(now)
        involved = {"apiVersion": api_version, "kind": kind, "name": name}
        involved |= {key: text for key, text in (("namespace", namespace), ("uid", uid)) if text}
        metadata: Object = {"namespace": namespace or "default", "name": self._name(name)}
        if note.annotations or note.latest:
            metadata["annotations"] = dict((*note.annotations, *note.latest))
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
