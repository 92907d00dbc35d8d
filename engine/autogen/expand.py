"""Rules for Pods extended to the controllers that make Pods (rows G-01 to G-07).

Generated rules are not written into stored policies; whoever evaluates, reports or shows a policy asks here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.parse import build_rule

from .controllers import (
    ANNOTATION,
    CRON_JOB,
    PREFIX,
    concerns_pods,
    reason_against,
    templated_kinds,
    wanted_controllers,
)
from .rewrite import CRON_TEMPLATE, TEMPLATE, Place, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Policy, Rule

CRON_KINDS = ("batch/v1/CronJob",)


def expand(policy: Policy) -> tuple[Rule, ...]:
    """Return the policy's own rules, then the generated ones.

    Own rules that are named like generated ones give way to them where there are any. Raises LimitError for a rule that
    is nested too deeply.
    """
    generated = generated_rules(policy)
    if not generated:
        return policy.rules
    own = tuple(rule for rule in policy.rules if not rule.name.startswith(PREFIX))
    return own + generated


def generated_rules(policy: Policy) -> tuple[Rule, ...]:
    """Return the rules that a policy's Pod rules give for pod controllers."""
    controllers = wanted_controllers(policy.annotations.get(ANNOTATION))
    if not controllers or reason_against(policy.rules):
        return ()
    return tuple(
        build_rule(raw)
        for rule in policy.rules
        if concerns_pods(rule) and not rule.name.startswith(PREFIX)
        for place, kinds in _places(controllers)
        if (raw := rewrite(rule.raw, place, kinds)) is not None
    )


def _places(controllers: Sequence[str]) -> Iterator[tuple[Place, Sequence[str]]]:
    if kinds := templated_kinds(controllers):
        yield TEMPLATE, kinds
    if CRON_JOB in controllers:
        yield CRON_TEMPLATE, CRON_KINDS
