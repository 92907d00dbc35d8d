"""Deletes exceptions that are over. That they cover nothing any more is decided elsewhere, at each decision.

One whose expiry cannot be read covers nothing either, but is left for people to look at.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controllers.kube.kinds import POLICY_EXCEPTIONS
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import delete
from controllers.loops.following import LONGEST_SLEEP, Following, counted, logged
from controllers.store.events import about_exception
from controllers.store.policies import exception_key, is_cel
from engine.exceptions import NEVER_VALID

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Kind
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change
    from engine.model import PolicyException
    from engine.model.policy import CelException

_log = logging.getLogger(__name__)


class ExceptionSweep:
    """Deletes exceptions at their end. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=1.0, most=600.0)

    async def run(self) -> None:
        """Work until cancelled."""
        work = counted(self._context.metrics, "exceptions", self.queue, self._look)
        failed = logged(_log, lambda key: f"exception {key} is over but still there")
        async with Following(self._context.informers) as following:
            following.listen(self._context.cache.on_change, self._changed)
            for key in self._context.snapshot.exceptions_by_key:
                self.queue.add(key)
            await self.queue.run(work, on_error=failed)

    def _changed(self, change: Change) -> None:
        if change.kind.plural == POLICY_EXCEPTIONS.plural:
            self.queue.add(exception_key(change.object))

    def _find(self, key: str) -> tuple[PolicyException | CelException, datetime | None] | None:
        """Return an exception that counts, and its end."""
        snapshot = self._context.snapshot
        ends: list[tuple[PolicyException | CelException, datetime | None]] = [
            *((one.exception, one.expires_at) for one in snapshot.exceptions),
            *((one.exception, one.ends) for one in snapshot.cel_exceptions),
        ]
        return next((found for found in ends if found[0].identity == key), None)

    async def _look(self, key: str) -> None:
        """Delete an exception that is over, else come again when it is; raises KubeError, then it is tried again."""
        found = self._find(key)
        if found is None or found[1] in (None, NEVER_VALID):
            return
        now = self._context.clock.now()
        exception, end = found
        if end is not None and now < end:
            self.queue.add_after(key, min((end - now).total_seconds(), LONGEST_SLEEP))
            return
        if (exception.raw.get("metadata") or {}).get("uid"):
            await delete(
                self._context,
                await self._kind(exception),
                exception.raw,
                about_exception(exception),
                says_failure=not self.queue.failures(key),
            )

    async def _kind(self, exception: PolicyException | CelException) -> Kind:
        if not is_cel(exception.raw):
            return POLICY_EXCEPTIONS
        return await self._context.kind_of_object(exception.raw)
