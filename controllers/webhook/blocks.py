"""The text of a denial and the warnings beside an answer, as upstream words them (rows P-50 and A-16).

People's scripts and tests look for these texts; every byte counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.yaml.write import GO
from engine.model import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.model import Review, RuleResult

_FINE = frozenset({Status.PASS, Status.SKIP})


def refused_message(results: Iterable[RuleResult]) -> str:
    """Return the text of a denial by policies written in CEL, as upstream has it for them."""
    return "; ".join(_said(result) for result in results)


def _said(result: RuleResult) -> str:
    how = "error" if result.status is Status.ERROR else "failed"
    return f"Policy {result.policy.rpartition('/')[2]} {how}: {result.message}"


def blocked_message(review: Review, failures: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of a denial: which object, and by policy and rule why."""
    name = str(review.metadata.get("name") or "")
    lines = [
        "",
        "",
        f"resource {review.kind}/{review.namespace}/{name} was blocked due to the following policies ",
        "",
    ]
    for policy in sorted(failures):
        lines.append(f"{GO.key(policy)}:")
        rules = failures[policy]
        lines += [f"  {GO.key(rule)}: {GO.text(rules[rule], 4)}" for rule in sorted(rules)]
    return "\n".join(lines) + "\n"


def failures_of(
    results: Iterable[RuleResult], policies: frozenset[str]
) -> dict[str, dict[str, str]]:
    """Return messages by policy and rule of everything that is neither pass nor skip in some policies (by key).

    Policies are shown by name. Where a Policy and a ClusterPolicy share one, the rules of both are listed under it.
    """
    found: dict[str, dict[str, str]] = {}
    for result in results:
        if result.identity in policies and result.status not in _FINE:
            name = result.policy.rpartition("/")[2]
            found.setdefault(name, {})[result.rule] = result.message
    return found


def warnings_of(results: Iterable[RuleResult]) -> list[str]:
    """Return one admission warning for each result that is neither pass nor skip."""
    return [
        _said(result)
        if result.is_of_cel
        else f"policy {result.policy.rpartition('/')[2]}.{result.rule}: {result.message}"
        for result in results
        if result.status not in _FINE
    ]


def mutation_error(review: Review, results: Iterable[RuleResult]) -> str:
    """Return what is said when a mutate rule failed and its policy must not be passed over (row W-13)."""
    failed = [result for result in results if result.status not in _FINE]
    if of_cel := [one for one in failed if one.is_of_cel]:
        errors = " ".join(
            f"Policy {one.policy.rpartition('/')[2]}: {one.message}" for one in of_cel
        )
        return (
            f"Resource: {review.namespace}/{review.name}, Kind: {review.kind}, Errors: [{errors}]"
        )
    policy = failed[0].policy.rpartition("/")[2]
    rules = " ".join(
        f"{result.rule}: {result.message}" for result in failed if result.policy == failed[0].policy
    )
    return f"mutation policy {policy} error: failed to apply policy {policy} rules [{rules}]"
