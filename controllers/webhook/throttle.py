"""Limits of codes per user: wrong ones in a minute and in thirty days, new ones in a minute; what a guesser or a loop is slowed by.

Counted here at once and shared with the other replicas within ten seconds (`controllers.store.throttles`); the length of a code
is what guessing fails at. Codes handed out are only shared once they are many, so that an ordinary denial writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from controllers.store.throttles import (
    EVERY,
    MINTED,
    MOST_MINTED,
    MOST_WRONG,
    MOST_WRONG_MONTHLY,
    WRONG,
    Counts,
    SharedCounts,
)
from engine.errors import EngineError

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client, Clock

SHARED_FROM: Final = 10
"""New codes in a minute from which other replicas hear of them."""
_MOST_USERS: Final = 4096
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of a user: counts of all replicas as last read, and our own that are not written yet."""

    shared: Counts = field(default_factory=Counts)
    own: Counts = field(default_factory=Counts)
    read_at: datetime | None = None
    written_at: datetime | None = None


class Throttle:
    """Tells whether a user has had too much, and counts."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._shared, self._clock = SharedCounts(client, namespace), clock
        self._users: OrderedDict[str, _Known] = OrderedDict()
        self._writing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"<Throttle of {len(self._users)} users>"

    async def is_locked(self, user: str) -> bool:
        """Tell whether somebody brought too many wrong codes; raises KubeError where that is not known."""
        now = self._clock.now()
        known = await self._known(user, now)
        parts = (known.shared, known.own)
        lately = sum(one.within_minute(WRONG, now) for one in parts)
        in_all = sum(one.within_month(WRONG, now) for one in parts)
        return lately >= MOST_WRONG or in_all >= MOST_WRONG_MONTHLY

    async def may_mint(self, user: str) -> bool:
        """Tell whether somebody may be offered another code; raises KubeError where that is not known."""
        now = self._clock.now()
        known = await self._known(user, now)
        parts = (known.shared, known.own)
        return sum(one.within_minute(MINTED, now) for one in parts) < MOST_MINTED

    def count(self, what: str, user: str, *, writes: bool = True) -> None:
        """Note that something happened; the other replicas hear of it beside the answer, unless nothing may be written."""
        now = self._clock.now()
        known = self._users.setdefault(user, _Known())
        known.own.add(what, now)
        lately = sum(one.within_minute(what, now) for one in (known.shared, known.own))
        if writes and (what == WRONG or lately >= SHARED_FROM):
            self._share(user)

    async def settled(self) -> None:
        """Return when what was counted is written, or could not be."""
        await asyncio.gather(*self._writing.values(), return_exceptions=True)

    async def _known(self, user: str, now: datetime) -> _Known:
        known = self._users.setdefault(user, _Known())
        self._users.move_to_end(user)
        if len(self._users) > _MOST_USERS:
            self._users.popitem(last=False)
        if known.read_at is None or not 0 <= (now - known.read_at).total_seconds() < EVERY:
            known.shared = await self._shared.read(user)
            known.read_at = now
        return known

    def _share(self, user: str) -> None:
        """Write what was counted, at once or ten seconds after the last time."""
        if user not in self._writing:
            task = asyncio.ensure_future(self._write(user, self._users[user]))
            self._writing[user] = task
            task.add_done_callback(lambda _: self._writing.pop(user, None))

    async def _write(self, user: str, known: _Known) -> None:
        if known.written_at is not None:
            since = (self._clock.now() - known.written_at).total_seconds()
            await self._clock.sleep(max(EVERY - since, 0.0))
        now, counted = self._clock.now(), known.own
        known.own, known.written_at, known.read_at = Counts(), now, now
        try:
            known.shared = await self._shared.add(user, counted, now)
        except EngineError as error:
            known.own.merge(counted)
            _log.warning("wrong codes could not be counted: %s", error.message)
