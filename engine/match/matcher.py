"""Whole match and exclude blocks compiled once into the question: does this rule concern this object (row A-30).

`compile_match` is for rules, `compile_any_all` for exceptions and cleanup policies. The answer is one call of a closure;
the reason for a no is worked out only when somebody asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.reach import GUARDED_GROUPS
from engine.record import record

from .combine import every, never, some
from .filters import OF_PLACE, OF_SORT, Filter, Use, compile_filter
from .marks import either, fewest, marks_of_names
from .shapes import sequence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Block, Review

    from .combine import Test
    from .marks import Marks


@record
class Group:
    """Compiled entries of one block and how they are joined: `any`, `all`, or the legacy single block (``)."""

    joined_by: str
    filters: tuple[Filter, ...]
    test: Test
    kinds: frozenset[str] | None

    @property
    def marks(self) -> Marks:
        """The marks of which an object bears one where it matches."""
        asked = (entry.marks for entry in self.filters if not entry.is_empty)
        return either(asked) if self.joined_by == "any" else fewest(asked)

    def settled(self, review: Review, known: frozenset[str]) -> bool | None:
        """Return what the block says by checks that are known, None where others decide."""
        if self.test is never:
            return False
        answers = [entry.settled(review, known) for entry in self.filters]
        if self.joined_by == "any":
            return any(answers) or (None if None in answers else False)
        return False if False in answers else (None if None in answers else True)

    def reasons(self, review: Review) -> str:
        """Say of every entry that does not fit which attribute it is."""
        found = [
            f"{self._place(index)}: {missed}"
            for index, entry in enumerate(self.filters)
            if (missed := entry.mismatch(review))
        ]
        return ", ".join(found) or "nothing is asked for"

    def _place(self, index: int) -> str:
        return f"{self.joined_by}[{index}]" if self.joined_by else "resources"


@record
class Matcher:
    """A compiled match and exclude.

    `applies` is the fast question. `kinds` are the kind names that can match at most, None when that is open; callers
    index rules by it.
    """

    applies: Test
    kinds: frozenset[str] | None
    included: Group
    excluded: Group
    policy_namespace: str = ""

    def is_within(self, review: Review) -> bool:
        """Tell whether an object is in the reach of the policy: that of a namespace reaches what is in it (row A-25)."""
        own = self.policy_namespace
        return not own or (review.namespace == own and review.group not in GUARDED_GROUPS)

    @property
    def marks(self) -> Marks:
        """The marks of which an object bears one where the rule applies."""
        own = self.policy_namespace
        return fewest((self.included.marks, marks_of_names((own,) if own else (), "namespace")))

    def settled(self, review: Review, *, in_place: bool) -> bool | None:
        """Return what is said to all reviews of a sort, or of a sort in a namespace; None where that differs."""
        known = OF_SORT
        if in_place:
            # a Namespace is told apart by its own name
            known = OF_PLACE - {"namespaces"} if review.kind == "Namespace" else OF_PLACE
        included = self.included.settled(review, known)
        if included is False:
            return False
        if self.policy_namespace and not (in_place and self.is_within(review)):
            return False if in_place else None
        excluded = self.excluded.settled(review, known)
        if excluded:
            return False
        return True if included and excluded is False else None

    def refusal(self, review: Review) -> str | None:
        """Return why the rule does not apply, None when it does."""
        if self.applies(review):
            return None
        if self.policy_namespace and review.namespace != self.policy_namespace:
            return f"the object is not in the policy's namespace `{self.policy_namespace}`"
        if self.policy_namespace and review.group in GUARDED_GROUPS:
            return f"objects of {review.group} are out of the reach of a policy of a namespace"
        if not self.included.test(review):
            return f"not matched by {self.included.reasons(review)}"
        return f"excluded by {_excluding(self.excluded, review)}"


def compile_match(match: Block, exclude: Block, *, policy_namespace: str = "") -> Matcher:
    """Compile the match and exclude of a rule; raises PolicyError when a part has the wrong type.

    A rule of a namespaced Policy applies to objects of its own namespace only (row A-25), and there not to what decides about
    policies. Exclude is asked only after
    match held (row A-30).
    """
    included = _group(match, Use.MATCH)
    excluded = _group(exclude, Use.EXCLUDE)
    tests: list[Test] = [included.test]
    if policy_namespace:
        tests.insert(
            0,
            lambda review: (
                review.namespace == policy_namespace and review.group not in GUARDED_GROUPS
            ),
        )
    if excluded.test is not never:
        left_out = excluded.test
        tests.append(lambda review: not left_out(review))
    return Matcher(
        applies=_guarded(every(tests), included, alone=len(tests) == 1),
        kinds=included.kinds,
        included=included,
        excluded=excluded,
        policy_namespace=policy_namespace,
    )


def compile_any_all(block: Block) -> Group:
    """Compile the match or exclude of an exception or cleanup policy (rows X-03, C-01); ask `.test(review)`.

    An empty block never matches. Raises PolicyError when a part has the wrong type.
    """
    return _group(block, Use.STANDING)


def _group(block: Block, use: Use) -> Group:
    """Read `any`, else `all`, else the legacy block.

    A match with both `any` and `all` is refused when the policy is checked; here it matches nothing.
    """
    either = _filters(block.get("any"), "any", use)
    each = _filters(block.get("all"), "all", use)
    if either and each and use is not Use.EXCLUDE:
        return Group("any", either, never, frozenset())
    if either:
        return Group("any", either, some(_tests(either)), _widest(either))
    if each:
        test = never if any(entry.is_empty for entry in each) else every(_tests(each))
        return Group("all", each, test, _narrowest(each))
    legacy = compile_filter(block, use)
    if legacy.is_empty:
        return Group("", (), never, frozenset())
    return Group("", (legacy,), legacy.test, legacy.kinds)


def _filters(entries: object, name: str, use: Use) -> tuple[Filter, ...]:
    return tuple(compile_filter(entry, use) for entry in sequence(entries, name))


def _tests(filters: Iterable[Filter]) -> list[Test]:
    """Return the tests of the entries that ask for something; an empty entry matches nothing."""
    return [entry.test for entry in filters if not entry.is_empty]


def _widest(filters: Iterable[Filter]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for entry in filters:
        if entry.is_empty:
            continue
        if entry.kinds is None:
            return None
        found |= entry.kinds
    return found


def _narrowest(filters: Iterable[Filter]) -> frozenset[str] | None:
    found: frozenset[str] | None = None
    for entry in filters:
        if entry.kinds is not None:
            found = entry.kinds if found is None else found & entry.kinds
    return found


def _guarded(test: Test, included: Group, *, alone: bool) -> Test:
    """Put one set look-up before the full question where an exact list of kinds is known."""
    kinds = included.kinds
    if kinds is None or (alone and len(included.filters) == 1):
        return test
    return lambda review: review.kind in kinds and test(review)


def _excluding(group: Group, review: Review) -> str:
    if group.joined_by != "any":
        return f"exclude.{group.joined_by}".rstrip(".")
    found = [
        index
        for index, entry in enumerate(group.filters)
        if not entry.is_empty and entry.test(review)
    ]
    return ", ".join(f"exclude.any[{index}]" for index in found)
