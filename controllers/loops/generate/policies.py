"""What generate and mutate-existing rules do because a policy was written or deleted (rows U-04, U-07, A-23).

Rules for existing objects get UpdateRequests for all of these, a few triggers to each; what a deleted rule made goes, unless
the rule said that it outlives it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from controllers.kube import Forbidden, KubeError
from controllers.kube.workqueue import WorkQueue
from controllers.loops.counting import counted
from controllers.loops.rules import generates_existing, mutates_on_update, needs_no_trigger
from controllers.loops.work import existing_triggers, reference_as, request_type, write_down
from controllers.runtime.webhook_routes import is_mutate_existing, is_trigger
from controllers.store.policies import content_hash, is_policy
from controllers.store.update_requests import RuleWork, UpdateRequest
from engine.errors import EngineError
from engine.model import RuleType

from .origin import is_copy

if TYPE_CHECKING:
    from controllers.loops.context import LoopContext
    from controllers.runtime.cluster_cache import Change
    from engine.evaluate.rules import CompiledRule

    from .carrying_out import Generator
    from .memory import Made, Place
    from .watching import SyncWatch

BATCH = 50
"""Triggers of one UpdateRequest: an object of the cluster must not grow without bound (row U-07)."""

_AGAIN = 30.0
"""Seconds after which what could not be deleted is tried again."""

_Known = dict[tuple[str, str], tuple[str, "CompiledRule"]]
_log = logging.getLogger(__name__)


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
        listeners = self._context.cache.on_change
        listeners.append(self._changed)
        self.queue.add("")
        work = counted(self._context.metrics, "policies", self.queue, self._look)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.queue.run(work, on_error=_failed))
                group.create_task(self._find_kinds())
        finally:
            listeners.remove(self._changed)

    async def _find_kinds(self) -> None:
        """Look now and then whether the server has kinds by now that rules have named for long."""
        while True:
            await self._context.clock.sleep(self._context.options.kinds_interval)
            self.queue.add("")

    def _changed(self, change: Change) -> None:
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
            if self._begun.get(place) == digest or not _acts_on_existing(rule):
                continue
            await self._write(key, rule)
            self._begun[place] = digest

    async def _write(self, key: str, rule: CompiledRule) -> None:
        if needs_no_trigger(rule):
            await self._write_batch(key, rule, [RuleWork(rule.rule.name)])
            return
        batch: list[RuleWork] = []
        async for obj in existing_triggers(self._context, rule):
            trigger = reference_as(obj, str(obj["apiVersion"]), str(obj["kind"]))
            batch.append(RuleWork(rule.rule.name, trigger))
            if len(batch) >= BATCH:
                await self._write_batch(key, rule, batch)
                batch = []
        if batch:
            await self._write_batch(key, rule, batch)

    async def _write_batch(self, key: str, rule: CompiledRule, batch: list[RuleWork]) -> None:
        update = UpdateRequest(request_type(key, rule.type), key, tuple(batch))
        await write_down(self._context, update)


def _acts_on_existing(rule: CompiledRule) -> bool:
    if is_mutate_existing(rule):
        return mutates_on_update(rule)
    return generates_existing(rule)


def _failed(_: str, error: Exception) -> None:
    if isinstance(error, EngineError):
        _log.warning("policies could not be carried out: %s", error.message)
    else:
        _log.error("policies could not be carried out", exc_info=error)
