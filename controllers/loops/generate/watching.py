"""Watches what generate rules depend on: the objects they made, the sources they copy, their triggers, and policies (rows U-04, U-07, A-23).

Rules for existing objects get UpdateRequests for all of these when their policy is written, a few triggers to each; what a deleted rule
made goes, unless the rule said that it outlives it. All else that is found ends as one question, "look at this origin again", in a queue; the answer is `Generator.reconcile`. At the start
every generated object is looked at once, so that what happened while nobody led is put right.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube import Forbidden, Kind, KubeError
from controllers.kube.kinds import object_reference
from controllers.kube.reflector import Selection
from controllers.kube.workqueue import WorkQueue
from controllers.loops.following import Following, counted, logged
from controllers.loops.rules import (
    generates_existing,
    is_unaffected,
    mutates_on_update,
    needs_no_trigger,
    synchronizes,
    trigger_kinds,
)
from controllers.loops.work import existing_triggers, request_type, write_down
from controllers.runtime.webhook_routes import is_mutate_existing, is_trigger
from controllers.store.policies import content_hash, is_policy
from controllers.store.update_requests import RuleWork, UpdateRequest
from engine.errors import EngineError
from engine.generate.labels import SOURCE_UID
from engine.model import RuleType
from engine.vocabulary import TRIGGER_UID

from .origin import SELECTOR, Origin, is_copy, is_of, origin_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from controllers.kube.store import Change, Store
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change as WorldChange
    from engine.evaluate.rules import CompiledRule
    from engine.model import Object

    from .carrying_out import Generator
    from .memory import Made, Place

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
        failed = logged(_log, lambda origin: f"{origin.policy}/{origin.rule}")
        try:
            await self.queue.run(work, workers=4, on_error=failed)
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
                seen.append(kind.typed(change.old))
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


BATCH = 50
"""Triggers of one UpdateRequest: an object of the cluster must not grow without bound (row U-07)."""

_AGAIN = 30.0
"""Seconds after which what could not be deleted is tried again."""

_Known = dict[tuple[str, str], tuple[str, "CompiledRule"]]


class PolicyWatch:
    """Acts on changes of policies. `run` it as a task on the leader."""

    def __init__(self, context: LoopContext, generator: Generator, sync: SyncWatch) -> None:
        self._context = context
        self._generator = generator
        self._sync = sync
        self._known: _Known = {}
        self._begun: dict[str, str] = {}
        self.queue: WorkQueue[str] = WorkQueue(clock=context.clock, least=0.2, most=300.0)
        generator.memory.learned = lambda: self.queue.add("")

    async def run(self) -> None:
        """Work until cancelled. All policies are taken for new at the start, because nobody knows who saw them."""
        work = counted(self._context.metrics, "policies", self.queue, self._look)
        failed = logged(_log, lambda _: "policies could not be carried out")
        async with Following(self._context.informers) as following, asyncio.TaskGroup() as group:
            following.listen(self._context.cache.on_change, self._changed)
            self.queue.add("")
            group.create_task(self.queue.run(work, on_error=failed))
            group.create_task(self._find_kinds())

    async def _find_kinds(self) -> None:
        """Look now and then whether the server has kinds by now that rules have named for long."""
        while True:
            await self._context.clock.sleep(self._context.options.kinds_interval)
            self.queue.add("")

    def _changed(self, change: WorldChange) -> None:
        if is_policy(change.object):
            self.queue.add("")

    async def _look(self, _: str) -> None:
        """Compare the rules in force with those of the last look; raises EngineError, then it is done again."""
        current = self._rules()
        before, self._known = self._known, current
        self._generator.failures.keep(rule.policy for _, rule in current.values())
        memory = self._generator.memory
        await memory.recall()
        await self._sync.follow(rule for _, rule in current.values())
        for place, (digest, rule) in current.items():
            if before.get(place, ("",))[0] != digest:
                self._sync.look_again(rule)
        generating = [rule for _, rule in current.values() if rule.type is RuleType.GENERATION]
        await memory.keep(generating)
        await memory.keep(generating, gone=await self._take_away())
        await self._begin()

    def _rules(self) -> _Known:
        return {
            (key, rule.rule.name): (content_hash(compiled.policy.raw), rule)
            for key, compiled in self._context.snapshot.compiled.items()
            for rule in compiled.rules
            if is_trigger(rule)
        }

    async def _take_away(self) -> list[Place]:
        """Delete what rules made that are no more, also those that went while nobody led; return these rules.

        A policy that is there and cannot be compiled has lost no rule. Copies stay when their rule is taken out of a policy
        and go when the whole policy is deleted, as upstream's.
        """
        snapshot, gone = self._context.snapshot, []
        for place, made in self._generator.memory.rules.items():
            if place in self._known or place[0] in snapshot.problems:
                continue
            is_kept = made.stays or (bool(made.sources) and place[0] in snapshot.compiled)
            if is_kept or await self._is_taken_away(place, made):
                gone.append(place)
        return gone

    async def _is_taken_away(self, place: Place, made: Made) -> bool:
        """Delete what one rule made; False when that is to be tried again, which holds nothing else up.

        Copies outlive a policy written in CEL, as upstream's.
        """
        downstreams, spares_copies = self._generator.downstreams, ":" in place[0]
        try:
            for obj in await downstreams.of_rule(place, sorted(made.kinds)):
                if not (spares_copies and is_copy(obj)):
                    await downstreams.delete(obj)
        except Forbidden as error:
            _log.warning("what %s/%s made stays: %s", *place, error.message)
        except KubeError as error:
            _log.warning("what %s/%s made is still there: %s", *place, error.message)
            self.queue.add_after("", _AGAIN)
            return False
        return True

    async def _begin(self) -> None:
        """Write down the work of rules for existing objects, once for each state of their policy."""
        for (key, name), (digest, rule) in self._known.items():
            place = f"{key}/{name}"
            acts_on_existing = mutates_on_update if is_mutate_existing(rule) else generates_existing
            if self._begun.get(place) != digest and acts_on_existing(rule):
                await self._write(key, rule)
                self._begun[place] = digest

    async def _write(self, key: str, rule: CompiledRule) -> None:
        if needs_no_trigger(rule):
            await self._write_batch(key, rule, [RuleWork(rule.rule.name)])
            return
        batch: list[RuleWork] = []
        async for obj in existing_triggers(self._context, rule):
            batch.append(RuleWork(rule.rule.name, object_reference(obj)))
            if len(batch) >= BATCH:
                await self._write_batch(key, rule, batch)
                batch = []
        if batch:
            await self._write_batch(key, rule, batch)

    async def _write_batch(self, key: str, rule: CompiledRule, batch: list[RuleWork]) -> None:
        update = UpdateRequest(request_type(key, rule.type), key, tuple(batch))
        await write_down(self._context, update)
