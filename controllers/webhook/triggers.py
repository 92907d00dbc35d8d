"""Which generate and mutate-existing rules a request sets off; the work itself is the loops'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.runtime.sink import Trigger
from controllers.store.cel_policies import is_of_cel
from engine.evaluate import PolicySet
from engine.record import replace

if TYPE_CHECKING:
    from engine.evaluate.rules import CompiledRule
    from engine.model import Review


def triggers_of(
    policies: PolicySet, review: Review, background_users: frozenset[str]
) -> tuple[Trigger, ...]:
    """Return the rules that match the object as it will be, or matched it as it was.

    Requests of our own background work set off nothing unless the rule says so (row A-24), Events aside: those tell what
    people did.
    """
    is_own = review.user.username in background_users and review.kind != "Event"
    found = []
    for group in policies.for_kind(review.kind):
        for compiled in group.policies:
            for rule in compiled.rules:
                if is_own and rule.rule.skip_background_requests:
                    continue
                trigger = _trigger(rule, review)
                if trigger is not None:
                    found.append(trigger)
    return tuple(found)


def for_own_requests(policies: PolicySet) -> PolicySet:
    """Return the policies that change what our own background work writes: those written in CEL only where they say so."""
    kept = tuple(
        one
        for one in policies.policies
        if not any(
            is_of_cel(rule.policy) and rule.rule.skip_background_requests for rule in one.rules
        )
    )
    return policies if len(kept) == len(policies.policies) else PolicySet(kept)


def _trigger(rule: CompiledRule, review: Review) -> Trigger | None:
    if rule.matcher.applies(review):
        return Trigger(rule.policy.identity, rule.rule.name, rule.type)
    if review.old_object is not None and _matched_before(rule, review):
        return Trigger(rule.policy.identity, rule.rule.name, rule.type, matches=False)
    return None


def _matched_before(rule: CompiledRule, review: Review) -> bool:
    """Tell whether the rule matched the object before the request, by whichever operation it came about."""
    before = replace(review, object=review.old_object, old_object=None)
    return any(
        rule.matcher.applies(replace(before, operation=operation))
        for operation in ("CREATE", "UPDATE")
    )
