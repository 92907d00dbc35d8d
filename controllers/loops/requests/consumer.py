"""The loop that carries out UpdateRequests, one after the other for each, and deletes what is done (row U-01).

A request stays in the cluster until its work is done: what fails says so in its status and is tried again with growing pauses;
nothing is dropped for numbers. A request whose trigger never came to be was refused after all, and causes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from controllers.kube import Conflict, KubeError, NotFound
from controllers.kube.kinds import UPDATE_REQUESTS
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce
from controllers.loops.counting import counted
from controllers.loops.rules import find_rule
from controllers.store.events import GENERATE as GENERATE_SOURCE
from controllers.store.events import MUTATE as MUTATE_SOURCE
from controllers.store.events import about_policy, failed
from controllers.store.update_requests import FAILED, GENERATE, PENDING, read_update_request, status
from engine.errors import EngineError

from .work import NotYet, Worker

if TYPE_CHECKING:
    from controllers.kube.store import Change
    from controllers.loops.surroundings import Surroundings
    from controllers.store.update_requests import RuleWork, UpdateRequest
    from engine.model import Object

_PATIENCE = 60.0
"""Seconds that an object may take from our answer until it is stored; other webhooks are asked in between."""

_DOUBTFUL = 5.0
"""Seconds after which a request says that what it waits for was probably refused."""

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0
_log = logging.getLogger(__name__)


class Consumer:
    """Carries out UpdateRequests. `run` it as a task on the leader."""

    def __init__(self, surroundings: Surroundings, worker: Worker) -> None:
        self._surroundings = surroundings
        self._worker = worker
        self.queue: WorkQueue[str] = WorkQueue(clock=surroundings.clock, least=0.2, most=900.0)
        self._waiting_since: dict[str, tuple[float, int]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        surroundings = self._surroundings
        selection = Selection(namespace=surroundings.namespace)
        self._store = surroundings.informers.acquire(UPDATE_REQUESTS, selection)
        stop = self._store.on_change(self._changed)
        work = counted(surroundings.metrics, "update-request", self.queue, self._work)
        try:
            await self.queue.run(
                work, workers=surroundings.options.request_workers, on_error=_unforeseen
            )
        finally:
            stop()
            await surroundings.informers.release(UPDATE_REQUESTS, selection)

    def _changed(self, change: Change) -> None:
        """Take new requests, and those that somebody set back to Pending."""
        if change.new is None:
            self._waiting_since.pop(change.key[1], None)
        elif change.old is None or (_state(change.new) == PENDING != _state(change.old)):
            self.queue.add(change.key[1])

    async def _work(self, name: str) -> None:
        obj = self._store.get(name, self._surroundings.namespace)
        if obj is None:
            return
        update = read_update_request(obj)
        try:
            await self._all(update)
        except NotYet as error:
            if await self._looks_again(obj, update, error):
                return
        except EngineError as error:
            await self._failed(obj, update, error)
            raise
        await self._finish(obj, update)

    async def _all(self, update: UpdateRequest) -> None:
        """Carry out every rule of a request; the first error is raised when all were tried."""
        first: EngineError | None = None
        for work in update.work:
            rule = find_rule(self._surroundings.snapshot, update.policy, work.rule)
            if rule is None:
                continue
            try:
                await self._worker.carry_out(rule, update, work)
            except EngineError as error:
                if update.retries == 0 and not isinstance(error, NotYet):
                    self._announce(update, work, error)
                first = first or error
        if first is not None:
            raise first

    async def _looks_again(self, obj: Object, update: UpdateRequest, error: NotYet) -> bool:
        """Look for the trigger again a little later; False when it took so long that it will not come."""
        now = self._surroundings.clock.monotonic()
        since, looks = self._waiting_since.get(update.name, (now, 0))
        if now - since >= _PATIENCE:
            return False
        if now - since >= _DOUBTFUL and update.state != FAILED:
            await self._write(obj, update, status(FAILED, error.message, update.retries))
        self._waiting_since[update.name] = (since, looks + 1)
        self.queue.add_after(update.name, min(_FIRST_LOOK * 2.0**looks, _LONGEST_LOOK))
        return True

    async def _failed(self, obj: Object, update: UpdateRequest, error: EngineError) -> None:
        retries = self.queue.failures(update.name) + 1
        self._surroundings.metrics.count("kyverno_updaterequest", (update.type, "failed"))
        await self._write(obj, update, status(FAILED, error.message, retries))

    async def _write(self, obj: Object, update: UpdateRequest, said: Object) -> None:
        """Write the status of a request; not being able to is no reason to do the work again."""
        body = {"status": said}
        try:
            await self._surroundings.client.patch(
                UPDATE_REQUESTS, update.name, obj["metadata"]["namespace"], body, subresource="status"
            )  # fmt: skip
        except KubeError as error:
            _log.warning("status of UpdateRequest %s: %s", update.name, error.message)

    async def _finish(self, obj: Object, update: UpdateRequest) -> None:
        metadata = obj["metadata"]
        self._waiting_since.pop(update.name, None)
        self._worker.forget(update)
        try:
            await self._surroundings.client.delete(
                UPDATE_REQUESTS, update.name, metadata["namespace"], uid=metadata["uid"]
            )
        except (NotFound, Conflict):
            return
        self._surroundings.metrics.count("kyverno_updaterequest", (update.type, "completed"))

    def _announce(self, update: UpdateRequest, work: RuleWork, error: EngineError) -> None:
        policy = self._surroundings.policies.get(update.policy)
        source = GENERATE_SOURCE if update.type == GENERATE else MUTATE_SOURCE
        about = [about_policy(policy)] if policy is not None else []
        if work.trigger.get("name"):
            about.append(dict(work.trigger))
        notes = [failed(one, update.policy, work.rule, error.message, source) for one in about]
        announce(self._surroundings, notes)


def _state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state") or PENDING)


def _unforeseen(name: str, error: Exception) -> None:
    if not isinstance(error, EngineError):
        _log.error("UpdateRequest %s", name, exc_info=error)
