"""Policies and exceptions compiled together, indexed by the kinds they concern.

A set is immutable. A policy that does not compile is left out and listed in `problems`; the others work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.autogen import expand
from engine.errors import EngineError
from engine.exceptions import CompiledException, compile_exception
from engine.model import Policy, PolicyException, Review, RuleType
from engine.record import record

from . import plans
from .rules import CompiledPolicy, CompiledRule, compile_rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from engine.model.policy import Binding, CelException

    from .cel.exceptions import CompiledCelException


@record
class Problem:
    """A policy or exception that could not be compiled, and why."""

    policy: Policy | PolicyException | CelException
    error: EngineError


CLASSIC = frozenset({"ClusterPolicy", "Policy"})
"""The kinds whose rules are written in YAML; all others are written in CEL."""

IN_ORDER = (RuleType.MUTATION, RuleType.IMAGE_VERIFY, RuleType.VALIDATION, RuleType.GENERATION)
"""Mutation comes first, so that everything else sees the object as it would be stored."""


class PolicySet:
    """Compiled policies in the order they were given.

    `for_kind` gives those that can concern a kind at all; it remembers its answers, which only narrows a search. `is_large` is a
    set of so many policies that plans are made for places, too.
    """

    __slots__ = (
        "__weakref__",
        "_alike",
        "_by_identity",
        "_by_kind",
        "_held",
        "_index",
        "_placed",
        "_plans",
        "is_large",
        "policies",
        "problems",
    )

    def __init__(
        self, policies: tuple[CompiledPolicy, ...] = (), problems: tuple[Problem, ...] = ()
    ) -> None:
        self.policies = policies
        self.problems = problems
        self.is_large = len(policies) > plans.MANY
        names_resources = any(one.policy.kind not in CLASSIC for one in policies)
        self._alike = plans.alike_by_resource if names_resources else plans.alike
        self._by_kind: dict[str, tuple[plans.Group, ...]] = {}
        self._plans: dict[tuple[str, ...], tuple[plans.Part, ...]] = {}
        self._placed: dict[tuple[str, ...], tuple[plans.Part, ...]] = {}
        self._held = 0
        self._index: tuple[dict[str, list[int]], list[int]] | None = None
        self._by_identity: dict[str, CompiledPolicy] | None = None

    def carry_over(self, before: PolicySet) -> None:
        """Take over what was worked out before for kinds that no policy concerns which came, went or changed."""
        own, others = ({id(one): one for one in of.policies} for of in (self, before))
        changed = [(own.get(key) or others[key]) for key in own.keys() ^ others.keys()]
        if self._alike is not before._alike:
            return
        kinds: set[str] = set()
        for rule in (rule for policy in changed for rule in policy.rules):
            if rule.matcher.kinds is None:
                return
            kinds |= rule.matcher.kinds
        self._by_kind = {kind: it for kind, it in before._by_kind.items() if kind not in kinds}
        self._plans = {sort: it for sort, it in before._plans.items() if sort[0] not in kinds}
        self._placed = {place: it for place, it in before._placed.items() if place[0] not in kinds}
        self._held = before._held

    def find(self, identity: str) -> CompiledPolicy | None:
        """Return a policy by what tells it from all others."""
        if self._by_identity is None:
            self._by_identity = {one.policy.identity: one for one in self.policies}
        return self._by_identity.get(identity)

    @classmethod
    def compile(
        cls,
        policies: Iterable[Policy],
        exceptions: Iterable[PolicyException | CelException] = (),
        bindings: Iterable[Binding] = (),
        *,
        kinds: Collection[str] | None = None,
    ) -> PolicySet:
        """Compile `policies` with the `exceptions` that name them or their rules, and the `bindings` of native ones.

        All kinds may stand side by side: classic policies, those written in CEL, and their exceptions. With `kinds`, rules
        that are generated for pod controllers and concern no object of them are left out.
        """
        compiled: list[CompiledPolicy] = []
        problems: list[Problem] = []
        known, of_cel = _compiled(exceptions, problems)
        bound = tuple(bindings)
        for policy in policies:
            try:
                if policy.kind in CLASSIC:
                    compiled.append(compile_policy(policy, known, kinds))
                else:
                    # loaded with the first such policy
                    from .cel.policies import compile_cel_policy

                    compiled.append(compile_cel_policy(policy, of_cel, bound))
            except EngineError as error:
                problems.append(Problem(policy, error))
        return cls(tuple(compiled), tuple(problems))

    def for_kind(self, kind: str) -> tuple[plans.Group, ...]:
        """Return, for each type of rule in the order of evaluation, the policies with rules that can match `kind`.

        The policies hold only those rules; types without any are left out.
        """
        found = self._by_kind.get(kind)
        if found is None:
            found = self._groups(kind)
            if len(self._by_kind) < MAX_REMEMBERED:
                self._by_kind[kind] = found
        return found

    def plan(self, review: Review) -> tuple[plans.Part, ...]:
        """Return what is asked of a review, part by part in the order of evaluation; remembered like `for_kind`."""
        known = self._alike(review)
        if not self.is_large:
            return self._plans.get(known) or self._of_sort(known, review)
        place = (*known, review.namespace, repr(review.namespace_labels))
        found = self._placed.get(place)
        return self._in_place(known, place, review) if found is None else found

    def _of_sort(self, known: tuple[str, ...], review: Review) -> tuple[plans.Part, ...]:
        found = self._plans.get(known)
        if found is None:
            found = plans.make_plan(self.for_kind(review.kind), review)
            if self.is_large:
                found = plans.with_marks(found)
            if len(self._plans) < MAX_REMEMBERED:
                self._plans[known] = found
        return found

    def _in_place(
        self, known: tuple[str, ...], place: tuple[str, ...], review: Review
    ) -> tuple[plans.Part, ...]:
        """Plan what is asked of reviews of a sort in a namespace; all such plans together hold so many steps at most."""
        of_sort = self._of_sort(known, review)
        found = plans.narrowed_to_place(of_sort, review)
        size = 1 if found is of_sort else plans.size_of(found) + 1
        if self._held + size > MOST_STEPS:
            self._placed.clear()
            self._held = 0
        self._held += size
        self._placed[place] = found
        return found

    def _groups(self, kind: str) -> tuple[plans.Group, ...]:
        found: dict[RuleType, list[CompiledPolicy]] = {type_: [] for type_ in IN_ORDER}
        for policy in self._concerning(kind):
            for type_, rules in _rules_for(policy, kind).items():
                is_whole = len(rules) == len(policy.rules) and not policy.for_requests
                found[type_].append(
                    policy if is_whole else CompiledPolicy(policy.policy, tuple(rules))
                )
        return tuple(plans.Group(type_, tuple(those)) for type_, those in found.items() if those)

    def _concerning(self, kind: str) -> Iterable[CompiledPolicy]:
        """Return the policies of which some rule can match a kind, in their order."""
        if self._index is None:
            self._index = _by_kinds(self.policies)
        named, of_any = self._index
        return (self.policies[number] for number in sorted((*named.get(kind, ()), *of_any)))


MAX_REMEMBERED = 4096
"""Kinds that one set remembers; kinds come from requests, so their number must be bounded."""

MOST_STEPS = 200_000
"""Steps in all plans for places that one set remembers; places come from requests, too."""


def _by_kinds(policies: tuple[CompiledPolicy, ...]) -> tuple[dict[str, list[int]], list[int]]:
    """Return the numbers of policies by the kinds that their rules name, and of those that can match any."""
    named: dict[str, list[int]] = {}
    of_any: list[int] = []
    for number, policy in enumerate(policies):
        kinds: set[str] = set()
        for rule in policy.rules:
            if rule.matcher.kinds is None:
                of_any.append(number)
                break
            kinds |= rule.matcher.kinds
        else:
            for kind in kinds:
                named.setdefault(kind, []).append(number)
    return named, of_any


def _compiled(
    exceptions: Iterable[PolicyException | CelException], problems: list[Problem]
) -> tuple[tuple[CompiledException, ...], tuple[CompiledCelException, ...]]:
    """Compile exceptions of both kinds; those that cannot be are listed in `problems`."""
    classic: list[CompiledException] = []
    of_cel: list[CompiledCelException] = []
    for exception in exceptions:
        try:
            if isinstance(exception, PolicyException):
                classic.append(compile_exception(exception))
            else:
                from .cel.exceptions import compile_cel_exception

                of_cel.append(compile_cel_exception(exception))
        except EngineError as error:
            problems.append(Problem(exception, error))
    return tuple(classic), tuple(of_cel)


def compile_policy(
    policy: Policy,
    exceptions: tuple[CompiledException, ...] = (),
    kinds: Collection[str] | None = None,
) -> CompiledPolicy:
    """Compile one policy, for objects of `kinds` where they are given; raises EngineError for the first part that cannot be."""
    try:
        rules = expand(policy, kinds)
        return CompiledPolicy(
            policy, tuple(compile_rule(policy, rule, exceptions) for rule in rules)
        )
    except EngineError as error:
        if not error.at.file:
            error.at = policy.at
        raise


def _rules_for(compiled: CompiledPolicy, kind: str) -> dict[RuleType, list[CompiledRule]]:
    """Return the rules of a policy that can match a kind, by type."""
    found: dict[RuleType, list[CompiledRule]] = {}
    for rule in compiled.rules:
        if rule.matcher.kinds is None or kind in rule.matcher.kinds:
            found.setdefault(rule.type, []).append(rule)
    return found
