"""The one rule that a policy written in CEL comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.evaluate.rules import CompiledRule
from engine.model import Rule, RuleResult, RuleType

if TYPE_CHECKING:
    from engine.evaluate.answers import Answers
    from engine.evaluate.rules import Handler
    from engine.model import Policy

    from .constraints import Constraints


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
) -> CompiledRule:
    """Make the one rule that a policy, or a policy as bound by one binding, comes to.

    `usual` is the very answer of objects that meet the policy: its result is made here, once. `rule` stands in for one that has
    nothing but its name.
    """
    outcome = usual[0].outcome if usual else None
    made = (
        (
            RuleResult(
                policy.key,
                name,
                type,
                outcome.status,
                outcome.message,
                enforce=enforce,
                policy_kind=policy.kind,
            ),
        )
        if outcome
        else ()
    )
    return CompiledRule(
        policy=policy,
        rule=rule or Rule(name),
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
    )
