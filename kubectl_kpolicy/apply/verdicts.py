"""A result's status as reports and tests show it (row R-03)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import Policy, RuleResult, RuleType, Status
from engine.vocabulary import SCORED

if TYPE_CHECKING:
    from .processor import PolicyAnswer


def shown_status(policy: Policy, result: RuleResult, *, audit_warn: bool = False) -> Status:
    """Return the status, where fail is warn for a policy that is not scored, or (`audit_warn`) for one that audits."""
    if result.status is not Status.FAIL:
        return result.status
    unscored = str(policy.annotations.get(SCORED, "")).lower() == "false"
    return Status.WARN if unscored or (audit_warn and not result.enforce) else Status.FAIL


# How many results passed, failed, warned, erred and were skipped, and the exit code that follows (row K-03).

_COUNT_AS_FAILURE = {
    "none": (),
    "error": (Status.ERROR,),
    "fail": (Status.FAIL, Status.ERROR),
    "warn": (Status.FAIL, Status.ERROR, Status.WARN),
}
"""The results that end a run with 1, by the lowest one that shall (`--fail-on`)."""


class Counts:
    """Numbers of results by status; `audit_warn` counts failures of rules that only audit as warnings."""

    def __init__(self, *, audit_warn: bool = False) -> None:
        self.audit_warn = audit_warn
        self.numbers = dict.fromkeys(("pass", "fail", "warn", "error", "skip"), 0)
        """By the names that reports have for them."""

    def add(self, answer: PolicyAnswer) -> None:
        """Count the results of one policy on one object; whatever keeps generation from its objects is a failure."""
        for result in answer.results:
            status = shown_status(answer.policy, result, audit_warn=self.audit_warn)
            if answer.type is RuleType.GENERATION and status not in (Status.PASS, Status.SKIP):
                status = Status.FAIL
            self.numbers[status] += 1

    def line(self) -> str:
        """Return Kyverno's last line, which ends in a blank."""
        return ", ".join(f"{name}: {count}" for name, count in self.numbers.items()) + " "

    def exit_code(self, *, fail_on: str, warn_code: int, warn_no_pass: bool) -> int:
        """Return 1 for results at or above `fail_on`; else the code for warnings, or for nothing that passed."""
        if any(self.numbers[status] for status in _COUNT_AS_FAILURE[fail_on]):
            return 1
        if self.numbers[Status.WARN] and warn_code:
            return warn_code
        return (warn_code or 1) if warn_no_pass and not self.numbers[Status.PASS] else 0
