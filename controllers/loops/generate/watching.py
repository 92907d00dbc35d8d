"""Watches what synchronised rules depend on: their objects, the sources they copy, their triggers (row U-04).

Everything found ends as one question, "look at this origin again", in a queue; the answer is `Generator.reconcile`. At the start
every generated object is looked at once, so that what happened while nobody led is put right.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube import Kind, KubeError
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.counting import counted
from controllers.loops.rules import is_unaffected, synchronizes, trigger_kinds
from engine.errors import EngineError
from engine.generate.labels import SOURCE_UID
from engine.model import RuleType
from engine.vocabulary import TRIGGER_UID

from .origin import SELECTOR, Origin, is_of, origin_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from engine.evaluate.rules import CompiledRule
    from engine.model import Object

    from .carrying_out import Generator

_MADE = Selection(labels=SELECTOR)
_METADATA = Selection(metadata_only=True)
_MOST_SEEN: Final = 16
"""States of changed objects that are kept for one origin until it is looked at."""
_Watch = tuple["Kind", Selection]
_log = logging.getLogger(__name__)


class SyncWatch:
    """Keeps what synchronised rules made as the rules say. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, generator: Generator) -> None:
        self._context = context
        self._generator = generator
        self.queue: WorkQueue[Origin] = WorkQueue(clock=context.clock, least=0.2, most=900.0)
        self._watches: dict[_Watch, tuple[Store, Callable[[], None]]] = {}
        self._seen: dict[Origin, list[Object]] = {}

    async def run(self) -> None:
        """Work until cancelled."""
        work = counted(self._context.metrics, "synchronize", self.queue, self._look)
        try:
            await self.queue.run(work, workers=4, on_error=_failed)
        finally:
            for watch in list(self._watches):
                await self._release(watch)

    async def follow(self, rules: Iterable[CompiledRule]) -> None:
        """Watch what these rules depend on, and nothing else any more."""
        wanted: dict[_Watch, Callable[[Change], None]] = {}
        for rule in rules:
            if rule.type is RuleType.GENERATION and synchronizes(rule):
                wanted |= await self._needs(rule)
        for watch in [one for one in self._watches if one not in wanted]:
            await self._release(watch)
        for watch, listener in wanted.items():
            if watch not in self._watches:
                store = self._context.informers.acquire(*watch, labels=(TRIGGER_UID, SOURCE_UID))
                self._watches[watch] = (store, store.on_change(listener))

    def look_again(self, rule: CompiledRule) -> None:
        """Look at everything that a rule made, because the rule changed."""
        for obj in self._made():
            origin = origin_in(obj)
            if origin is not None and is_of(origin, rule):
                self.queue.add(origin)

    async def _needs(self, rule: CompiledRule) -> dict[_Watch, Callable[[Change], None]]:
        """Return what a rule depends on, each with who is to hear of changes."""
        found: dict[_Watch, Callable[[Change], None]] = {}
        for kind in await self._kinds(self._generator.memory.kinds(rule)):
            found[kind, _MADE] = partial(self._made_changed, kind)
        sources = await self._kinds(self._generator.memory.sources(rule))
        discovery = self._context.cache.discovery
        for kind in (*sources, *trigger_kinds(discovery, rule, "list", "watch")):
            found[kind, _METADATA] = partial(self._other_changed, kind)
        return found

    async def _kinds(self, names: Iterable[tuple[str, str]]) -> list[Kind]:
        found = []
        for api_version, kind in names:
            try:
                found.append(await self._context.kind_of(api_version, kind))
            except KubeError as error:
                _log.warning("a generate rule cannot be kept in step: %s", error.message)
        return found

    async def _release(self, watch: _Watch) -> None:
        _, stop = self._watches.pop(watch)
        stop()
        await self._context.informers.release(*watch)

    def _made_changed(self, kind: Kind, change: Change) -> None:
        """Look at a generated object that was edited or deleted; what a person took the labels off counts as deleted."""
        if is_unaffected(change.old, change.new):
            return
        origins = [origin_in(obj) if obj is not None else None for obj in (change.old, change.new)]
        if change.old is not None and origins[0] != origins[1]:
            self._generator.downstreams.disown(change.old)
        if change.old is not None and origins[0] is not None:
            seen = self._seen.setdefault(origins[0], [])
            if len(seen) < _MOST_SEEN:
                seen.append({"apiVersion": kind.api_version, "kind": kind.kind, **change.old})
        for origin in origins:
            if origin is not None:
                self.queue.add(origin)

    def _other_changed(self, kind: Kind, change: Change) -> None:
        """Look at what came of an object that is a source or a trigger."""
        uids = {
            str(obj["metadata"].get("uid") or "")
            for obj in (change.old, change.new)
            if obj is not None
        }
        is_gone = change.new is None or change.new["metadata"].get("deletionTimestamp")
        for uid in uids:
            self._enqueue(SOURCE_UID, uid)
            if is_gone:
                self._enqueue(TRIGGER_UID, uid)
        store, _ = self._watches.get((kind, _METADATA), (None, None))
        if change.old is None and store is not None and store.is_synced:
            self._source_came(kind.kind)

    def _source_came(self, kind: str) -> None:
        """Look at lists of copies again, to which a new object of the kind may belong."""
        for compiled in self._context.snapshot.compiled.values():
            for rule in compiled.rules:
                if (
                    rule.type is RuleType.GENERATION
                    and synchronizes(rule)
                    and any(name == kind for _, name in self._generator.memory.sources(rule))
                ):
                    self.look_again(rule)

    def _enqueue(self, label: str, uid: str) -> None:
        for (_, selection), (store, _) in self._watches.items():
            if selection == _MADE:
                for obj in store.by(f"label:{label}", uid):
                    origin = origin_in(obj)
                    if origin is not None:
                        self.queue.add(origin)

    def _made(self) -> list[dict[str, object]]:
        return [
            obj
            for (_, selection), (store, _) in self._watches.items()
            if selection == _MADE
            for obj in store
        ]

    async def _look(self, origin: Origin) -> None:
        """Put right what a rule made for a trigger; raises EngineError, then it is tried again."""
        seen = self._seen.pop(origin, [])
        try:
            for compiled in self._context.snapshot.compiled.values():
                for rule in compiled.rules:
                    if rule.type is RuleType.GENERATION and is_of(origin, rule) and synchronizes(rule):  # fmt: skip
                        await self._generator.reconcile(rule, origin, seen)
        except EngineError:
            self._seen[origin] = [*seen, *self._seen.get(origin, ())][:_MOST_SEEN]
            raise


def _failed(origin: Origin, error: Exception) -> None:
    if isinstance(error, EngineError):
        _log.warning("%s/%s: %s", origin.policy, origin.rule, error.message)
    else:
        _log.error("%s/%s", origin.policy, origin.rule, exc_info=error)
