"""Mutate-existing rules carried out: each target is changed as the rule says, or the rule is asked again (row U-09).

A target is written with the version that the rule saw. When somebody else was quicker, the rule is asked again about what is
there now, so that no change of others is lost and a list that several requests add to holds all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Conflict, NotFound
from controllers.kube.kinds import object_reference
from controllers.loops.announcing import announce_success
from controllers.loops.rules import alone, needs_no_trigger
from controllers.runtime.evaluating import evaluate_with
from controllers.store import events
from controllers.store.cel_policies import is_of_cel
from engine.errors import EvaluationError
from engine.model import Object, Review, RuleResult, RuleType, Status, Target
from engine.reach import Effect, out_of_reach, target_of

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.loops.context import LoopContext
    from engine.evaluate.rules import CompiledRule

_ROUNDS = 10


class Mutator:
    """Carries out mutate-existing rules."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context

    async def carry_out(
        self, rule: CompiledRule, review: Review, seed: str, now: datetime | None, done: set[str]
    ) -> list[RuleResult]:
        """Change the targets of a rule and return its results; raises EngineError for what must be tried again.

        A target that cannot be judged keeps no other from being changed; its error is raised when all others were.
        Of a policy written in CEL each target has a report, so that its errors are among the results instead.
        `done` holds the UIDs of targets that were changed; it grows, and whoever tries again hands it in again.
        """
        for _ in range(_ROUNDS):
            results = await self._results(rule, review, seed, now)
            if await self._write_all(rule, results, done):
                if not is_of_cel(rule.policy):
                    raise_first(results)
                return results
        raise Conflict("the targets keep changing while they are mutated")

    async def _results(
        self, rule: CompiledRule, review: Review, seed: str, now: datetime | None
    ) -> list[RuleResult]:
        context = self._context
        found = await evaluate_with(
            context.resolver,
            alone(rule),
            review,
            context.inputs(seed, now),
            types=(RuleType.MUTATION,),
        )
        return [one for one in found.results if not self._is_filtered(rule, one)]

    def _is_filtered(self, rule: CompiledRule, result: RuleResult) -> bool:
        """Tell whether a result is about a target that was listed and that the filters keep from policies."""
        leaves_out = self._context.cache.configuration.leaves_out
        return needs_no_trigger(rule) and any(leaves_out(one.before) for one in result.targets)

    async def _write_all(
        self, rule: CompiledRule, results: list[RuleResult], done: set[str]
    ) -> bool:
        """Write every target; False when one changed meanwhile."""
        for result in results:
            for target in result.targets if result.status is Status.PASS else ():
                uid = str((target.before.get("metadata") or {}).get("uid") or "")
                if uid in done or target.after is target.before:
                    continue
                try:
                    await self._write(rule, target)
                except Conflict:
                    return False
                except NotFound:
                    continue
                done.add(uid)
                self._announce(rule, target)
        return True

    async def _write(self, rule: CompiledRule, target: Target) -> None:
        """Write a target, if it is in the policy's reach; raises EngineError."""
        after = _versioned(target.after, target.before)
        if not (target.before.get("metadata") or {}).get("resourceVersion"):
            raise EvaluationError("a target without a version cannot be changed safely")
        kind = await self._context.kind_of_object(after)
        states = target_of(target.before, after, is_namespaced=kind.namespaced)
        if reason := out_of_reach(Effect.MUTATE_EXISTING, states, rule.policy.namespace):
            raise EvaluationError(reason)
        await self._context.client.update(kind, after, subresource=target.subresource)

    def _announce(self, rule: CompiledRule, target: Target) -> None:
        if is_of_cel(rule.policy):
            metadata = target.after["metadata"]
            place = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
            text = f"{target.after.get('kind')} {place} is successfully mutated"
            done = events.Note(
                events.about_policy(rule.policy),
                events.APPLIED,
                events.MUTATED,
                text,
                events.ADMISSION,
            )
            announce_success(self._context, [done])
            return
        text = f"policy {rule.policy.key}/{rule.rule.name} applied"
        note = events.Note(
            object_reference(target.after), "PolicyApplied", events.NONE, text, events.MUTATE
        )
        announce_success(self._context, [events.changed(rule.policy), note])


def raise_first(results: list[RuleResult]) -> None:
    """Raise EvaluationError for the first result that is an error."""
    for result in results:
        if result.status is Status.ERROR:
            raise EvaluationError(result.message)


def _versioned(after: Object, before: Object) -> Object:
    """Return the changed object with the identity it was read with, whatever the rule made of that."""
    old = before["metadata"]
    metadata = {**(after.get("metadata") or {})}
    for name in ("name", "namespace", "uid", "resourceVersion"):
        if old.get(name):
            metadata[name] = old[name]
    return {**after, "metadata": metadata}
