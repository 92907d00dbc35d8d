"""Which policies a server would take: the same checks as at admission, so that a policy refused there decides nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import Location, PolicyError
from engine.evaluate import Problem
from engine.evaluate.policy_set import CLASSIC
from engine.lint import lint_policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Policy

_refusals: dict[int, tuple[Policy, Problem | None]] = {}


def admitted(policies: Iterable[Policy]) -> tuple[tuple[Policy, ...], tuple[Problem, ...]]:
    """Return the policies that pass the checks of policies (rows A-91 to A-94b), and a problem for each of the others.

    A policy is checked once per process, because many test cases name the same files.
    """
    taken, refused = [], []
    for policy in policies:
        problem = _refusal(policy)
        if problem is None:
            taken.append(policy)
        else:
            refused.append(problem)
    return tuple(taken), tuple(refused)


def _refusal(policy: Policy) -> Problem | None:
    known = _refusals.get(id(policy))
    if known is None:
        # INVARIANT: the policy is kept beside its result, so that its id cannot come to mean another one
        known = _refusals[id(policy)] = (policy, _checked(policy))
    return known[1]


def _checked(policy: Policy) -> Problem | None:
    if policy.kind not in CLASSIC:
        return None
    errors = [finding for finding in lint_policy(policy) if finding.severity == "error"]
    if not errors:
        return None
    first, more = errors[0], len(errors) - 1
    return Problem(
        policy,
        PolicyError(
            f"policy `{policy.key}` is refused: {first.message}",
            at=Location(policy.at.file, policy.at.line, first.path),
            help=f"`kubectl kpolicy lint` shows {more} more" if more else "",
        ),
    )
