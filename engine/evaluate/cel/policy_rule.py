"""The one rule that a policy written in CEL comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluate.rules import CompiledRule, finished
from engine.evaluate.state import Asked
from engine.model import Rule, RuleType

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.evaluate.answers import Answers
    from engine.evaluate.inputs import Inputs
    from engine.evaluate.quick import Quick
    from engine.evaluate.rules import Handler
    from engine.model import Policy, Review, RuleResult

    from .constraints import Constraints

    Answering = Callable[[Asked], Answers]


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
