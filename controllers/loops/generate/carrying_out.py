"""One generate rule for one trigger: asked what should exist, and everything that differs put right.

The one way that leads from a rule to objects, whatever the occasion: a request, an edited object, a changed policy. It looks
at the present state, so doing it twice does nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import KubeError
from controllers.kube.client import MERGE
from controllers.loops import rules
from controllers.loops.announcing import announce_success
from controllers.runtime.evaluating import evaluate_with
from controllers.store.cel_policies import is_of_cel
from controllers.store.events import made as made_notes
from engine.errors import EngineError, EvaluationError
from engine.generate.labels import SOURCE_NAMESPACE, SOURCE_UID, labelled, labels_sources
from engine.model import Object, Review, RuleResult, RuleType, Status

from .downstream import Downstreams, is_as_wanted, place_of, with_texts
from .memory import Failures, Memory
from .origin import CLONE_SOURCE, Origin, is_copy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from controllers.loops.context import LoopContext
    from engine.evaluate.rules import CompiledRule


class Generator:
    """Carries out generate rules."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        self.memory = Memory(context)
        self.failures = Failures()
        self.downstreams = Downstreams(context, self.memory)

    async def carry_out(
        self,
        rule: CompiledRule,
        review: Review,
        origin: Origin,
        now: datetime | None = None,
        *,
        seen: Sequence[Object] | None = None,
    ) -> RuleResult | None:
        """Let exist what a rule wants for a trigger, of which `seen` has stood so (None: all); raises EngineError for what must be tried again.

        A synchronised rule that no longer matches takes back what it made; an exception only lets it rest.
        """
        try:
            done = await self._carry_out(rule, review, origin, now, seen)
        except EngineError as error:
            self.failures.put(rule.policy, origin, error.message)
            raise
        self.failures.clear(rule.policy, origin)
        return done

    async def _carry_out(
        self,
        rule: CompiledRule,
        review: Review,
        origin: Origin,
        now: datetime | None,
        seen: Sequence[Object] | None,
    ) -> RuleResult | None:
        context = self._context
        found = await evaluate_with(
            context.resolver,
            rules.alone(rule),
            review,
            context.inputs(origin.seed, now),
            types=(RuleType.GENERATION,),
        )
        result = found.results[0] if found.results else None
        if result is not None and result.exceptions:
            return result
        if result is None or result.status is not Status.PASS:
            await self._without_result(rule, origin, result)
            return result
        wanted = tuple(_wanted(rule, review, obj) for obj in result.generated)
        await self.memory.learn(rule, wanted)
        due = [obj for obj in wanted if seen is None or _stood(obj, seen)]
        made = [obj for obj in due if await self.downstreams.put(rule, obj)]
        if rules.synchronizes(rule):
            kept = {place_of(obj) for obj in wanted}
            await self.downstreams.delete_except(rule, origin, kept)
            await self._mark_sources(rule, due)
        if made:
            announce_success(context, made_notes(rule.policy, rule.rule.name, made))
        return result

    async def reconcile(
        self, rule: CompiledRule, origin: Origin, seen: Sequence[Object] = ()
    ) -> None:
        """Look at a trigger anew: its objects go with it, or are as the rule says; raises EngineError.

        `seen` are states that objects of this origin had. By a rule that goes by who asks only an object is put right that stood as
        the rule wants it: who asked is not known any more, and labels that name a trigger may be written by anybody who may write
        some object, but what somebody could make himself is no more than he may do.
        """
        trigger = await self.trigger(origin)
        if trigger is None:
            self.failures.clear(rule.policy, origin)
            # what rules for deletions make is made when its trigger goes
            if rules.synchronizes(rule) and not rules.names_delete(rule):
                await self.downstreams.delete_except(rule, origin)
            return
        review = await self._context.review(trigger, rules.standing_operation(rule))
        known = seen if rules.goes_by_who_asks(rule) else None
        await self.carry_out(rule, review, origin, seen=known)

    async def trigger(self, origin: Origin) -> Object | None:
        """Return the trigger with the UID of an origin as it is now, None when it is gone or going; raises KubeError."""
        kind = await self._context.kind_of(origin.api_version, origin.kind)
        page = await self._context.client.list_all(
            kind, origin.namespace if kind.namespaced else "", metadata_only=True
        )
        for item in page.items:
            metadata = item["metadata"]
            if metadata.get("uid") != origin.uid or metadata.get("deletionTimestamp"):
                continue
            name, namespace = metadata["name"], metadata.get("namespace") or ""
            found = await self._context.client.get(kind, name, namespace)
            return kind.typed(found)
        return None

    async def _without_result(
        self, rule: CompiledRule, origin: Origin, result: RuleResult | None
    ) -> None:
        if result is not None and result.status is Status.ERROR:
            if rules.synchronizes(rule) and self.memory.sources(rule):
                await self.downstreams.delete_without_source(rule, origin)
            raise EvaluationError(result.message)
        if rules.synchronizes(rule):
            await self.downstreams.delete_except(rule, origin)

    async def _mark_sources(self, rule: CompiledRule, generated: Sequence[Object]) -> None:
        """Label the sources of copies (row U-02); without the right to, the author's or ours, they stay as they are."""
        if not rules.kinds_cloned(rule) or not labels_sources(rule.policy):
            return
        wanted = {(obj["metadata"].get("labels") or {}).get(SOURCE_UID): obj for obj in generated}
        for uid, obj in wanted.items():
            if uid:
                await self._mark_source(uid, obj)

    async def _mark_source(self, uid: str, copy: Object) -> None:
        namespace = copy["metadata"]["labels"].get(SOURCE_NAMESPACE, "")
        client = self._context.client
        try:
            kind = await self._context.kind_of_object(copy)
            page = await client.list_all(kind, namespace, metadata_only=True)
            for item in page.items:
                metadata = item["metadata"]
                if metadata.get("uid") == uid and CLONE_SOURCE not in (
                    metadata.get("labels") or {}
                ):
                    patch = {"metadata": {"uid": uid, "labels": {CLONE_SOURCE: ""}}}
                    await client.patch(kind, metadata["name"], namespace, patch, content_type=MERGE)
        except KubeError:
            return


def _stood(wanted: Object, seen: Sequence[Object]) -> bool:
    """Tell whether an object was as it is wanted in one of some states."""
    return any(
        place_of(one) == place_of(wanted) and is_as_wanted(one, wanted, is_copy=is_copy(wanted))
        for one in seen
    )


def _wanted(rule: CompiledRule, review: Review, obj: Object) -> Object:
    """Return an object as it is to be in the cluster, with the labels that say where it comes from."""
    made = labelled(obj, rule.policy, review) if is_of_cel(rule.policy) else obj
    return _unmarked(with_texts(made))


def _unmarked(obj: Object) -> Object:
    """Return an object without the mark of a source, which a copy takes over from its source but is not."""
    metadata = obj["metadata"]
    labels = metadata.get("labels") or {}
    if CLONE_SOURCE not in labels:
        return obj
    kept = {key: value for key, value in labels.items() if key != CLONE_SOURCE}
    return {**obj, "metadata": {**metadata, "labels": kept}}
