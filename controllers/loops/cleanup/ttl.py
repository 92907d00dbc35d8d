"""Deletes objects whose TTL label has run out, of every kind that can be deleted (rows C-05, C-06).

Kinds are found at run time and only labelled objects are watched, without their content. Of a kind that we may watch but not
delete, each object that is due gets an Event; a kind that we may not even watch is shown as a figure. Only rights that were
given for clean-ups count, because anybody who may edit an object may write the label.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controllers.kube import Forbidden, Kind, KubeError
from controllers.kube.kinds import object_reference
from controllers.kube.reflector import Selection
from controllers.kube.store import key_of
from controllers.kube.workqueue import WorkQueue
from controllers.loops.announcing import announce, delete
from controllers.loops.following import LONGEST_SLEEP, counted, logged, queued
from controllers.loops.own_rights import OwnRights
from controllers.store.events import cleaned_up
from engine.cleanup.holds import hold_on_object
from engine.cleanup.ttl import due_at, propagation
from engine.errors import EvaluationError
from engine.reach import Effect, Target, out_of_reach
from engine.vocabulary import RIGHTS_FOR, TTL_LABEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controllers.kube.store import Store
    from controllers.loops.context import LoopContext
    from engine.model import Object

LABELLED = Selection(labels=TTL_LABEL, metadata_only=True)
NEEDED = ("list", "watch", "delete")
_REMEMBERED = 600.0
"""Seconds for which an answer about our rights counts (row C-06)."""
_Place = tuple["Kind", str, str]
_NO_RIGHT = (
    "no right to delete this kind was given for clean-ups; a ClusterRole with the label"
    f" {RIGHTS_FOR}cleanup-controller: true gives it"
)
_log = logging.getLogger(__name__)


class TtlLoop:
    """Deletes what has outlived its label. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self.queue: WorkQueue[_Place] = WorkQueue(clock=context.clock, least=1.0, most=600.0)
        # INVARIANT: they are those of the account of clean-ups, because what any other of ours may delete must not be for anybody
        # who may write a label.
        self.rights = OwnRights(context.client, context.clock, _REMEMBERED)
        self._watched: dict[Kind, tuple[Store, Callable[[], None]]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        work = counted(self._context.metrics, "ttl", self.queue, self._look)
        failed = logged(_log, lambda place: f"{place[0]} {'/'.join(place[1:])} is due but still there")  # fmt: skip
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.queue.run(work, workers=2, on_error=failed))
                group.create_task(self._follow())
        finally:
            for kind in list(self._watched):
                await self._release(kind)

    def watched(self) -> Iterator[tuple[Kind, int]]:
        """Yield the kinds that are watched, with how many labelled objects there are."""
        yield from ((kind, len(store)) for kind, (store, _) in self._watched.items())

    async def _follow(self) -> None:
        """Look for kinds again and again."""
        while True:
            try:
                await self._context.cache.discovery.refresh()
                await self._find_kinds()
            except KubeError as error:
                _log.warning("kinds could not be looked for: %s", error.message)
            await self._context.clock.sleep(self._context.options.ttl_interval)

    async def _find_kinds(self) -> None:
        wanted: dict[tuple[str, str], Kind] = {}
        for kind in self._context.cache.discovery:
            if {"list", "watch", "delete"} <= set(kind.verbs):
                wanted.setdefault((kind.group, kind.plural), kind)
        for kind in [one for one in self._watched if one not in wanted.values()]:
            await self._release(kind)
            self.rights.forget(kind.group, kind.plural)
        for kind in wanted.values():
            missing = await self._missing(kind)
            may_watch = "list" not in missing and "watch" not in missing
            if may_watch and kind not in self._watched:
                store = self._context.informers.acquire(kind, LABELLED)
                self._watched[kind] = (store, store.on_change(queued(self.queue, kind)))
            elif not may_watch and kind in self._watched:
                await self._release(kind)

    async def _missing(self, kind: Kind) -> list[str]:
        """Return the verbs that we may not use everywhere on a kind; raises KubeError."""
        rights = [(verb, kind.group, kind.version, kind.plural) for verb in NEEDED]
        return [right[0] for right in rights if await self.rights.refusal(right) is not None]

    async def _release(self, kind: Kind) -> None:
        _, stop = self._watched.pop(kind)
        stop()
        await self._context.informers.release(kind, LABELLED)

    async def _look(self, place: _Place) -> None:
        """Delete an object that is due, else come again when it is; raises KubeError, then it is tried again."""
        kind, namespace, name = place
        store = self._watched[kind][0] if kind in self._watched else None
        obj = store.get(name, namespace) if store is not None else None
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        try:
            due = due_at(obj)
        except EvaluationError:
            # Admission has warned of it (row C-07); a label that says nothing deletes nothing.
            return
        now = self._context.clock.now()
        if due is None:
            return
        if due > now or hold_on_object(obj, now) is not None:
            wait = (due - now).total_seconds() if due > now else LONGEST_SLEEP
            self.queue.add_after(place, min(wait, LONGEST_SLEEP))
            return
        await self._delete(kind, obj, place)

    async def _delete(self, kind: Kind, obj: Object, place: _Place) -> None:
        labels = (kind.group, kind.version, kind.plural, place[1] or "-")
        target = Target(kind.group, kind.kind, kind.namespaced, *key_of(obj), (obj,))
        if out_of_reach(Effect.EXPIRE, target):
            return
        shown = kind.typed(obj)
        metrics, says_failure = self._context.metrics, not self.queue.failures(place)
        try:
            await self._check_right(kind, shown, says_failure=says_failure)
            if await delete(
                self._context,
                kind,
                obj,
                object_reference(shown),
                propagation=propagation(obj),
                says_failure=says_failure,
            ):
                metrics.count("kyverno_ttl_controller_deletedobjects", labels)
        except Forbidden:
            metrics.count("kyverno_ttl_controller_errors", labels)
            self.rights.forget(kind.group, kind.plural)
            raise
        except KubeError:
            metrics.count("kyverno_ttl_controller_errors", labels)
            raise

    async def _check_right(self, kind: Kind, obj: Object, *, says_failure: bool) -> None:
        """Raise Forbidden where nobody gave the right to delete a kind for clean-ups; an Event says so first."""
        if "delete" not in await self._missing(kind):
            return
        if says_failure:
            announce(self._context, [cleaned_up(object_reference(obj), obj, _NO_RIGHT)])
        raise Forbidden(_NO_RIGHT)
