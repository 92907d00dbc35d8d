"""The loop that carries out UpdateRequests, one after the other for each, and deletes what is done (row U-01).

A request stays in the cluster until its work is done: what fails says so in its status and is tried again with growing pauses;
nothing is dropped for numbers. What fails for its own reasons is given up after many attempts and kept for people to look at,
who may set its state back to Pending; what fails because somebody does not answer is tried for as long as that lasts.
A request whose trigger never came to be was refused after all, and causes nothing.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from controllers import kube
from controllers.kube.kinds import UPDATE_REQUESTS
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce
from controllers.loops.following import Following, counted
from controllers.loops.rules import find_rule
from controllers.store import update_requests
from controllers.store.events import GENERATE as GENERATE_SOURCE
from controllers.store.events import MUTATE as MUTATE_SOURCE
from controllers.store.events import about_policy, failed
from engine.errors import EngineError
from engine.model.kinds import named

from .work import NeedsProof, NotYet, Worker

if TYPE_CHECKING:
    from controllers.kube.store import Change
    from controllers.loops.context import LoopContext
    from engine.model import Object

_PATIENCE = 60.0
"""Seconds that an object may take from our answer until it is stored; other webhooks are asked in between."""

_DOUBTFUL = 5.0
"""Seconds after which a request says that what it waits for was probably refused."""

MOST_ATTEMPTS = 15
"""Attempts at work that fails for its own reasons; with their pauses about three quarters of an hour."""

KEPT = 3 * 24 * 3600.0
"""Seconds from its creation that a request stays whose work was given up."""

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 2.0
_LONGEST_REASON = 700
_ADVICE = "set status.state to Pending to have it tried again"
_log = logging.getLogger(__name__)


class Consumer:
    """Carries out UpdateRequests. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, worker: Worker) -> None:
        self._context = context
        self._worker = worker
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=0.2, most=900.0)
        self._waiting_since: dict[str, tuple[float, int]] = {}
        self._attempts: dict[str, int] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        context = self._context
        selection = Selection(namespace=context.namespace)
        workers = context.options.request_workers
        work = counted(context.metrics, "update-request", self.queue, self._work)
        async with Following(context.informers) as following:
            self._store = following.kind(UPDATE_REQUESTS, self._changed, selection)
            await self.queue.run(work, workers=workers, on_error=_unforeseen)

    def _changed(self, change: Change) -> None:
        """Take new requests, and those that somebody set back to Pending."""
        name = change.key[1]
        if change.new is None:
            self._forget(name)
        elif change.old is None:
            self.queue.add(name)
        elif _state(change.new) == update_requests.PENDING != _state(change.old):
            self._attempts.pop(name, None)
            self.queue.forget(name)
            self.queue.add(name)

    def _forget(self, name: str) -> None:
        self._waiting_since.pop(name, None)
        self._attempts.pop(name, None)
        self._worker.forget(name)

    async def _work(self, name: str) -> None:
        obj = self._store.get(name, self._context.namespace)
        if obj is None:
            return
        update = update_requests.read_update_request(obj)
        if update.state == update_requests.FAILED and update.retries >= MOST_ATTEMPTS:
            await self._keep_for_people(obj, update)
            return
        try:
            await self._all(update)
        except NotYet as error:
            if await self._looks_again(obj, update, error):
                return
        except EngineError as error:
            if await self._failed(obj, update, error):
                return
            raise
        await self._finish(obj, update)

    async def _all(self, update: update_requests.UpdateRequest) -> None:
        """Carry out every rule of a request; the first error is raised when all were tried."""
        first: EngineError | None = None
        for work in update.work:
            try:
                rule = find_rule(self._context.snapshot, update.policy, work.rule)
                if rule is None:
                    await self._wait_for_unseen(update.policy)
                    continue
                await self._worker.carry_out(rule, update, work)
            except NeedsProof as error:
                self._announce(update, work, error.message)
            except EngineError as error:
                is_first = (
                    update.state != update_requests.FAILED and update.name not in self._attempts
                )
                if is_first and not isinstance(error, NotYet):
                    self._announce(update, work, error.message)
                first = first or error
        if first is not None:
            raise first

    async def _wait_for_unseen(self, policy: str) -> None:
        """Raise NotYet for a policy that the cluster has and we have not seen; raises KubeError.

        Another replica may have answered by it already: each has watches of its own.
        """
        if policy in self._context.snapshot.compiled:
            return
        known, key = named(policy)
        namespace, _, name = key.rpartition("/")
        kind = self._context.cache.discovery.of_resource(known.group, known.plural)
        if kind is None:
            return
        with suppress(kube.NotFound):
            await self._context.client.get(kind, name, namespace)
            raise NotYet("the policy is not known yet")

    async def _looks_again(
        self, obj: Object, update: update_requests.UpdateRequest, error: NotYet
    ) -> bool:
        """Look for the trigger again a little later; False when it took so long that it will not come."""
        now = self._context.clock.monotonic()
        since, looks = self._waiting_since.get(update.name, (now, 0))
        if now - since >= _PATIENCE:
            return False
        if now - since >= _DOUBTFUL and update.state != update_requests.FAILED:
            await self._write(obj, update, update_requests.FAILED, error.message, update.retries)
        self._waiting_since[update.name] = (since, looks + 1)
        self.queue.add_after(update.name, min(_FIRST_LOOK * 2.0**looks, _LONGEST_LOOK))
        return True

    async def _failed(
        self, obj: Object, update: update_requests.UpdateRequest, error: EngineError
    ) -> bool:
        """Write down that an attempt failed; True when it was the last."""
        known = update.retries if update.state == update_requests.FAILED else 0
        attempts = max(known, self._attempts.get(update.name, 0))
        if not _may_pass(error):
            attempts += 1
        self._attempts[update.name] = attempts
        self._context.metrics.count("kyverno_updaterequest", (update.type, "failed"))
        is_last = attempts >= MOST_ATTEMPTS
        message = error.message
        if is_last:
            message = f"given up after {attempts} attempts: {message[:_LONGEST_REASON]}; {_ADVICE}"
            for work in update.work:
                self._announce(update, work, message)
        await self._write(obj, update, update_requests.FAILED, message, attempts)
        if is_last:
            await self._keep_for_people(obj, update)
        return is_last

    async def _write(
        self,
        obj: Object,
        update: update_requests.UpdateRequest,
        state: str,
        message: str,
        attempts: int,
    ) -> None:
        """Write the status of a request; not being able to is no reason to do the work again."""
        body = {
            "status": update_requests.status(state, message, attempts, self._worker.changed(update))
        }
        try:
            await self._context.client.patch(
                UPDATE_REQUESTS, update.name, obj["metadata"]["namespace"], body, subresource="status"
            )  # fmt: skip
        except kube.KubeError as error:
            _log.warning("status of UpdateRequest %s: %s", update.name, error.message)

    async def _keep_for_people(self, obj: Object, update: update_requests.UpdateRequest) -> None:
        """Leave a request that was given up until it is old, then delete it."""
        now = self._context.clock.now()
        left = KEPT - (now - (update.created_at or now)).total_seconds()
        if left > 0:
            self.queue.add_after(update.name, left)
        else:
            await self._context.drop(UPDATE_REQUESTS, obj)

    async def _finish(self, obj: Object, update: update_requests.UpdateRequest) -> None:
        self._forget(update.name)
        if await self._context.drop(UPDATE_REQUESTS, obj):
            self._context.metrics.count("kyverno_updaterequest", (update.type, "completed"))

    def _announce(
        self, update: update_requests.UpdateRequest, work: update_requests.RuleWork, message: str
    ) -> None:
        policy = self._context.policies.get(update.policy)
        source = (
            MUTATE_SOURCE
            if update.type in (update_requests.CEL_MUTATE, update_requests.MUTATE)
            else GENERATE_SOURCE
        )
        about = [about_policy(policy)] if policy is not None else []
        if work.trigger.get("name"):
            about.append(dict(work.trigger))
        notes = [failed(one, update.key, work.rule, message, source) for one in about]
        announce(self._context, notes)


def _may_pass(error: EngineError) -> bool:
    """Tell whether work failed because of whom it needs, and not because of what it is."""
    if isinstance(error, kube.Unreachable | kube.TooManyRequests | kube.Unauthorized | kube.Gone):
        return True
    return isinstance(error, kube.KubeError) and error.status >= 500


def _state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state") or update_requests.PENDING)


def _unforeseen(name: str, error: Exception) -> None:
    if not isinstance(error, EngineError):
        _log.error("UpdateRequest %s", name, exc_info=error)
