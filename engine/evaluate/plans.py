"""What a set of policies asks of one sort of request, worked out with the first request of that sort.

A cluster sees few sorts: kinds with their versions, subresources and operations. What depends on nothing else is decided
here once, so that for most requests the question whether a rule applies is already answered.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from engine.match import Matcher
from engine.model import RuleType
from engine.reach import GUARDED_GROUPS
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.model import Review

    from .cel.constraints import Constraints
    from .policy_set import Group
    from .quick import Quick
    from .rules import CompiledPolicy, CompiledRule

    Sort = tuple[str, ...]

_ALIKE = frozenset({"kinds", "operations"})
"""The checks of a match that come to the same for all reviews that are `alike`."""


@record
class Step:
    """One rule to ask: whether it `applies` (None: it does), `quick` before the rule itself where that is allowed."""

    rule: CompiledRule
    applies: Callable[[Review], bool] | None
    quick: Quick | None


@record
class Part:
    """The rules of one type, in stretches of which each stops early or not (row A-11)."""

    type: RuleType
    stretches: tuple[tuple[bool, tuple[Step, ...]], ...]


def alike(review: Review) -> Sort:
    """Return what a plan is made for."""
    return (review.kind, review.operation, review.group, review.version, review.subresource)


def alike_by_resource(review: Review) -> Sort:
    """Return what a plan is made for where rules name resources, too; `alike` says enough for others."""
    return (*alike(review), review.resource, review.payload)


def make_plan(groups: Iterable[Group], review: Review) -> tuple[Part, ...]:
    """Plan what is asked of reviews that are alike; `groups` are the policies for their kind."""
    parts = (Part(group.type, tuple(_stretches(group.policies, review))) for group in groups)
    return tuple(part for part in parts if part.stretches)


def _stretches(
    policies: Iterable[CompiledPolicy], review: Review
) -> Iterator[tuple[bool, tuple[Step, ...]]]:
    """Yield the steps of each policy that stops early, and of all policies that stand between two such ones."""
    numbered = enumerate(policies)
    for number, members in groupby(numbered, key=lambda one: one[0] if one[1].stops_early else -1):
        rules = (rule for _, policy in members for rule in policy.rules)
        steps = tuple(step for rule in rules for step in _step(rule, review))
        if steps:
            yield number >= 0, steps


def _step(rule: CompiledRule, review: Review) -> Iterator[Step]:
    """Yield the step of a rule, none where it concerns no review of this sort."""
    quick = None if review.operation == "DELETE" or _is_guarded(rule, review) else rule.quick
    if not _is_decided(rule.matcher):
        yield Step(rule, rule.matcher.applies, quick)
    elif rule.matcher.applies(review):
        yield Step(rule, None, quick)


def _is_guarded(rule: CompiledRule, review: Review) -> bool:
    """Tell whether a rule has to look at an object before it changes it, which may be out of its reach."""
    return rule.type is RuleType.MUTATION and review.group in GUARDED_GROUPS


def _is_decided(matcher: Matcher | Constraints) -> bool:
    """Tell whether what a matcher says is the same for all reviews that are alike."""
    if not isinstance(matcher, Matcher):
        return matcher.is_decided
    if matcher.policy_namespace:
        return False
    filters = (*matcher.included.filters, *matcher.excluded.filters)
    return all(name in _ALIKE for entry in filters for name, _test in entry.checks)
