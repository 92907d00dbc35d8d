"""What a set of policies asks of one sort of request, worked out with the first request of that sort.

A cluster sees few sorts: kinds with their versions, subresources and operations. What depends on nothing else is decided
here once, so that for most requests the question whether a rule applies is already answered. Where there are many rules, a plan
is narrowed further to a namespace, and those that are left are found by the names and labels that they ask for.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from engine.match.marks import borne
from engine.model import RuleType
from engine.reach import GUARDED_GROUPS
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.match.marks import Mark
    from engine.model import Review

    from .policy_set import Group
    from .quick import Quick
    from .rules import CompiledPolicy, CompiledRule

    Sort = tuple[str, ...]

CHANGING = (RuleType.MUTATION, RuleType.IMAGE_VERIFY)
"""The types of rules that change the object under review."""

MANY = 32
"""Steps from which on it is quicker to find some than to ask all."""


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
    stretches: tuple[tuple[bool, tuple[Step, ...] | Marked], ...]


class Marked:
    """Many steps in their order, of which those are found that can concern an object by the marks that it bears."""

    __slots__ = ("_always", "_by_mark")

    def __init__(self, steps: Iterable[Step]) -> None:
        self._always: dict[int, Step] = {}
        self._by_mark: dict[Mark, list[tuple[int, Step]]] = {}
        for number, step in enumerate(steps):
            marks = None if step.applies is None else step.rule.matcher.marks
            if marks is None:
                self._always[number] = step
            for mark in marks or ():
                self._by_mark.setdefault(mark, []).append((number, step))

    def __len__(self) -> int:
        return len(self._always) + len(self._by_mark)

    @property
    def is_of_use(self) -> bool:
        """Whether steps are found by marks at all."""
        return bool(self._by_mark)

    def of(self, review: Review) -> Iterable[Step]:
        """Return the steps that can concern the object of a review, in their order."""
        known, found = self._by_mark, None
        for mark in borne(review):
            if mark in known:
                found = self._always.copy() if found is None else found
                found.update(known[mark])
        if found is None:
            return self._always.values()
        return [found[number] for number in sorted(found)]


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
    answer = rule.matcher.settled(review, in_place=False)
    if answer is not False:
        yield Step(rule, None if answer else rule.matcher.applies, quick)


def _is_guarded(rule: CompiledRule, review: Review) -> bool:
    """Tell whether a rule has to look at an object before it changes it, which may be out of its reach."""
    return rule.type is RuleType.MUTATION and review.group in GUARDED_GROUPS


def narrowed_to_place(plan: tuple[Part, ...], review: Review) -> tuple[Part, ...]:
    """Return a plan without the steps that concern no review in the namespace of this one; the same one where all may."""
    parts = tuple(_part_in_place(part, review) for part in plan)
    if all(one is other for one, other in zip(parts, plan, strict=True)):
        return plan
    return tuple(part for part in parts if part.stretches)


def _part_in_place(part: Part, review: Review) -> Part:
    stretches = tuple(
        (stops_early, _steps_in_place(steps, review)) for stops_early, steps in part.stretches
    )
    pairs = zip(stretches, part.stretches, strict=True)
    if all(one[1] is other[1] for one, other in pairs):
        return part
    return Part(part.type, tuple(one for one in stretches if one[1]))


def _steps_in_place(steps: tuple[Step, ...] | Marked, review: Review) -> tuple[Step, ...] | Marked:
    if isinstance(steps, Marked):
        return steps
    kept = []
    for step in steps:
        answer = None if step.applies is None else step.rule.matcher.settled(review, in_place=True)
        if answer:
            kept.append(Step(step.rule, None, step.quick))
        elif answer is None:
            kept.append(step)
    is_same = len(kept) == len(steps) and all(
        one is two for one, two in zip(kept, steps, strict=True)
    )
    return steps if is_same else tuple(kept)


def with_marks(plan: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return a plan whose long stretches are found by marks; not where one rule changes the object that the next one is asked of."""
    return tuple(
        part if part.type in CHANGING else Part(part.type, tuple(map(_marked, part.stretches)))
        for part in plan
    )


def _marked(
    stretch: tuple[bool, tuple[Step, ...] | Marked],
) -> tuple[bool, tuple[Step, ...] | Marked]:
    stops_early, steps = stretch
    if isinstance(steps, Marked) or len(steps) < MANY:
        return stretch
    made = Marked(steps)
    return (stops_early, made) if made.is_of_use else stretch


def size_of(plan: tuple[Part, ...]) -> int:
    """Return how many steps a plan holds."""
    return sum(len(steps) for part in plan for _, steps in part.stretches)
