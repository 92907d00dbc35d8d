"""The grant policies in force, and the uses of limited grants, for whoever must know at the instant of a decision.

Policies are read when asked and remembered for seconds: requests that pass never ask for them, and what is remembered keeps a flood of
denied ones from the API server. Uses are read and written each time.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from controllers.kube import AlreadyExists, Client, Clock, NotFound
from controllers.kube.kinds import CODE_USES, GRANT_POLICIES
from engine.grants.circumstances import readable_policies

from .uses import CodeUseRecord, is_same, use_document

if TYPE_CHECKING:
    from datetime import datetime

    from engine.grants import GrantPolicy
    from engine.grants.cause import Granted
    from engine.model import Object


REMEMBERED: Final = 10.0
"""Seconds after which the API server is asked again."""
REMEMBERED_NONE: Final = 1.0
"""The same where there was none: who makes the first one tries next what it is for."""
_log = logging.getLogger(__name__)


class GrantPolicies:
    """Grant policies by name, at most some seconds old."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._read_at: datetime | None = None
        self._policies: tuple[GrantPolicy, ...] = ()
        self._reading = asyncio.Lock()

    @property
    def recent(self) -> tuple[GrantPolicy, ...] | None:
        """The grant policies as far as nobody has to be asked for them, else None."""
        longest = REMEMBERED if self._policies else REMEMBERED_NONE
        if self._read_at is None:
            return None
        age = (self._clock.now() - self._read_at).total_seconds()
        return self._policies if 0 <= age < longest else None

    async def current(self) -> tuple[GrantPolicy, ...]:
        """Return the grant policies, none where the server has no such kind; raises KubeError.

        Requests that come while somebody reads them take what is read then.
        """
        if (found := self.recent) is not None:
            return found
        async with self._reading:
            if (found := self.recent) is None:
                now = self._clock.now()
                found = self._policies = await self._read()
                self._read_at = now
        return found

    async def _read(self) -> tuple[GrantPolicy, ...]:
        try:
            page = await self._client.list_all(GRANT_POLICIES)
        except NotFound:
            return ()
        found, problems = readable_policies(page.items)
        for problem in problems:
            _log.warning("%s", problem)
        return tuple(sorted(found, key=lambda one: one.name))


# Uses of limited grants are objects that exist at most once each.
#
# INVARIANT: a limited grant lets no more requests through than it may, on however many replicas: each request creates the record
# of its own use before it passes, and the server creates none twice. A use is never taken back, but for a reservation of a
# caller who proved nothing, of which nothing was seen; the same request sent again finds its own.

GRANT_UID: Final = "kpolicy.io/grant-uid"
"""Label of the records of a grant's uses."""
SOURCE: Final = "grant"
_TRIES: Final = 8


class GrantUses:
    """The uses of limited grants; `key` signs each record."""

    def __init__(self, client: Client, namespace: str, key: bytes) -> None:
        self._client, self._namespace, self._key = client, namespace, key

    def __repr__(self) -> str:
        return f"<GrantUses in {self._namespace}>"

    async def could_take(self, granted: Granted, attempt: CodeUseRecord) -> bool:
        """Tell whether a use is left, or is this attempt's already, without writing anything; raises KubeError."""
        if granted.most < 0:
            return False
        found = await self._taken(granted)
        mine = any(is_same(attempt, one.get("spec") or {}) for one in found.values())
        return mine or _free(granted, found) is not None

    async def take(self, granted: Granted, attempt: CodeUseRecord) -> int:
        """Return the number of the use that this attempt has, now or already; 0 where none is left. Raises KubeError."""
        if granted.most < 0:
            return 0
        for _ in range(granted.most + _TRIES):
            found = await self._taken(granted)
            for name, one in found.items():
                if is_same(attempt, one.get("spec") or {}):
                    return _number(granted, name)
            free = _free(granted, found)
            if free is None:
                return 0
            try:
                await self._client.create(CODE_USES, self._document(granted, free, attempt))
            except AlreadyExists:
                continue
            return free
        return 0

    async def _taken(self, granted: Granted) -> dict[str, Object]:
        page = await self._client.list_all(
            CODE_USES, self._namespace, label_selector=f"{GRANT_UID}={granted.uid}"
        )
        return {str(one["metadata"]["name"]): one for one in page.items}

    def _document(self, granted: Granted, number: int, attempt: CodeUseRecord) -> Object:
        attempt = replace(attempt, name=granted.place(number), source=SOURCE)
        told = {"grant": granted.grant, "grantUid": granted.uid}
        made = use_document(attempt, self._namespace, self._key, told)
        metadata = made["metadata"]
        labels = {**metadata["labels"], GRANT_UID: granted.uid}
        return {**made, "metadata": {**metadata, "labels": labels}}


def _free(granted: Granted, taken: dict[str, Object]) -> int | None:
    """Return the lowest number that nobody took."""
    return next((n for n in range(1, granted.most + 1) if granted.place(n) not in taken), None)


def _number(granted: Granted, name: str) -> int:
    return next((n for n in range(1, granted.most + 1) if granted.place(n) == name), 0)
