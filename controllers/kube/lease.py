"""Leader election on a Lease: of several replicas one leads, and another takes over within seconds.

For the loops, which only one replica may run. Compatible on the wire with client-go's election. The time of a foreign
holder is measured on our own monotonic clock from when we saw its last renewal, so clocks of machines need not agree.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from .client import find
from .clock import Clock, SystemClock
from .clock import chance as by_chance
from .errors import KubeError
from .kinds import LEASES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from engine.model import Object

    from .client import Client

LEASE_SECONDS = 10
RENEW_SECONDS = 8.0
RETRY_SECONDS = 2.0


class LeadershipLost(KubeError):  # noqa: N818 - it names what happened, as its siblings do
    """The lease could not be renewed in time; somebody else may lead by now."""


class Election:
    """One candidate. `holder` is who leads as far as we know; `is_leading` whether that is us."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        clock: Clock | None = None,
        chance: Callable[[], float] = by_chance,
    ) -> None:
        self.identity = identity
        self.holder = ""
        self._client = client
        self._place = (namespace, name)
        self._clock: Clock = clock or SystemClock()
        self._chance = chance
        self._seen: Object | None = None
        self._seen_at = 0.0
        self._leads = False

    @property
    def is_leading(self) -> bool:
        """Tell whether we lead."""
        return self._leads

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait until we lead, then run `lead` for as long as we do.

        Returns when `lead` does; raises LeadershipLost when the lease is lost, with `lead` cancelled before. Whatever ends
        it, a lease that is still ours is given back, so that the next one need not wait.
        """
        while not await self._try():
            await self._clock.sleep(RETRY_SECONDS * (1.0 + 0.2 * self._chance()))
        self._leads = True
        work = asyncio.ensure_future(lead())
        renewing = asyncio.ensure_future(self._keep_renewing())
        try:
            await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._leads = False
            await _ended(work)
            await _ended(renewing)
            await self._within(RETRY_SECONDS, self._release)
        if work.cancelled() and not renewing.cancelled():
            raise LeadershipLost("the lease could not be renewed in time")
        await work

    async def _keep_renewing(self) -> None:
        """Return when the lease could not be renewed for too long."""
        renewed_at = self._clock.monotonic()
        while self._clock.monotonic() - renewed_at < RENEW_SECONDS:
            await self._clock.sleep(RETRY_SECONDS)
            left = RENEW_SECONDS - (self._clock.monotonic() - renewed_at)
            if await self._within(left, self._try):
                renewed_at = self._clock.monotonic()
            elif self.holder not in ("", self.identity):
                return

    async def _within(self, seconds: float, work: Callable[[], Awaitable[bool]]) -> bool:
        """Do something for at most so long by our clock; False when it took longer."""
        attempt = asyncio.ensure_future(work())
        limit = asyncio.ensure_future(self._clock.sleep(max(seconds, 0.0)))
        try:
            await asyncio.wait((attempt, limit), return_when=asyncio.FIRST_COMPLETED)
            return attempt.done() and attempt.result()
        finally:
            await _ended(attempt)
            await _ended(limit)

    async def _try(self) -> bool:
        """Take or renew the lease; False when another one holds it or the server could not be asked."""
        try:
            return await self._take()
        except KubeError:
            return False

    async def _take(self) -> bool:
        namespace, name = self._place
        lease = await find(self._client, LEASES, name, namespace)
        if lease is None:
            spec = self._spec({}, is_takeover=True)
            made = LEASES.document(name, namespace, spec=spec)
            self._observe(await self._client.create(LEASES, made))
            return True
        self._observe(lease)
        if self.holder not in ("", self.identity) and not self._has_expired(lease):
            return False
        self._observe(await self._client.update(LEASES, self._renewed(lease)))
        return True

    def _observe(self, lease: Object) -> None:
        spec = lease.get("spec") or {}
        self.holder = str(spec.get("holderIdentity") or "")
        if self._seen is None or self._seen != spec:
            self._seen, self._seen_at = spec, self._clock.monotonic()

    def _has_expired(self, lease: Object) -> bool:
        seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
        lasts = float(seconds) if isinstance(seconds, int) and seconds > 0 else float(LEASE_SECONDS)
        return self._clock.monotonic() - self._seen_at >= lasts

    def _renewed(self, lease: Object) -> Object:
        spec = lease.get("spec") or {}
        is_takeover = spec.get("holderIdentity") != self.identity
        return {**lease, "spec": {**spec, **self._spec(spec, is_takeover=is_takeover)}}

    def _spec(self, old: Object, *, is_takeover: bool) -> Object:
        now = micro_time(self._clock.now())
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "acquireTime": now if is_takeover else old.get("acquireTime") or now,
            "renewTime": now,
            "leaseTransitions": transitions + (1 if is_takeover and old else 0),
        }

    async def _release(self) -> bool:
        """Give the lease back if it is ours; a failure only means that the next one waits until it expires."""
        namespace, name = self._place
        with suppress(KubeError):
            lease = await self._client.get(LEASES, name, namespace)
            spec = lease.get("spec") or {}
            if spec.get("holderIdentity") == self.identity:
                given = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                await self._client.update(LEASES, {**lease, "spec": given})
                self.holder = ""
        return not self.holder


def micro_time(instant: datetime) -> str:
    """Return an instant as the API's MicroTime."""
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _ended(task: asyncio.Future[None] | asyncio.Future[bool]) -> None:
    """Cancel a task and wait until it has ended; what it raised is asked for elsewhere."""
    task.cancel()
    await asyncio.wait((task,))
