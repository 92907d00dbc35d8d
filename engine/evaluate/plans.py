"""What a set of policies asks of one sort of request, worked out with the first request of that sort.

A cluster sees few sorts: kinds with their versions, subresources and operations. What depends on nothing else is decided
here once, so that for most requests the question whether a rule applies is already answered. Where there are many rules, a plan
is narrowed further to a namespace, and those that are left are found by the names, labels and annotations that they ask for.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from engine.match.marks import STARTS, borne
from engine.model import Review, RuleType
from engine.reach import GUARDED_GROUPS
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.match.marks import Mark

    from .quick import Quick
    from .rules import CompiledPolicy, CompiledRule

    Sort = tuple[str, ...]
    Stretch = tuple[bool, "tuple[Step, ...] | Marked"]
    """Steps, and whether asking them ends with the first that applies (row A-11)."""

CHANGING = (RuleType.MUTATION, RuleType.IMAGE_VERIFY)
"""The types of rules that change the object under review."""

MANY = 32
"""Steps from which on it is quicker to find some than to ask all."""


@record
class Group:
    """Policies narrowed to their rules of one type that can match one kind."""

    type: RuleType
    policies: tuple[CompiledPolicy, ...]


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
    stretches: tuple[Stretch, ...]


class Marked:
    """Many steps in their order, of which those are found that can concern an object by the marks that it bears.

    `always` are those that ask for no mark, by their number.
    """

    __slots__ = ("_by_mark", "_lengths", "_words", "always")

    def __init__(
        self, always: Mapping[int, Step], by_mark: Mapping[Mark, list[tuple[int, Step]]]
    ) -> None:
        self.always, self._by_mark = always, by_mark
        self._words = frozenset(mark[0] for mark in by_mark)
        self._lengths = frozenset(len(mark[1]) for mark in by_mark if mark[0] == STARTS)

    def with_others(self, always: Mapping[int, Step]) -> Marked:
        """Return the same with other steps that ask for no mark."""
        return Marked(always, self._by_mark)

    def of(self, review: Review) -> Iterable[Step]:
        """Return the steps that can concern the object of a review, in their order."""
        if not (marked := self._marked(review)):
            return self.always.values()
        found = {**self.always, **marked}
        return [found[number] for number in sorted(found)]

    def as_it_changes(self, current: Callable[[], Review]) -> Iterator[Step]:
        """Yield the steps that can concern an object in their order, each found by the object as those before it left it."""
        others = iter(self.always.items())
        other = next(others, None)
        review: Review | None = None
        marked: list[int] = []
        by_number: dict[int, Step] = {}
        last = -1
        while True:
            if (now := current()) is not review:
                review, by_number = now, self._marked(now)
                marked = sorted((one for one in by_number if one > last), reverse=True)
            if marked and (other is None or marked[-1] < other[0]):
                last = marked.pop()
                yield by_number[last]
            elif other is not None:
                (last, step), other = other, next(others, None)
                yield step
            else:
                return

    def _marked(self, review: Review) -> dict[int, Step]:
        known = self._by_mark
        found: dict[int, Step] = {}
        for mark in borne(review, self._words, self._lengths):
            if mark in known:
                found.update(known[mark])
        return found


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
    # a rule has to look at an object before it changes it, which may be out of its reach
    is_guarded = rule.type is RuleType.MUTATION and review.group in GUARDED_GROUPS
    quick = None if review.operation == "DELETE" or is_guarded else rule.quick
    answer = rule.matcher.settled(review, in_place=False)
    if answer is not False:
        yield Step(rule, None if answer else rule.matcher.applies, quick)


def narrowed_to_place(plan: tuple[Part, ...], review: Review) -> tuple[Part, ...]:
    """Return a plan without the steps that concern no review in the namespace of this one; the same one where all may.

    Steps that ask for marks stay: they are found by these.
    """
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
    return Part(part.type, tuple(one for one in stretches if isinstance(one[1], Marked) or one[1]))


def _steps_in_place(steps: tuple[Step, ...] | Marked, review: Review) -> tuple[Step, ...] | Marked:
    given = steps.always if isinstance(steps, Marked) else dict(enumerate(steps))
    kept = {
        number: found
        for number, step in given.items()
        if (found := _step_in_place(step, review)) is not None
    }
    if len(kept) == len(given) and all(kept[number] is step for number, step in given.items()):
        return steps
    return steps.with_others(kept) if isinstance(steps, Marked) else tuple(kept.values())


def _step_in_place(step: Step, review: Review) -> Step | None:
    answer = None if step.applies is None else step.rule.matcher.settled(review, in_place=True)
    if answer is None:
        return step
    return Step(step.rule, None, step.quick) if answer else None


def with_marks(plan: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return a plan whose long stretches are found by marks."""
    return tuple(Part(part.type, tuple(map(_marked, part.stretches))) for part in plan)


def _marked(stretch: Stretch) -> Stretch:
    stops_early, steps = stretch
    if isinstance(steps, Marked) or len(steps) < MANY:
        return stretch
    always: dict[int, Step] = {}
    by_mark: dict[Mark, list[tuple[int, Step]]] = {}
    for number, step in enumerate(steps):
        marks = None if step.applies is None else step.rule.matcher.marks
        if marks is None:
            always[number] = step
        for mark in marks or ():
            by_mark.setdefault(mark, []).append((number, step))
    return (stops_early, Marked(always, by_mark)) if by_mark else stretch


def size_of(plan: tuple[Part, ...]) -> int:
    """Return how many steps a plan holds of its own: those that ask for marks are shared by all places."""
    return sum(
        len(steps.always if isinstance(steps, Marked) else steps)
        for part in plan
        for _, steps in part.stretches
    )
