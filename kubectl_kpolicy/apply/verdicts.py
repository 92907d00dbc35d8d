"""A result's status as reports and tests show it (row R-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import Status

if TYPE_CHECKING:
    from engine.model import Policy, RuleResult

SCORED = "policies.kyverno.io/scored"


def shown_status(policy: Policy, result: RuleResult, *, audit_warn: bool = False) -> Status:
    """Return the status, where fail is warn for a policy that is not scored, or (`audit_warn`) for one that audits."""
    if result.status is not Status.FAIL:
        return result.status
    unscored = str(policy.annotations.get(SCORED, "")).lower() == "false"
    return Status.WARN if unscored or (audit_warn and not result.enforce) else Status.FAIL
