"""Policies and exceptions compiled together, indexed by the kinds they concern.

A set is immutable. A policy that does not compile is left out and listed in `problems`; the others work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.autogen import expand
from engine.errors import EngineError
from engine.exceptions import CompiledException, compile_exception
from engine.model import PolicyException, RuleType
from engine.record import record

from .plans import Part, alike, alike_by_resource, make_plan
from .rules import CompiledPolicy, compile_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Policy, Review
    from engine.model.policy import Binding, CelException

    from .cel.exceptions import CompiledCelException


@record
class Problem:
    """A policy or exception that could not be compiled, and why."""

    policy: Policy | PolicyException | CelException
    error: EngineError


@record
class Group:
    """Policies narrowed to their rules of one type that can match one kind."""

    type: RuleType
    policies: tuple[CompiledPolicy, ...]


CLASSIC = frozenset({"ClusterPolicy", "Policy"})
"""The kinds whose rules are written in YAML; all others are written in CEL."""

IN_ORDER = (RuleType.MUTATION, RuleType.IMAGE_VERIFY, RuleType.VALIDATION, RuleType.GENERATION)
"""Mutation comes first, so that everything else sees the object as it would be stored."""


class PolicySet:
    """Compiled policies in the order they were given.

    `for_kind` gives those that can concern a kind at all; it remembers its answers, which only narrows a search.
    """

    __slots__ = ("_alike", "_by_kind", "_plans", "policies", "problems")

    def __init__(
        self, policies: tuple[CompiledPolicy, ...] = (), problems: tuple[Problem, ...] = ()
    ) -> None:
        self.policies = policies
        self.problems = problems
        names_resources = any(one.policy.kind not in CLASSIC for one in policies)
        self._alike = alike_by_resource if names_resources else alike
        self._by_kind: dict[str, tuple[Group, ...]] = {}
        self._plans: dict[tuple[str, ...], tuple[Part, ...]] = {}

    @classmethod
    def compile(
        cls,
        policies: Iterable[Policy],
        exceptions: Iterable[PolicyException | CelException] = (),
        bindings: Iterable[Binding] = (),
    ) -> PolicySet:
        """Compile `policies` with the `exceptions` that name them or their rules, and the `bindings` of native ones.

        All kinds may stand side by side: classic policies, those written in CEL, and their exceptions.
        """
        compiled: list[CompiledPolicy] = []
        problems: list[Problem] = []
        known, of_cel = _compiled(exceptions, problems)
        bound = tuple(bindings)
        for policy in policies:
            try:
                if policy.kind in CLASSIC:
                    compiled.append(compile_policy(policy, known))
                else:
                    compiled.append(_compile_cel(policy, of_cel, bound))
            except EngineError as error:
                problems.append(Problem(policy, error))
        return cls(tuple(compiled), tuple(problems))

    def for_kind(self, kind: str) -> tuple[Group, ...]:
        """Return, for each type of rule in the order of evaluation, the policies with rules that can match `kind`.

        The policies hold only those rules; types without any are left out.
        """
        found = self._by_kind.get(kind)
        if found is None:
            found = tuple(
                group for type_ in IN_ORDER if (group := self._group(kind, type_)).policies
            )
            if len(self._by_kind) < MAX_REMEMBERED:
                self._by_kind[kind] = found
        return found

    def plan(self, review: Review) -> tuple[Part, ...]:
        """Return what is asked of a review, part by part in the order of evaluation; remembered like `for_kind`."""
        known = self._alike(review)
        found = self._plans.get(known)
        if found is None:
            found = make_plan(self.for_kind(review.kind), review)
            if len(self._plans) < MAX_REMEMBERED:
                self._plans[known] = found
        return found

    def _group(self, kind: str, rule_type: RuleType) -> Group:
        narrowed = (_narrowed(item, kind, rule_type) for item in self.policies)
        return Group(rule_type, tuple(item for item in narrowed if item.rules))


MAX_REMEMBERED = 4096
"""Kinds that one set remembers; kinds come from requests, so their number must be bounded."""


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


def _compile_cel(
    policy: Policy, exceptions: tuple[CompiledCelException, ...], bindings: tuple[Binding, ...]
) -> CompiledPolicy:
    """Compile a policy written in CEL; the code for it is loaded with the first one."""
    from .cel.policies import compile_cel_policy

    return compile_cel_policy(policy, exceptions, bindings)


def compile_policy(
    policy: Policy, exceptions: tuple[CompiledException, ...] = ()
) -> CompiledPolicy:
    """Compile one policy; raises EngineError for the first part that cannot be compiled."""
    try:
        return CompiledPolicy(
            policy, tuple(compile_rule(policy, rule, exceptions) for rule in expand(policy))
        )
    except EngineError as error:
        if not error.at.file:
            error.at = policy.at
        raise


def _narrowed(compiled: CompiledPolicy, kind: str, rule_type: RuleType) -> CompiledPolicy:
    rules = tuple(
        rule
        for rule in compiled.rules
        if rule.type is rule_type and (rule.matcher.kinds is None or kind in rule.matcher.kinds)
    )
    return CompiledPolicy(compiled.policy, rules)
