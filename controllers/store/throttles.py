"""How often users brought wrong codes, shared by all replicas: one Lease per user, written at most every ten seconds.

Each replica counts for itself at once and adds what it counted to the Lease by optimistic updates, so that counts of replicas add
up and a flood costs one write in ten seconds. Until then a replica knows its own counts and what was last read.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.kube import AlreadyExists, Client, Conflict, find, retried
from controllers.kube.kinds import LEASES
from engine import vocabulary
from engine.digest import word_of

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

WRONG, MINTED = "wrong", "minted"
MOST_WRONG: Final = 10
"""Wrong codes in a minute from which nobody's code is looked at."""
MOST_WRONG_MONTHLY: Final = 100
"""Wrong codes in thirty days from which no code of that person is."""
MOST_MINTED: Final = 30
"""Codes that somebody is offered in a minute."""
COUNTS: Final = "kpolicy.io/codes"
"""Annotation with the counts: by what happened and by ten seconds and day, numbered from 1970."""
LABELS: Final = {**vocabulary.BY_KPOLICY, vocabulary.KIND: "codes"}
TICK, DAY = 10, 86_400
TICKS: Final = 6
"""Ticks of ten seconds that make a minute."""
DAYS: Final = 30
EVERY: Final = 10.0
"""Seconds between two writes about one user."""
_DIGITS: Final = 26
_TRIES: Final = 5
_LONGEST_USER: Final = 512


def lease_name(user: str) -> str:
    """Return the name of a user's Lease; names of users are no names of objects."""
    return "kpolicy-codes-" + word_of(f"kpolicy codes of\0{user}")


@dataclass(slots=True)
class Counts:
    """How often something happened to a user: `ticks` of the last minute, `days` of the last thirty days."""

    ticks: Counter[str] = field(default_factory=Counter)
    days: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, now: datetime) -> None:
        """Count one; ticks that count no more are forgotten with the first of a new one."""
        at = int(now.timestamp())
        tick = f"{what}/{at // TICK}"
        if tick not in self.ticks:
            self.ticks = self.recent(now).ticks
        self.ticks[tick] += 1
        if what == WRONG:
            self.days[f"{what}/{at // DAY}"] += 1

    def merge(self, other: Counts) -> None:
        """Take in the counts of another."""
        self.ticks.update(other.ticks)
        self.days.update(other.days)

    def within_minute(self, what: str, now: datetime) -> int:
        """Return how often it happened in the last minute."""
        at = int(now.timestamp()) // TICK
        return sum(self.ticks[f"{what}/{at - ago}"] for ago in range(TICKS))

    def within_month(self, what: str, now: datetime) -> int:
        """Return how often it happened in the last thirty days."""
        at = int(now.timestamp()) // DAY
        return sum(self.days[f"{what}/{at - ago}"] for ago in range(DAYS))

    def recent(self, now: datetime) -> Counts:
        """Return what still counts."""
        at = int(now.timestamp())
        return Counts(
            Counter({key: n for key, n in self.ticks.items() if at // TICK - _number(key) < TICKS}),
            Counter({key: n for key, n in self.days.items() if at // DAY - _number(key) < DAYS}),
        )


class SharedCounts:
    """The Leases of users in a namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace

    async def read(self, user: str) -> Counts:
        """Return what all replicas have written; raises KubeError."""
        found = await find(self._client, LEASES, lease_name(user), self._namespace)
        return Counts() if found is None else counts_in(found)

    async def add(self, user: str, counts: Counts, now: datetime) -> Counts:
        """Add counts to a user's Lease and return all; raises KubeError, and then nothing was added."""
        add = partial(self._add, user, counts, now)
        return await retried(_TRIES, add, AlreadyExists, Conflict)

    async def _add(self, user: str, counts: Counts, now: datetime) -> Counts:
        found = await find(self._client, LEASES, lease_name(user), self._namespace)
        if found is None:
            await self._client.create(LEASES, _document(self._namespace, user, counts))
            return counts
        total = counts_in(found)
        total.merge(counts)
        total = total.recent(now)
        metadata = found["metadata"]
        annotations = {**(metadata.get("annotations") or {}), COUNTS: _text(total)}
        await self._client.update(LEASES, {**found, "metadata": {**metadata, "annotations": annotations}})  # fmt: skip
        return total


def counts_in(lease: Object) -> Counts:
    """Return the counts in a Lease; what cannot be read counts as nothing, for anybody who may edit it may delete it."""
    try:
        stored: Any = orjson.loads((lease["metadata"].get("annotations") or {})[COUNTS])
        return Counts(*(Counter({str(k): int(n) for k, n in stored[part].items() if _number(k) >= 0}) for part in ("ticks", "days")))  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        return Counts()


def _number(key: str) -> int:
    number = key.rpartition("/")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < _DIGITS else -1


def _text(counts: Counts) -> str:
    return orjson.dumps({"ticks": dict(counts.ticks), "days": dict(counts.days)}).decode()


def _document(namespace: str, user: str, counts: Counts) -> Object:
    return LEASES.document(
        lease_name(user),
        namespace,
        labels=LABELS,
        annotations={vocabulary.USER: user[:_LONGEST_USER], COUNTS: _text(counts)},
        spec={"holderIdentity": "kpolicy"},
    )
