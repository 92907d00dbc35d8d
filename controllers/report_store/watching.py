"""A watch: what is there, if asked for, then what changes, as the selector sees it, until its time is up."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from controllers.kube import Clock, KubeError

from .changing import invalid
from .forms import Rendering, status_of
from .queries import is_set, number
from .reading import Asked, expired

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from engine.model import Object

    from .batch import Change
    from .feed import Feed, Subscription
    from .selecting import Selector
    from .storage import Storage

CHECK_SECONDS: Final = 60.0
"""How often a watch says how far it is, and its right is asked for again."""

LONGEST_SECONDS: Final = 3600
_PAGE: Final = 500
_INITIAL_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a watch begins: after `version`, or with what is there, of which the end is marked where that was asked for."""

    version: int
    has_initial: bool
    marks_end: bool
    has_bookmarks: bool
    seconds: float


def watched_from(query: Mapping[str, str]) -> Beginning:
    """Return where a query begins to watch; raises Invalid."""
    version, seconds = number(query, "resourceVersion"), number(query, "timeoutSeconds")
    is_told = "sendInitialEvents" in query
    if is_told and query.get("resourceVersionMatch") != "NotOlderThan":
        raise invalid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    sends = is_set(query, "sendInitialEvents") if is_told else not version
    at_random = random.uniform(0.5, 1.0) * LONGEST_SECONDS  # noqa: S311 - spreads load
    return Beginning(
        version,
        has_initial=sends,
        marks_end=is_told and sends,
        has_bookmarks=is_set(query, "allowWatchBookmarks"),
        seconds=min(seconds or at_random, LONGEST_SECONDS),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched and how it is shown; `check` raises KubeError when it may not be watched any more."""

    selector: Selector
    space: str | None
    rendering: Rendering
    check: Callable[[], Awaitable[None]]


class Watch:
    """One watch on what the feed tells. `lines` are its answer."""

    def __init__(self, watched: Watched, begin: Beginning, storage: Storage, clock: Clock) -> None:
        self._watched, self._begin, self._storage, self._clock = watched, begin, storage, clock
        self._position = 0
        self._is_first = True

    async def lines(self, feed: Feed) -> AsyncGenerator[bytes]:
        """Yield the events, each on a line of its own, some together; whatever ends the watch before its time is the last of them."""
        subscription = feed.subscribe()
        try:
            async for line in self._history():
                yield line
            async for line in self._live(subscription):
                yield line
        except KubeError as error:
            yield b'{"type":"ERROR","object":%b}\n' % status_of(error)
        finally:
            feed.unsubscribe(subscription)

    async def _history(self) -> AsyncGenerator[bytes]:
        """Yield what is there, if that is asked for, and what was written before the subscription began to hear of it."""
        forgotten, newest = await self._storage.bounds()
        self._position = newest
        if self._begin.has_initial:
            async for line in self._initial(newest):
                yield line
            if self._begin.marks_end and self._begin.has_bookmarks:
                yield self._bookmark({_INITIAL_END: "true"})
        elif self._begin.version:
            self._position = self._begin.version
            if not forgotten <= self._position <= newest:
                raise expired(self._position, forgotten)
        while changes := await self._storage.changes(self._position, _PAGE):
            for change in changes:
                if (event := self._line(change)) is not None:
                    yield event

    async def _initial(self, version: int) -> AsyncGenerator[bytes]:
        watched, after = self._watched, None
        while True:
            asked = Asked(
                watched.space, watched.selector, version, self._begin.version, after, _PAGE
            )
            page = await self._storage.page(asked)
            for body in page.bodies:
                yield self._event(b"ADDED", body)
            after = page.last
            if after is None:
                return

    async def _live(self, subscription: Subscription) -> AsyncGenerator[bytes]:
        now = self._clock.monotonic()
        end, due = now + self._begin.seconds, now + CHECK_SECONDS
        while now < end:
            try:
                changes = await subscription.next(min(end, due) - now)
            except TimeoutError:
                pass
            else:
                # a rush of changes is told by as few writes as they came by
                new = [one for one in changes if one is not None and one.version > self._position]
                if lines := b"".join(filter(None, map(self._line, new))):
                    yield lines
                if None in changes:
                    return
            now = self._clock.monotonic()
            if now >= min(end, due):
                due = now + CHECK_SECONDS
                await self._watched.check()
                if self._begin.has_bookmarks:
                    yield self._bookmark()

    def _line(self, change: Change) -> bytes | None:
        """Return a change as the selector sees it: what comes into its sight is added, what leaves it is deleted."""
        self._position = change.version
        namespace, space = change.place[0], self._watched.space
        if namespace != space if space is not None else not namespace:
            return None
        was_seen = change.before is not None and self._fits(change.before)
        if change.body is not None and self._fits(change.body):
            return self._event(b"MODIFIED" if was_seen else b"ADDED", change.body)
        if was_seen:
            assert change.before is not None
            return self._event(b"DELETED", _ended(change.before, change.version))
        return None

    def _fits(self, body: bytes) -> bool:
        selector = self._watched.selector
        return selector.is_all or selector.fits(orjson.loads(body))

    def _event(self, name: bytes, body: bytes) -> bytes:
        made = self._watched.rendering.one(body, has_columns=self._is_first)
        self._is_first = False
        return b'{"type":"%b","object":%b}\n' % (name, made)

    def _bookmark(self, annotations: Mapping[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(self._position), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        made = self._watched.rendering.bookmark(metadata)
        return b'{"type":"BOOKMARK","object":%b}\n' % made


def _ended(body: bytes, version: int) -> bytes:
    """Return the last state of what is gone, with the version of its end."""
    report = orjson.loads(body)
    report["metadata"]["resourceVersion"] = str(version)
    return orjson.dumps(report)
