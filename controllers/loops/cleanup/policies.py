"""Runs cleanup and deleting policies when they are due, and writes down that they ran (rows C-01, C-02, DP-01 to DP-07).

A policy that was due while nobody led runs once, late. The last run stands in the policy's status and is read from the server
right before the next, so that two runs are never the same one.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube import Conflict, Forbidden, Kind, NotFound, find
from controllers.kube.kinds import (
    CEL_EXCEPTIONS,
    CLEANUP_POLICIES,
    CLUSTER_CLEANUP_POLICIES,
    object_reference,
)
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce, delete
from controllers.loops.following import LONGEST_SLEEP, Following, counted, logged, queued
from controllers.loops.rules import candidates
from controllers.runtime.evaluating import PROCESS
from controllers.store.events import cleaned_up
from engine.cleanup.holds import HoldState, hold_on_run, takes_place
from engine.cleanup.plan import Cleanup, Plan, names_of, plan, run_of
from engine.cleanup.timed import is_deleting, read_timed
from engine.errors import EngineError
from engine.evaluate.asking import conclude_later
from engine.lang import rfc3339

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from datetime import datetime

    from controllers.kube.store import Store
    from controllers.loops.context import LoopContext
    from engine.model import CleanupPolicy, Object

CLASSIC = (CLEANUP_POLICIES, CLUSTER_CLEANUP_POLICIES)
_Place = tuple["Kind", str, str]
_CLEANUP: Final = {
    "deletedobjects": "kyverno_cleanup_controller_deletedobjects",
    "errors": "kyverno_cleanup_controller_errors",
}
_DELETING: Final = {
    "deletedobjects": "kyverno_deleting_controller_deletedobjects",
    "errors": "kyverno_deleting_controller_errors",
}
_AT_ONCE: Final = 50
"""Objects that are judged in one go."""
_log = logging.getLogger(__name__)


class CleanupLoop:
    """Runs cleanup policies, or deleting policies, which are of other `kinds`. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, kinds: tuple[Kind, ...] = CLASSIC) -> None:
        self._context = context
        self._kinds = kinds
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=1.0, most=300.0)

    async def run(self) -> None:
        """Work until cancelled."""
        failed = logged(_log, lambda place: f"cleanup policy {'/'.join(place[1:])}")
        async with Following(self._context.informers) as following:
            stores = {kind: following.kind(kind, queued(self.queue, kind)) for kind in self._kinds}
            look = partial(self._look, stores)
            work = counted(self._context.metrics, "cleanup", self.queue, look)
            await self.queue.run(work, on_error=failed)

    async def _look(self, stores: dict[Kind, Store], place: _Place) -> None:
        """Run a policy that is due, else come again when it is; raises EngineError, then it is tried again."""
        kind, namespace, name = place
        if stores[kind].get(name, namespace) is None:
            return
        found = await find(self._context.client, kind, name, namespace)
        if found is None:
            return
        obj = kind.typed(found)
        if obj["metadata"].get("deletionTimestamp"):
            return
        if is_deleting(obj) and not self._knows_exceptions():
            self.queue.add_after(place, LONGEST_SLEEP)
            return
        cleanup = read_timed(obj, self._context.snapshot.cel_exceptions)
        now = self._context.clock.now()
        run_at = run_of(cleanup, now).run_at
        hold = hold_on_run(obj, run_at, now)
        if run_at is None or (hold is not None and hold.until is None):
            return
        if (at := takes_place(obj, run_at)) > now:
            self.queue.add_after(place, min((at - now).total_seconds(), LONGEST_SLEEP))
            return
        if hold is None or hold.state is not HoldState.SKIPPED:
            await self._run(cleanup, obj, now)
        await self._ran(kind, obj, now)
        self.queue.add(place)

    def _knows_exceptions(self) -> bool:
        """Tell whether all exceptions of the group are known that may protect an object; nothing is deleted before."""
        cache = self._context.cache
        kind = cache.discovery.of_resource(CEL_EXCEPTIONS.group, CEL_EXCEPTIONS.plural)
        return kind is None or (kind in cache.watched and str(kind) not in cache.missing)

    async def _run(self, cleanup: Cleanup, obj: Object, now: datetime) -> None:
        """Delete what a policy means; raises the first error that is not one of rights, after trying everything."""
        first: EngineError | None = None
        for kind in candidates(self._context.cache.discovery, cleanup.policy):
            try:
                await self._run_kind(cleanup, obj, kind, now)
            except Forbidden as error:
                self._refused(cleanup.policy, obj, kind, error)
            except NotFound:
                continue
            except EngineError as error:
                first = first or error
        if first is not None:
            raise first

    async def _run_kind(self, cleanup: Cleanup, obj: Object, kind: Kind, now: datetime) -> None:
        """Delete what a policy means of one kind; raises the first error when all were tried."""
        first: EngineError | None = None
        async for found in self._plans(cleanup, kind, now):
            try:
                await self._delete_all(cleanup.policy, obj, kind, found)
            except EngineError as error:
                first = first or error
        if first is not None:
            raise first

    async def _plans(self, cleanup: Cleanup, kind: Kind, now: datetime) -> AsyncIterator[Plan]:
        """Yield what a policy means to delete of one kind, for some objects after the other."""
        context = self._context
        objects = [
            kind.typed(item)
            for chosen in [f"metadata.name={name}" for name in names_of(cleanup.policy)] or [""]
            for item in (
                await context.client.list_all(kind, cleanup.policy.namespace, field_selector=chosen)
            ).items
        ]
        labels = {
            namespace: await context.namespace_labels(namespace)
            for namespace in {str(one["metadata"].get("namespace") or "") for one in objects}
        }
        # on whose account a policy is judged: its namespace's, or its own
        tenant = cleanup.policy.namespace or f"policy {cleanup.policy.name}"
        # whoever else works in this process waits for some objects, never for all
        for number in range(0, len(objects), _AT_ONCE):
            asking = plan(
                cleanup,
                objects[number : number + _AT_ONCE],
                context.inputs("cleanup", now),
                resource=kind.plural,
                namespace_labels=labels,
                is_filtered=context.cache.configuration.leaves_out,
                bounded=partial(PROCESS.judge, tenant),
            )
            yield await conclude_later(asking, partial(context.resolver.resolve, tenant=tenant))
            await asyncio.sleep(0)

    async def _delete_all(
        self, policy: CleanupPolicy, obj: Object, kind: Kind, found: Plan
    ) -> None:
        """Delete the objects of a plan; raises the first error when all were tried."""
        first: EngineError | None = None
        how = found.propagation
        for decision in found.decisions:
            target = decision.object
            try:
                if decision.error is not None:
                    raise decision.error
                if decision.goes and await delete(
                    self._context, kind, target, object_reference(obj), propagation=how
                ):
                    self._count("deletedobjects", policy, target)
            except EngineError as error:
                self._count("errors", policy, target)
                first = first or error
        if first is not None:
            raise first

    def _refused(self, policy: CleanupPolicy, obj: Object, kind: Kind, error: Forbidden) -> None:
        """Say that objects of a kind stay for lack of rights; the run counts all the same (rows C-02, DP-04)."""
        target = kind.typed({"metadata": {"name": str(kind)}})
        self._count("errors", policy, target)
        announce(self._context, [cleaned_up(object_reference(obj), target, error.message)])

    def _count(self, what: str, policy: CleanupPolicy, target: Object) -> None:
        """Count what became of an object, by upstream's figures of the policy's language (row DP-07)."""
        kind, namespace = str(target.get("kind") or ""), target["metadata"].get("namespace")
        place = (policy.namespace or "-", kind, str(namespace or "-"))
        if is_deleting(policy.raw):
            labels: tuple[str, ...] = (policy.name, policy.kind, *place, policy.propagation or "-")
            self._context.metrics.count(_DELETING[what], labels)
            return
        scope = "namespaced" if policy.namespace else "cluster"
        labels = (policy.name, place[0], scope, *place[1:])
        self._context.metrics.count(_CLEANUP[what], labels)

    async def _ran(self, kind: Kind, obj: Object, now: datetime) -> None:
        """Write down that a policy ran; one that is gone or another by now needs nothing."""
        metadata = obj["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace") or ""
        ran = {"lastExecutionTime": rfc3339.write(now)}
        with suppress(Conflict):
            await self._context.write_status(kind, name, namespace, ran, uid=metadata["uid"])
