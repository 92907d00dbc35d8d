"""One rule of one UpdateRequest: which object is looked at, and who carries the rule out."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from controllers.kube import KubeError, find
from controllers.kube.kinds import object_reference
from controllers.loops.generate.carrying_out import Generator
from controllers.loops.generate.origin import origin_of
from controllers.loops.rules import alone, needs_no_trigger, synchronizes
from controllers.runtime.evaluating import evaluate_with
from controllers.store.cel_policies import is_of_cel
from controllers.store.reports import UNREPORTED_KINDS, rows_of
from controllers.store.update_requests import RuleWork, UpdateRequest, review_of_update
from controllers.store.used_grants import Tally, excused, kept_from_working
from engine.errors import EngineError
from engine.lang import rfc3339
from engine.model import NOBODY, Json, Object, Review, RuleResult, RuleType, Status
from engine.record import replace as replaced
from engine.requester import asks_of_expressions, asks_of_request

from .targets import Mutator, raise_first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controllers.kube import Client
    from controllers.loops.context import LoopContext
    from controllers.loops.reports.pending import PendingReports
    from engine.evaluate.rules import CompiledRule

_JUST_MADE = timedelta(seconds=60)
"""How old a trigger may be that is said to be made."""
_log = logging.getLogger(__name__)
_BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})


class NotYet(KubeError):  # noqa: N818 - it names the state
    """What the request was about has not happened yet."""


class NeedsProof(EngineError):  # noqa: N818 - it names the state
    """What a rule wants to know was told by somebody who did not prove to be the API server."""


class Worker:
    """Carries out rules of UpdateRequests; `counting` writes the status of Grants, where another account than the context's does."""

    def __init__(
        self, context: LoopContext, pending: PendingReports, *, counting: Client | None = None
    ) -> None:
        self._context = context
        self._pending = pending
        self.generator = Generator(context)
        self._mutator = Mutator(context)
        self._tally = Tally(counting or context.client)
        self._done: dict[str, dict[str, set[str]]] = {}

    async def carry_out(self, rule: CompiledRule, update: UpdateRequest, work: RuleWork) -> None:
        """Do what a request says for one of its rules; raises NotYet, or EngineError for what must be tried again."""
        trigger = await self._trigger(work)
        if update.is_proven:
            _check_happened(update.operation, work, trigger, update)
        else:
            _check_seen(update, work, trigger)
            _check_needs_no_word(rule, update, work)
        if rule.type is RuleType.GENERATION:
            results = await self._generated(rule, update, work, trigger)
        elif trigger is None and not update.request and not needs_no_trigger(rule):
            return
        else:
            review = await self._review(update, work, trigger, is_current=False)
            known = self._done.setdefault(update.name, {})
            done = known.setdefault(work.key, set(update.changed.get(work.key, ())))
            seed = f"{update.seed}/{work.trigger.get('uid', '')}"
            results = await self._mutator.carry_out(
                rule, review, update.seed if update.request else seed, update.created_at, done
            )
            await self._count(rule, review, update, results)
        self._report(work, results)
        raise_first([one for one in results if one.is_of_cel and one.targets])

    def changed(self, update: UpdateRequest) -> Mapping[str, set[str]]:
        """Return which targets of a request were changed, as its status holds it."""
        known = {key: set(uids) for key, uids in update.changed.items()}
        return {**known, **self._done.get(update.name, {})}

    def forget(self, name: str) -> None:
        """Forget which targets of a finished request were changed."""
        self._done.pop(name, None)

    async def _generated(
        self, rule: CompiledRule, update: UpdateRequest, work: RuleWork, trigger: Object | None
    ) -> list[RuleResult]:
        """Generate; what cannot be done stands in the report of the trigger until it is."""
        try:
            return await self._generate(rule, update, work, trigger)
        except EngineError as error:
            failed = RuleResult(
                rule.policy.key, rule.rule.name, rule.type, Status.ERROR, error.message,
                policy_kind=rule.policy.kind,
            )  # fmt: skip
            self._report(work, [failed])
            raise

    async def _generate(
        self, rule: CompiledRule, update: UpdateRequest, work: RuleWork, trigger: Object | None
    ) -> list[RuleResult]:
        origin = origin_of(rule, work.trigger)
        if work.undo:
            await self.generator.reconcile(rule, origin)
            return []
        if trigger is None and update.operation != "DELETE":
            await self.generator.reconcile(rule, origin)
            return []
        review = await self._review(update, work, trigger, is_current=synchronizes(rule))
        result = await self.generator.carry_out(rule, review, origin, update.created_at)
        results = [result] if result is not None else []
        await self._count(rule, review, update, results)
        return results

    async def _count(
        self, rule: CompiledRule, review: Review, update: UpdateRequest, results: list[RuleResult]
    ) -> None:
        """Count the grants by which a request did not set off what it would have; what cannot be found out counts nothing."""
        context = self._context
        granted = context.snapshot.granted
        covered = excused(granted, results)
        if not (covered and update.request and update.is_proven):
            return
        inputs = context.inputs(update.seed, update.created_at)
        inputs = replaced(inputs, disregarded=frozenset(granted))
        try:
            found = await evaluate_with(
                context.resolver, alone(rule), review, inputs, types=(rule.type,)
            )
            for one in kept_from_working(covered, found.results):
                self._tally.add(one, context.clock.now())
            await self._tally.flush()
        except EngineError as error:
            _log.warning("uses of grants could not be counted: %s", error.message)

    async def _review(
        self, update: UpdateRequest, work: RuleWork, trigger: Object | None, *, is_current: bool
    ) -> Review:
        """Return what a rule is asked about.

        Mutation sees the object of the request, so that nobody can change it in between; synchronised generation sees it as it
        is, because an older request may be carried out after a newer one.
        """
        namespace = work.trigger.get("namespace", "")
        labels = await self._context.namespace_labels(namespace)
        one = replace(update, work=(work,))
        review = review_of_update(one, trigger, labels)
        if not update.is_proven:
            # INVARIANT: everything that the rule is asked about was read from the API server, nothing was told by a caller
            return replaced(
                review, object=trigger, user=NOBODY, operation=self._seen_operation(update, trigger)
            )
        if is_current and trigger is not None and not review.subresource:
            return replace(review, object=trigger)
        return review

    def _seen_operation(self, update: UpdateRequest, trigger: Object | None) -> str:
        """Return which operation a trigger shows itself: it was made just before the work was written down, or it was changed."""
        made = rfc3339.read(((trigger or {}).get("metadata") or {}).get("creationTimestamp"))
        at = update.created_at or self._context.clock.now()
        is_new = made is not None and at - made <= _JUST_MADE
        return "CREATE" if is_new and update.claimed == "CREATE" else "UPDATE"

    async def _trigger(self, work: RuleWork) -> Object | None:
        """Return the trigger as it is now; one of the same name with another UID is not it."""
        named = work.trigger
        if not named.get("name"):
            return None
        kind = await self._context.kind_of(named.get("apiVersion", ""), named.get("kind", ""))
        place = named.get("namespace", "") if kind.namespaced else ""
        found = await find(self._context.client, kind, named["name"], place)
        if found is None or (named.get("uid") and found["metadata"].get("uid") != named["uid"]):
            return None
        return kind.typed(found)

    def _report(self, work: RuleWork, results: list[RuleResult]) -> None:
        """Put results into reports: of the trigger, and for policies written in CEL of each target."""
        now, policies = self._context.clock.now(), self._context.policies
        about: list[tuple[Mapping[str, str], list[RuleResult]]] = [
            (object_reference(one.targets[0].before), [one])
            for one in results
            if one.is_of_cel and one.targets
        ]
        for place, said in about or [(work.trigger, results)]:
            if place.get("kind") not in UNREPORTED_KINDS and place.get("uid"):
                self._pending.add(place, rows_of(said, policies, now), now)


def _check_seen(update: UpdateRequest, work: RuleWork, trigger: Object | None) -> None:
    """Raise NotYet while the cluster does not show what a request, which nobody proved, is said to do."""
    is_there = trigger is not None and not trigger["metadata"].get("deletionTimestamp")
    if update.claimed == "DELETE":
        if is_there:
            raise NotYet("the trigger is still there")
        return
    if trigger is None and not work.undo:
        raise NotYet("the trigger is not there yet")
    if trigger is not None and update.seen and trigger["metadata"].get("resourceVersion") == update.seen:  # fmt: skip
        raise NotYet("the trigger is as it was")


def _check_needs_no_word(rule: CompiledRule, update: UpdateRequest, work: RuleWork) -> None:
    """Raise NeedsProof for a rule that wants to know what only the request tells."""
    if work.undo:
        return
    asked = "deletions" if update.claimed == "DELETE" else _asks(rule)
    if asked:
        raise NeedsProof(f"not carried out: the rule goes by {asked}, and nobody proved that the API server sent the request; see docs/callers.md")  # fmt: skip


def _asks(rule: CompiledRule) -> str:
    """Return what a rule wants to know of a request that its object does not show."""
    if is_of_cel(rule.policy):
        return asks_of_expressions(rule.policy.raw["spec"])
    return asks_of_request(rule.rule)


def _check_happened(
    operation: str, work: RuleWork, trigger: Object | None, update: UpdateRequest
) -> None:
    """Raise NotYet while the change that was asked for cannot be seen: it may still be refused by somebody else."""
    if not work.trigger.get("name") or update.request.get("subResource"):
        return
    if operation == "CREATE" and trigger is None:
        raise NotYet("the trigger is not there yet")
    if operation == "UPDATE" and trigger is not None and _is_before(trigger, update.request):
        raise NotYet("the trigger is as it was")
    is_there = trigger is not None and not trigger["metadata"].get("deletionTimestamp")
    if operation == "DELETE" and is_there:
        raise NotYet("the trigger is still there")


def _is_before(trigger: Object, request: Mapping[str, Json]) -> bool:
    """Tell whether an object is still in the state that a request asks to change."""
    old, new = request.get("oldObject") or {}, request.get("object") or {}
    version = (old.get("metadata") or {}).get("resourceVersion")
    if not version or trigger["metadata"].get("resourceVersion") != version:
        return False
    return _content(old) != _content(new)


def _content(obj: Mapping[str, Json]) -> Object:
    metadata = obj.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _BOOKKEEPING}
    return {**obj, "metadata": kept}
