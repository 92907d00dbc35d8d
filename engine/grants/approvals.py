"""Whether those who must agree to a grant have agreed: N of M people on each level, never the requester.

Levels are asked in their order only for show; what counts is that each is complete. One person counts on one level only, so
that two levels always mean two people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.record import record
from engine.vocabulary import SERVICE_ACCOUNT

if TYPE_CHECKING:
    from .model import Approvers, Decision, Grant, GrantPolicy


@record
class Standing:
    """How far a request has come: who refused, and how many are missing on each level."""

    denied_by: str
    missing: tuple[int, ...]

    @property
    def is_approved(self) -> bool:
        """Whether every level is complete and nobody refused."""
        return not self.denied_by and not any(self.missing)


def standing(grant: Grant, policy: GrantPolicy) -> Standing:
    """Count the decisions on a grant. One refusal by somebody who could approve refuses it."""
    voters = [one for one in grant.decisions if may_approve(one.by, one.groups, grant, policy)]
    denied = next((one.by for one in voters if one.verdict == "deny"), "")
    agreeing = {one.by: one for one in voters if one.verdict == "approve"}
    return Standing(denied, _missing(list(agreeing.values()), policy.levels))


def may_approve(user: str, groups: frozenset[str], grant: Grant, policy: GrantPolicy) -> bool:
    """Tell whether somebody may approve or refuse: named on a level, not the requester, and a person."""
    return (
        user != grant.requester
        and not user.startswith(SERVICE_ACCOUNT)
        and is_on_a_level(user, groups, policy)
    )


def cannot_decide(
    user: str, groups: frozenset[str], grant: Grant, policy: GrantPolicy | None, verdict: str
) -> str:
    """Return why somebody's approval or refusal of a request would not count, empty where it would.

    A grant policy that is not known is not in the way: the server decides then.
    """
    if user == grant.requester:
        return "an own request"
    if policy is not None and not may_approve(user, groups, grant, policy):
        return f"no approver of grantpolicy/{policy.name}"
    if any(one.by == user and one.verdict == verdict for one in grant.decisions):
        return "decided so already"
    return ""


def is_on_a_level(user: str, groups: frozenset[str], policy: GrantPolicy) -> bool:
    """Tell whether somebody is named among the approvers of a grant policy."""
    return any(_is_on(user, groups, level) for level in policy.levels)


def _is_on(user: str, groups: frozenset[str], level: Approvers) -> bool:
    return user in level.users or not groups.isdisjoint(level.groups)


def _missing(agreeing: list[Decision], levels: tuple[Approvers, ...]) -> tuple[int, ...]:
    """Return what is missing on each level when people are placed so that as few as possible are missing."""
    seats = [number for number, level in enumerate(levels) for _ in range(level.count)]
    taken: dict[int, int] = {}
    for person in range(len(agreeing)):
        _place(person, agreeing, levels, seats, taken, set())
    filled = [seats[seat] for seat in taken]
    return tuple(level.count - filled.count(number) for number, level in enumerate(levels))


def _place(
    person: int,
    agreeing: list[Decision],
    levels: tuple[Approvers, ...],
    seats: list[int],
    taken: dict[int, int],
    tried: set[int],
) -> bool:
    """Give a person a seat on a level, moving others where they have another one (augmenting paths)."""
    vote = agreeing[person]
    for seat, level in enumerate(seats):
        if seat in tried or not _is_on(vote.by, vote.groups, levels[level]):
            continue
        tried.add(seat)
        holder = taken.get(seat)
        if holder is None or _place(holder, agreeing, levels, seats, taken, tried):
            taken[seat] = person
            return True
    return False
