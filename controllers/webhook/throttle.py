"""Limits of codes per user: wrong ones in a minute and in thirty days, new ones in a minute; what a guesser or a loop is slowed by.

Counted here at once and shared with the other replicas within ten seconds (`controllers.store.throttles`); the length of a code
is what guessing fails at. Codes handed out are only shared once they are many, so that an ordinary denial writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from controllers.store import throttles
from engine.errors import EngineError

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client, Clock

    from .code_bindings import CodeBinding

SHARED_FROM: Final = 10
"""New codes in a minute from which other replicas hear of them."""
_MOST_USERS: Final = 4096
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of a user: counts of all replicas as last read, our own that are not written yet, and those on their way."""

    shared: throttles.Counts = field(default_factory=throttles.Counts)
    own: throttles.Counts = field(default_factory=throttles.Counts)
    sent: throttles.Counts = field(default_factory=throttles.Counts)
    read_at: datetime | None = None
    written_at: datetime | None = None

    def within_minute(self, what: str, now: datetime) -> int:
        """Return how often it happened in the last minute."""
        return sum(one.within_minute(what, now) for one in (self.shared, self.own, self.sent))

    def within_month(self, what: str, now: datetime) -> int:
        """Return how often it happened in the last thirty days."""
        return sum(one.within_month(what, now) for one in (self.shared, self.own, self.sent))


class Throttle:
    """Tells whether a user has had too much, and counts."""

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._shared, self._clock = throttles.SharedCounts(client, namespace), clock
        self._users: OrderedDict[str, _Known] = OrderedDict()
        self._writing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        return f"<Throttle of {len(self._users)} users>"

    async def is_locked(self, user: str) -> bool:
        """Tell whether somebody brought too many wrong codes; raises KubeError where that is not known."""
        now = self._clock.now()
        known = await self._known(user, now)
        return (
            known.within_minute(throttles.WRONG, now) >= throttles.MOST_WRONG
            or known.within_month(throttles.WRONG, now) >= throttles.MOST_WRONG_MONTHLY
        )

    async def may_mint(self, user: str) -> bool:
        """Tell whether somebody may be offered another code; raises KubeError where that is not known."""
        now = self._clock.now()
        known = await self._known(user, now)
        return known.within_minute(throttles.MINTED, now) < throttles.MOST_MINTED

    def count(self, what: str, user: str, *, writes: bool = True) -> None:
        """Note that something happened; the other replicas hear of it beside the answer, unless nothing may be written."""
        now = self._clock.now()
        known = self._users.setdefault(user, _Known())
        known.own.add(what, now)
        is_many = known.within_minute(what, now) >= SHARED_FROM
        if writes and (what == throttles.WRONG or is_many):
            self._share(user)

    async def settled(self) -> None:
        """Return when what was counted is written, or could not be."""
        await asyncio.gather(*self._writing.values(), return_exceptions=True)

    async def _known(self, user: str, now: datetime) -> _Known:
        known = self._users.setdefault(user, _Known())
        self._users.move_to_end(user)
        if len(self._users) > _MOST_USERS:
            self._users.popitem(last=False)
        if (
            known.read_at is None
            or not 0 <= (now - known.read_at).total_seconds() < throttles.EVERY
        ):
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
            await self._clock.sleep(max(throttles.EVERY - since, 0.0))
        now = self._clock.now()
        known.sent, known.own = known.own, throttles.Counts()
        known.written_at = known.read_at = now
        try:
            known.shared = await self._shared.add(user, known.sent, now)
        except EngineError as error:
            known.own.merge(known.sent)
            _log.warning("wrong codes could not be counted: %s", error.message)
        finally:
            known.sent = throttles.Counts()


# How many usable codes there are: per user and policy, and per namespace. A sixth is not made until one is used or over.
#
# Minted codes are stored nowhere, so each replica remembers those that it handed out, and counts with them the uses on record
# that are not older than a code may become. It forgets with the codes' end, and more than it can remember counts as too many.

MOST_PER_POLICY: Final = 5
MOST_PER_NAMESPACE: Final = 100
_MOST_CODES: Final = 20_000
_Owner = tuple[str, str]
"""A user and a policy (by key)."""


class Outstanding:
    """Codes that were handed out here and can still be used, by the name of their use."""

    def __init__(self) -> None:
        self._codes: dict[str, tuple[_Owner, str, datetime]] = {}
        self._by_owner: Counter[_Owner] = Counter()
        self._by_namespace: Counter[str] = Counter()
        self._next_end: datetime | None = None

    def __repr__(self) -> str:
        return f"<Outstanding {len(self._codes)}>"

    def may_add(self, use: str, claim: CodeBinding, now: datetime, used: int = 0) -> bool:
        """Tell whether a code may be handed out; one that was already may be again. `used` are uses on record beside."""
        self._forget(now)
        if use in self._codes:
            return True
        owner, namespace = (claim.binding.username, claim.policy), claim.binding.namespace
        return (
            self._by_owner[owner] + used < MOST_PER_POLICY
            and (not namespace or self._by_namespace[namespace] < MOST_PER_NAMESPACE)
            and len(self._codes) < _MOST_CODES
        )

    def add(self, use: str, claim: CodeBinding, ends: datetime) -> None:
        """Remember a code that was handed out."""
        if use in self._codes:
            return
        owner, namespace = (claim.binding.username, claim.policy), claim.binding.namespace
        self._codes[use] = (owner, namespace, ends)
        self._by_owner[owner] += 1
        self._by_namespace[namespace] += 1
        self._next_end = min(self._next_end or ends, ends)

    def take(self, use: str) -> None:
        """Forget a code that was used or is over."""
        known = self._codes.pop(use, None)
        if known is not None:
            _less(self._by_owner, known[0])
            _less(self._by_namespace, known[1])

    def _forget(self, now: datetime) -> None:
        if self._next_end is None or now < self._next_end:
            return
        for use in [use for use, one in self._codes.items() if one[2] <= now]:
            self.take(use)
        self._next_end = min((one[2] for one in self._codes.values()), default=None)


def _less(counts: Counter[Any], key: Any) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
