"""Runs cleanup policies when they are due, and writes down that they ran (rows C-01, C-02).

A policy that was due while nobody led runs once, late. The last run stands in the policy's status and is read from the server
right before the next, so that two runs are never the same one.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from controllers.kube import Conflict, Forbidden, NotFound
from controllers.kube.kinds import CLEANUP_POLICIES, CLUSTER_CLEANUP_POLICIES
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce
from controllers.loops.counting import counted
from controllers.loops.rules import kinds_in, served
from controllers.store.events import about_object, cleaned_up
from engine.cleanup import compile_cleanup, plan
from engine.errors import EngineError
from engine.model import review_of
from engine.parse import parse_cleanup_policy
from engine.reach import Effect, Target, out_of_reach

from .conditions import TargetConditions
from .deleting import LONGEST_SLEEP, delete
from .marks import is_held, is_paused, is_skipped, postponed

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from controllers.kube import Kind
    from controllers.kube.store import Change, Store
    from controllers.loops.surroundings import Surroundings
    from engine.cleanup import Cleanup, Plan
    from engine.model import CleanupPolicy, Object

KINDS = (CLEANUP_POLICIES, CLUSTER_CLEANUP_POLICIES)
_Place = tuple["Kind", str, str]
_log = logging.getLogger(__name__)


class CleanupLoop:
    """Runs cleanup policies. `run` it as a task on the leader."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self.queue: WorkQueue[_Place] = WorkQueue(clock=surroundings.clock, least=1.0, most=300.0)

    async def run(self) -> None:
        """Work until cancelled."""
        informers = self._surroundings.informers
        stores = {kind: informers.acquire(kind) for kind in KINDS}
        stops = [store.on_change(self._listener(kind)) for kind, store in stores.items()]
        work = counted(
            self._surroundings.metrics, "cleanup", self.queue, partial(self._look, stores)
        )
        try:
            await self.queue.run(work, on_error=_failed)
        finally:
            for stop in stops:
                stop()
            for kind in KINDS:
                await informers.release(kind)

    def _listener(self, kind: Kind) -> Callable[[Change], None]:
        def changed(change: Change) -> None:
            if change.new is not None:
                self.queue.add((kind, *change.key))

        return changed

    async def _look(self, stores: dict[Kind, Store], place: _Place) -> None:
        """Run a policy that is due, else come again when it is; raises EngineError, then it is tried again."""
        kind, namespace, name = place
        if stores[kind].get(name, namespace) is None:
            return
        try:
            obj = await self._surroundings.client.get(kind, name, namespace)
        except NotFound:
            return
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        if is_paused(obj) or obj["metadata"].get("deletionTimestamp"):
            return
        policy = parse_cleanup_policy(obj, strict=False)
        cleanup = compile_cleanup(policy)
        now = self._surroundings.clock.now()
        run_at = plan(cleanup, (), now, check_conditions=lambda _: True).run_at
        if run_at is None:
            return
        takes_place = postponed(obj, run_at)
        if takes_place > now:
            wait = min((takes_place - now).total_seconds(), LONGEST_SLEEP)
            self.queue.add_after(place, wait)
            return
        if not is_skipped(obj, run_at):
            await self._run(cleanup, obj, now)
        await self._ran(kind, obj, now)
        self.queue.add(place)

    async def _run(self, cleanup: Cleanup, obj: Object, now: datetime) -> None:
        """Delete what a policy means; raises the first error that is not one of rights, after trying everything."""
        first: EngineError | None = None
        filters = kinds_in(cleanup.policy.match)
        for kind in served(self._surroundings.world.discovery, filters, "list", "delete"):
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
        policy = cleanup.policy
        place = Target(kind.group, kind.kind, kind.namespaced, policy.namespace or None)
        if out_of_reach(Effect.CLEAN_UP, place, policy.namespace):
            return
        page = await self._surroundings.client.list_all(kind, policy.namespace)
        objects = [
            {"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in page.items
        ]
        labels = {
            namespace: await self._surroundings.namespace_labels(namespace)
            for namespace in {str(one["metadata"].get("namespace") or "") for one in objects}
        }
        found = plan(
            cleanup, objects, now, check_conditions=lambda _: True, namespace_labels=labels
        )
        conditions = TargetConditions(
            policy, self._surroundings.resolver, self._surroundings.inputs("cleanup", now)
        )
        await self._delete_all(policy, obj, kind, found, conditions, now)

    async def _delete_all(
        self,
        policy: CleanupPolicy,
        obj: Object,
        kind: Kind,
        found: Plan,
        conditions: TargetConditions,
        now: datetime,
    ) -> None:
        """Delete the objects of one kind; raises the first error when all were tried."""
        first: EngineError | None = None
        for decision in found.deletions:
            target = decision.object
            if self._is_filtered(target) or is_held(target, now):
                continue
            labels = _labels(policy, target)
            try:
                if policy.conditions and not await conditions.hold(target):
                    continue
                propagation = found.propagation
                if await delete(
                    self._surroundings, kind, target, about_object(obj), propagation=propagation
                ):
                    self._surroundings.metrics.count(
                        "kyverno_cleanup_controller_deletedobjects", labels
                    )
            except EngineError as error:
                self._surroundings.metrics.count("kyverno_cleanup_controller_errors", labels)
                first = first or error
        if first is not None:
            raise first

    def _is_filtered(self, target: Object) -> bool:
        metadata = target["metadata"]
        return self._surroundings.world.configuration.filters_out(
            review_of(target), str(metadata.get("namespace") or ""), str(metadata["name"])
        )

    def _refused(self, policy: CleanupPolicy, obj: Object, kind: Kind, error: Forbidden) -> None:
        """Say that objects of a kind stay for lack of rights; the run counts all the same (row C-02)."""
        target = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": str(kind)}}  # fmt: skip
        self._surroundings.metrics.count(
            "kyverno_cleanup_controller_errors", _labels(policy, target)
        )
        announce(self._surroundings, [cleaned_up(about_object(obj), target, error.message)])

    async def _ran(self, kind: Kind, obj: Object, now: datetime) -> None:
        """Write down that a policy ran; one that is gone or another by now needs nothing."""
        metadata = obj["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"]},
            "status": {"lastExecutionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")},
        }
        try:
            await self._surroundings.client.patch(
                kind, metadata["name"], metadata.get("namespace") or "", body, subresource="status"
            )
        except (NotFound, Conflict):
            return


def _labels(policy: CleanupPolicy, target: Object) -> tuple[str, ...]:
    kind = "namespaced" if policy.namespace else "cluster"
    namespace = str(target["metadata"].get("namespace") or "-")
    return (policy.name, policy.namespace or "-", kind, str(target.get("kind") or ""), namespace)


def _failed(place: _Place, error: Exception) -> None:
    if isinstance(error, EngineError):
        _log.warning("cleanup policy %s: %s", "/".join(place[1:]), error.message)
    else:
        _log.error("cleanup policy %s", "/".join(place[1:]), exc_info=error)
