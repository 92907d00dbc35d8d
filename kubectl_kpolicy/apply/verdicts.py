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


class Counts:
    """Numbers of results by status; `audit_warn` counts failures of rules that only audit as warnings."""

    __slots__ = ("audit_warn", "erred", "failed", "passed", "skipped", "warned")

    def __init__(self, *, audit_warn: bool = False) -> None:
        self.audit_warn = audit_warn
        self.passed = self.failed = self.warned = self.erred = self.skipped = 0

    def add(self, answer: PolicyAnswer) -> None:
        """Count the results of one policy on one object."""
        for result in answer.results:
            status = result.status
            if status is Status.PASS:
                self.passed += 1
            elif status is Status.SKIP:
                self.skipped += 1
            elif answer.type is RuleType.GENERATION:
                self.failed += 1
            else:
                self._add_bad(shown_status(answer.policy, result, audit_warn=self.audit_warn))

    def _add_bad(self, status: Status) -> None:
        if status is Status.FAIL:
            self.failed += 1
        elif status is Status.WARN:
            self.warned += 1
        else:
            self.erred += 1

    def line(self) -> str:
        """Return Kyverno's last line, which ends in a blank."""
        return (
            f"pass: {self.passed}, fail: {self.failed}, warn: {self.warned}, "
            f"error: {self.erred}, skip: {self.skipped} "
        )

    def as_map(self) -> dict[str, int]:
        """Return the numbers as reports name them."""
        return {
            "pass": self.passed,
            "fail": self.failed,
            "warn": self.warned,
            "error": self.erred,
            "skip": self.skipped,
        }

    def exit_code(self, *, fail_on: str, warn_code: int, warn_no_pass: bool) -> int:
        """Return 1 for results at or above `fail_on`; else the code for warnings, or for nothing that passed."""
        if self._is_bad(fail_on):
            return 1
        if self.warned and warn_code:
            return warn_code
        return (warn_code or 1) if warn_no_pass and not self.passed else 0

    def _is_bad(self, fail_on: str) -> bool:
        match fail_on:
            case "none":
                return False
            case "error":
                return self.erred > 0
            case "warn":
                return self.failed + self.erred + self.warned > 0
            case _:
                return self.failed + self.erred > 0
