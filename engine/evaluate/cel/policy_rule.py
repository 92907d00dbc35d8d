"""The one rule that a policy written in CEL comes to, and the specs that autogen makes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from engine.evaluate.rules import CompiledRule, finished
from engine.evaluate.state import Answers, Asked
from engine.model import Block, Policy, Review, Rule, RuleResult, RuleType

from .autogen import variants
from .constraints import Constraints, any_of, compile_constraints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.evaluate.inputs import Inputs
    from engine.evaluate.quick import Quick
    from engine.evaluate.rules import Handler

    Answering = Callable[[Asked], Answers]


class CompiledSpec(Protocol):
    """One compiled spec of a policy: its own, or one that autogen made for `resources`."""

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that it is for; none of the policy's own."""

    @property
    def constraints(self) -> Constraints:
        """Which reviews it concerns."""


_Spec = TypeVar("_Spec", bound=CompiledSpec)


def specs_of(
    policy: Policy, spec: Block
) -> Iterator[tuple[str, Block, Constraints, tuple[str, ...]]]:
    """Yield the policy's own spec and those of autogen, each with its name, its constraints and the resources it is for."""
    made = ((one.name, one.spec, one.resources) for one in variants(spec))
    for name, one, resources in (("", spec, ()), *made):
        constraints = compile_constraints(
            one.get("matchConstraints") or {}, namespace=policy.namespace
        )
        yield name, one, constraints, resources


def with_variants(compiled: Iterable[_Spec]) -> tuple[_Spec, dict[str, _Spec], Constraints]:
    """Return the policy's own spec, those of autogen by resource, and the constraints of all of them."""
    first, *rest = compiled
    others = {name: one for one in rest for name in one.resources}
    return (
        first,
        others,
        any_of(first.constraints, {key: one.constraints for key, one in others.items()}),
    )


def cel_rule(
    policy: Policy,
    name: str,
    matcher: Constraints,
    handle: Handler,
    *,
    type: RuleType = RuleType.VALIDATION,  # noqa: A002 - the name of the field
    enforce: bool,
    usual: Answers | None = None,
    rule: Rule | None = None,
    at_once: Answering | None = None,
) -> CompiledRule:
    """Make the one rule that a policy, or a policy as bound by one binding, comes to.

    `usual` is the very answer of objects that meet the policy: its result is made here, once. `rule` stands in for one that has
    nothing but its name. `at_once` answers as `handle` does, and needs nothing of a rule's state.
    """
    own = rule or Rule(name)
    made = tuple(finished(policy, own.name, type, one, enforce) for one in usual or ())
    return CompiledRule(
        policy=policy,
        rule=own,
        type=type,
        matcher=matcher,
        context=(),
        preconditions=None,
        properties={},
        exceptions=(),
        enforces=lambda _: enforce,
        handle=handle,
        is_plain=True,
        usual=usual,
        usual_results=made,
        quick=_quick(policy, own.name, type, at_once, enforce, usual, made)
        if at_once is not None and not policy.namespace
        else None,
    )


def _quick(
    policy: Policy,
    name: str,
    type_: RuleType,
    at_once: Answering,
    enforce: bool,
    usual: Answers | None,
    usual_results: tuple[RuleResult, ...],
) -> Quick:
    """Return what gives the results of a cluster-wide policy; what those of a namespace ask is confined, by their rules."""

    def quick(review: Review, inputs: Inputs) -> tuple[RuleResult, ...]:
        answers = at_once(Asked(policy, review, inputs))
        if answers is usual:
            return usual_results
        return tuple([finished(policy, name, type_, one, enforce) for one in answers])

    return quick
