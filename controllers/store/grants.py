"""The grant policies in force, for whoever must know at the instant of a decision: read when asked, remembered for seconds.

Requests that pass never ask; those that are denied are few, and what is remembered keeps a flood of them from the API server.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from controllers.kube import NotFound
from controllers.kube.kinds import GRANT_POLICIES
from engine.grants.circumstances import readable_policies

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client, Clock
    from engine.grants import GrantPolicy

REMEMBERED: Final = 10.0
"""Seconds after which the API server is asked again."""
_log = logging.getLogger(__name__)


class GrantPolicies:
    """Grant policies by name, at most some seconds old."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._read_at: datetime | None = None
        self._policies: tuple[GrantPolicy, ...] = ()

    async def current(self) -> tuple[GrantPolicy, ...]:
        """Return the grant policies, none where the server has no such kind; raises KubeError."""
        now = self._clock.now()
        if self._read_at is None or not 0 <= (now - self._read_at).total_seconds() < REMEMBERED:
            self._policies = await self._read()
            self._read_at = now
        return self._policies

    async def _read(self) -> tuple[GrantPolicy, ...]:
        try:
            page = await self._client.list_all(GRANT_POLICIES)
        except NotFound:
            return ()
        found, problems = readable_policies(page.items)
        for problem in problems:
            _log.warning("%s", problem)
        return tuple(sorted(found, key=lambda one: one.name))
