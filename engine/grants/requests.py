"""Whether somebody may ask for a grant as it is written, and if not, which limit says so and what would be possible.

Asked by the webhook when a Grant is created, by the controller before it becomes pending, and by `grant request` and the
wizard before anything is written, so that people learn the limits from the form and not from a refusal.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.lang import regex, wildcard
from engine.model.kinds import is_of_cel
from engine.record import record

from .model import Grant, GrantPolicy, length_text
from .subjects import ALL_RULES, Refusal, names_of, rules_of, subject_refusals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime

_AT_ONCE: Final = timedelta(minutes=1)
"""How far the clock of whoever asks may be ahead of ours."""
_MOST_AHEAD: Final = timedelta(days=366)
_MOST_EXTENDED: Final = 100 * _MOST_AHEAD
"""What follows another grant begins with the end of that."""


@record
class Circumstances:
    """What counts beside the request: the requester's open grants, and when the last one like it ended."""

    now: datetime
    open_grants: int = 0
    last_end_at: datetime | None = None


def chosen_policy(
    grant: Grant, policies: Iterable[GrantPolicy], circumstances: Circumstances
) -> tuple[GrantPolicy | None, tuple[Refusal, ...]]:
    """Return the first grant policy by name that allows the request, or the refusals of the one that is nearest to it."""
    about = [one for one in policies if _concerns(one, grant)]
    return nearest(about, lambda one: refusals(grant, one, circumstances), (_nobody(grant),))


def nearest(
    about: Iterable[GrantPolicy],
    refusals_of: Callable[[GrantPolicy], tuple[Refusal, ...]],
    nobody: tuple[Refusal, ...],
) -> tuple[GrantPolicy | None, tuple[Refusal, ...]]:
    """Return of grant policies the first by name that refuses nothing, else the one that refuses least; none says `nobody`."""
    judged = [(one, refusals_of(one)) for one in sorted(about, key=lambda one: one.name)]
    return min(judged, key=lambda one: len(one[1]), default=(None, nobody))


def refusals(
    grant: Grant, policy: GrantPolicy, circumstances: Circumstances
) -> tuple[Refusal, ...]:
    """Return everything that a grant policy has against a request; nothing means that it may be made."""
    return (
        *subject_refusals(grant),
        *_length(grant, policy),
        *_breadth(grant, policy),
        *_start(grant, circumstances.now),
        *_words(grant, policy),
        *_limits(grant, policy, circumstances),
    )


def outgrown(grant: Grant, policy: GrantPolicy) -> tuple[Refusal, ...]:
    """Return what a grant policy as it is now has against a request that it let be made: what it reaches, and for how long."""
    if not _concerns(policy, grant):
        return (_nobody(grant),)
    return (*_length(grant, policy), *_breadth(grant, policy))


def _nobody(grant: Grant) -> Refusal:
    return Refusal(
        f"no grant policy lets `{grant.requester}` ask for `{grant.policy}` in namespace `{grant.namespace}`",
        "`kubectl kpolicy whoami` shows what you may ask for",
    )


def covers(policy: GrantPolicy, of: str, rules: Iterable[str], namespace: str) -> bool:
    """Tell whether a grant policy is about some rules of a policy, by its identity, in a namespace, whoever asks."""
    return (
        any(_matches(policy.policies, name) for name in names_of(of))
        and all(_matches(policy.rules, rule) for rule in rules_of(of, rules))
        and _matches(policy.namespaces, namespace)
    )


def lets_ask(policy: GrantPolicy, user: str, groups: frozenset[str]) -> bool:
    """Tell whether somebody is among those who may ask under a grant policy."""
    everybody = not policy.users and not policy.groups
    return everybody or user in policy.users or not groups.isdisjoint(policy.groups)


def concerns(policy: GrantPolicy, user: str, groups: frozenset[str] | None) -> bool:
    """Tell whether somebody may be among those who may ask; groups that are not known may be the right ones."""
    unknown = groups is None and bool(policy.groups)
    return unknown or lets_ask(policy, user, groups or frozenset())


def _concerns(policy: GrantPolicy, grant: Grant) -> bool:
    about = covers(policy, grant.policy, grant.rules, grant.namespace)
    return about and lets_ask(policy, grant.requester, grant.requester_groups)


def longest_of(grant: Grant, policies: Iterable[GrantPolicy]) -> timedelta | None:
    """Return the longest that any grant policy about a request lets it be; None where there is none about it."""
    found = [_longest(grant, one) for one in policies if _concerns(one, grant)]
    return max(found, default=None)


def _longest(grant: Grant, policy: GrantPolicy) -> timedelta:
    if grant.emergency and policy.emergency_for is not None:
        return min(policy.max_for, policy.emergency_for)
    return policy.max_for


def _matches(patterns: Iterable[str], text: str) -> bool:
    return any(wildcard.match(pattern, text) for pattern in patterns)


def _length(grant: Grant, policy: GrantPolicy) -> Iterator[Refusal]:
    if grant.emergency and policy.emergency_for is None:
        yield Refusal(f"grantpolicy/{policy.name} has no emergency path", "ask without --emergency")
        return
    most = _longest(grant, policy)
    if grant.for_ > most:
        text = length_text(most)
        kind = "emergency maximum" if grant.emergency else "maximum"
        yield Refusal(
            f"duration {length_text(grant.for_)} exceeds {kind} {text} of grantpolicy/{policy.name}",
            f"try --for {text}",
        )


def _start(grant: Grant, now: datetime) -> Iterator[Refusal]:
    """Yield what speaks against the instant: nothing that nobody has to agree to is laid in for later."""
    ahead = grant.start_at - now if grant.start_at is not None else timedelta()
    if grant.emergency and ahead > _AT_ONCE:
        yield Refusal("an emergency begins at once", "ask without a start, or without --emergency")
    elif ahead > (most := _MOST_EXTENDED if grant.extends else _MOST_AHEAD):
        text = length_text(most)
        yield Refusal(f"it begins more than {text} from now", "ask for it nearer to its time")


def _words(grant: Grant, policy: GrantPolicy) -> Iterator[Refusal]:
    given = len(grant.reason.strip())
    if given < policy.min_reason:
        yield Refusal(
            f"the reason has {given} characters, grantpolicy/{policy.name} asks for {policy.min_reason}",
            "say in --reason why the rule cannot hold",
        )
    if policy.ticket and not _is_ticket(policy.ticket, grant.ticket):
        yield Refusal(
            f"ticket `{grant.ticket}` is not of the form `{policy.ticket}` of grantpolicy/{policy.name}",
            "name one with --ticket",
        )


def _is_ticket(pattern: str, text: str) -> bool:
    try:
        return regex.compile(f"^(?:{pattern})$").search(text)
    except EvaluationError:
        return False


def is_wide(grant: Grant) -> bool:
    """Tell whether a grant can reach more than one object by its name.

    A selector does whatever it says, because labels are for whoever may write objects to set; so does a kind of any group or
    with any subresource.
    """
    is_named = bool(grant.kind.strip()) and bool(grant.target.strip())
    return not is_named or grant.selector is not None or _has_wildcard(grant.kind, grant.target)


def _has_wildcard(*texts: str) -> bool:
    return any(map(wildcard.has_wildcard, texts))


def _breadth(grant: Grant, policy: GrantPolicy) -> Iterator[Refusal]:
    if policy.wildcards:
        return
    rules = () if is_of_cel(grant.policy) else grant.rules or ALL_RULES
    if is_wide(grant) or _has_wildcard(grant.policy, *rules):
        yield Refusal(
            f"grantpolicy/{policy.name} allows no wildcards in kind, name or rule, and no selector",
            "name rule and object, as POLICY/RULE Deployment/web",
        )


def _limits(grant: Grant, policy: GrantPolicy, circumstances: Circumstances) -> Iterator[Refusal]:
    if policy.max_open and circumstances.open_grants >= policy.max_open:
        yield Refusal(
            f"`{grant.requester}` has {circumstances.open_grants} open grants, the limit of grantpolicy/{policy.name} "
            f"is {policy.max_open}",
            "withdraw or drop one first",
        )
    if policy.max_uses and not 0 < grant.uses <= policy.max_uses:
        yield Refusal(
            f"{grant.uses or 'unlimited'} uses exceed the {policy.max_uses} of grantpolicy/{policy.name}",
            f"try --uses {policy.max_uses}",
        )
    ended = circumstances.last_end_at
    if ended is not None and circumstances.now < ended + policy.cool_down_for:
        left = ended + policy.cool_down_for - circumstances.now
        yield Refusal(
            f"the last such grant ended less than {length_text(policy.cool_down_for)} ago",
            f"ask again in {length_text(left)}",
        )
