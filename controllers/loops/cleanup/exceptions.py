"""Deletes exceptions that are over (design 8.2). That they cover nothing any more is decided elsewhere, at each decision.

One whose expiry cannot be read covers nothing either, but is left for people to look at.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controllers.kube.kinds import POLICY_EXCEPTIONS
from controllers.kube.workqueue import WorkQueue
from controllers.loops.counting import counted
from controllers.store.events import about_exception
from controllers.store.exceptions import exception_key
from engine.errors import EngineError
from engine.exceptions.cover import NEVER_VALID

from .deleting import LONGEST_SLEEP, delete

if TYPE_CHECKING:
    from controllers.loops.surroundings import Surroundings
    from controllers.runtime.world import Change
    from engine.exceptions import CompiledException

_log = logging.getLogger(__name__)


class ExceptionSweep:
    """Deletes exceptions at their end. `run` it as a task on the leader."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self.queue: WorkQueue[str] = WorkQueue(clock=surroundings.clock, least=1.0, most=600.0)

    async def run(self) -> None:
        """Work until cancelled."""
        listeners = self._surroundings.world.on_change
        listeners.append(self._changed)
        for one in self._surroundings.snapshot.exceptions:
            self.queue.add(one.key)
        work = counted(self._surroundings.metrics, "exceptions", self.queue, self._look)
        try:
            await self.queue.run(work, on_error=_failed)
        finally:
            listeners.remove(self._changed)

    def _changed(self, change: Change) -> None:
        if change.kind == POLICY_EXCEPTIONS:
            self.queue.add(exception_key(change.object))

    def _find(self, key: str) -> CompiledException | None:
        return next((one for one in self._surroundings.snapshot.exceptions if one.key == key), None)

    async def _look(self, key: str) -> None:
        """Delete an exception that is over, else come again when it is; raises KubeError, then it is tried again."""
        found = self._find(key)
        if found is None or found.expires_at in (None, NEVER_VALID):
            return
        now = self._surroundings.clock.now()
        if found.expires_at is not None and not found.is_expired(now):
            left = (found.expires_at - now).total_seconds()
            self.queue.add_after(key, min(left, LONGEST_SLEEP))
            return
        exception = found.exception
        if (exception.raw.get("metadata") or {}).get("uid"):
            await delete(
                self._surroundings,
                POLICY_EXCEPTIONS,
                exception.raw,
                about_exception(exception),
                says_failure=not self.queue.failures(key),
            )


def _failed(key: str, error: Exception) -> None:
    if isinstance(error, EngineError):
        _log.warning("exception %s is over but still there: %s", key, error.message)
    else:
        _log.error("exception %s", key, exc_info=error)
