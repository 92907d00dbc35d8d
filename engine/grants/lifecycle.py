"""The state of a grant at an instant: one pure table, which the controller writes down and everybody else can recompute.

    draft -> pending -> (scheduled) -> active -> expired | revoked | dropped | idle-expired | exhausted
                  -> denied | withdrawn | timed-out

INVARIANT: final states stay, whatever clocks and decisions say later, and instants that are once set are never changed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from engine.lang import rfc3339
from engine.record import record, replace

from .approvals import standing
from .requests import outgrown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import Grant, GrantPolicy
    from .subjects import Refusal

FINAL: Final = frozenset(
    {"expired", "revoked", "dropped", "idle-expired", "exhausted", "denied", "withdrawn", "timed-out"}
)  # fmt: skip
SETTLING: Final = timedelta(seconds=5)
"""How long the exception outlives its last use, because the API server may run one update several times (A3). No further
request passes by it in that time, since each has to take a use of its own."""
_LAST_WARNING: Final = timedelta(minutes=5)
OPEN: Final = frozenset({"pending", "scheduled", "active"})
STATES: Final = frozenset({"draft", *OPEN, *FINAL})
DECIDABLE: Final = {
    "approve": ("draft", "pending"),
    "deny": ("draft", "pending"),
    "withdraw": ("draft", "pending", "scheduled"),
    "drop": ("scheduled", "active"),
    "revoke": ("scheduled", "active"),
    "comment": ("draft", "pending", "scheduled", "active"),
}
"""States in which a decision takes effect, at once or with the next state."""


def ending(state: str, *, is_own: bool) -> str:
    """Return the verdict that ends a grant: one's own is withdrawn or dropped, somebody else's denied or revoked."""
    early, late = ("withdraw", "drop") if is_own else ("deny", "revoke")
    return early if state in DECIDABLE[early] else late


@record
class GrantStatus:
    """What the controller writes under `status`; instants are None until they are settled."""

    state: str = "draft"
    approval_ends_at: datetime | None = None
    starts_at: datetime | None = None
    expires_at: datetime | None = None
    ended_at: datetime | None = None
    ended_by: str = ""
    message: str = ""

    @property
    def is_final(self) -> bool:
        """Whether nothing can follow."""
        return self.state in FINAL

    def fields(self) -> dict[str, str]:
        """Return the status as the API stores it."""
        given = {
            "state": self.state,
            "approvalDeadline": _text(self.approval_ends_at),
            "startsAt": _text(self.starts_at),
            "expiresAt": _text(self.expires_at),
            "endedAt": _text(self.ended_at),
            "endedBy": self.ended_by,
            "message": self.message,
        }
        return {key: value for key, value in given.items() if value}


@record
class Facts:
    """What counts beside the grant itself: the instant, uses of its exception, refusals of the request."""

    now: datetime
    uses: int = 0
    last_used_at: datetime | None = None
    refusals: tuple[Refusal, ...] = ()


def status_of(grant: Grant) -> GrantStatus:
    """Return the status that is written down so far."""
    stored: Mapping[str, Any] = grant.status
    return GrantStatus(
        state=str(stored.get("state") or "draft"),
        approval_ends_at=_instant(stored, "approvalDeadline"),
        starts_at=_instant(stored, "startsAt"),
        expires_at=_instant(stored, "expiresAt"),
        ended_at=_instant(stored, "endedAt"),
        ended_by=str(stored.get("endedBy", "")),
        message=str(stored.get("message", "")),
    )


def next_status(grant: Grant, policy: GrantPolicy | None, facts: Facts) -> GrantStatus:
    """Return the status at `facts.now`; the same one where nothing changes. `policy` is the one that the request falls under."""
    status = status_of(grant)
    for _ in range(len(_STEPS)):
        if status.is_final or status.state not in _STEPS:
            break
        following = _STEPS[status.state](grant, policy, facts, status)
        if following.state == status.state:
            return following
        status = following
    return status


def _draft(
    grant: Grant, policy: GrantPolicy | None, facts: Facts, status: GrantStatus
) -> GrantStatus:
    if policy is None or facts.refusals:
        why = "; ".join(map(str, facts.refusals)) or "refused: no grant policy fits"
        return _end(status, "denied", facts.now, "kpolicy", why)
    asked_at = grant.created_at or facts.now
    return replace(status, state="pending", approval_ends_at=asked_at + policy.approval_for)


def _pending(
    grant: Grant, policy: GrantPolicy | None, facts: Facts, status: GrantStatus
) -> GrantStatus:
    if ended := _ended_by_hand(grant, facts, status, {"withdraw": "withdrawn"}):
        return ended
    if status.approval_ends_at is not None and facts.now >= status.approval_ends_at:
        return _end(
            status, "timed-out", status.approval_ends_at, "kpolicy", "nobody decided in time"
        )
    if policy is None:
        return _end(status, "denied", facts.now, "kpolicy", "its grant policy is gone")
    votes = standing(grant, policy)
    if votes.denied_by:
        return _end(status, "denied", facts.now, votes.denied_by, "")
    if not (votes.is_approved or grant.emergency):
        return status
    if refused := outgrown(grant, policy):
        return _end(status, "denied", facts.now, "kpolicy", "; ".join(map(str, refused)))
    # Whole seconds, because that is what the API stores and everybody recomputes from.
    starts_at = max(facts.now, grant.start_at or facts.now).replace(microsecond=0)
    return replace(
        status, state="scheduled", starts_at=starts_at, expires_at=starts_at + grant.for_
    )


def _scheduled(
    grant: Grant, _: GrantPolicy | None, facts: Facts, status: GrantStatus
) -> GrantStatus:
    by_hand = {"withdraw": "withdrawn", "drop": "dropped", "revoke": "revoked"}
    if ended := _ended_by_hand(grant, facts, status, by_hand):
        return ended
    due = status.starts_at is not None and facts.now >= status.starts_at
    return replace(status, state="active") if due else status


def _active(grant: Grant, _: GrantPolicy | None, facts: Facts, status: GrantStatus) -> GrantStatus:
    if status.expires_at is None or facts.now >= status.expires_at:
        return _end(status, "expired", status.expires_at or facts.now, "kpolicy", "")
    if ended := _ended_by_hand(grant, facts, status, {"drop": "dropped", "revoke": "revoked"}):
        return ended
    exhausted_at = exhaustion_of(grant, facts)
    if exhausted_at is not None and facts.now >= exhausted_at:
        return _end(status, "exhausted", facts.now, "kpolicy", f"used {facts.uses} times")
    ends_idle_at = idle_at(grant, facts, status)
    if ends_idle_at is not None and facts.now >= ends_idle_at:
        return _end(status, "idle-expired", ends_idle_at, "kpolicy", "not used for too long")
    return status


_STEPS: Final = {"draft": _draft, "pending": _pending, "scheduled": _scheduled, "active": _active}


def exhaustion_of(grant: Grant, facts: Facts) -> datetime | None:
    """Return when a grant whose uses are all taken ends: once the request with the last one is over."""
    if not grant.uses or facts.uses < grant.uses:
        return None
    return facts.last_used_at + SETTLING if facts.last_used_at is not None else facts.now


def warnings_of(status: GrantStatus) -> list[datetime]:
    """Return when people are told that an active grant ends soon: with a fifth of its time left, and five minutes ahead."""
    if status.starts_at is None or status.expires_at is None:
        return []
    length = status.expires_at - status.starts_at
    ahead = (length / 5, _LAST_WARNING)
    found = {(status.expires_at - one).replace(microsecond=0) for one in ahead if one < length}
    return sorted(found)


def idle_at(grant: Grant, facts: Facts, status: GrantStatus) -> datetime | None:
    """Return when a grant that nobody uses any more ends, None for one that may rest."""
    since = facts.last_used_at or status.starts_at
    return since + grant.idle_for if since is not None and grant.idle_for else None


def _ended_by_hand(
    grant: Grant, facts: Facts, status: GrantStatus, states: Mapping[str, str]
) -> GrantStatus | None:
    """End a grant on the first decision that can: requesters withdraw and drop their own, others revoke."""
    for one in grant.decisions:
        own = one.by == grant.requester
        if one.verdict in states and own is (one.verdict != "revoke"):
            return _end(status, states[one.verdict], facts.now, one.by, one.comment)
    return None


def _end(status: GrantStatus, state: str, at: datetime, by: str, message: str) -> GrantStatus:
    return replace(status, state=state, ended_at=at, ended_by=by, message=message)


def _instant(stored: Mapping[str, Any], key: str) -> datetime | None:
    value = stored.get(key)
    return rfc3339.read(value) if isinstance(value, str) else None


def _text(at: datetime | None) -> str:
    return rfc3339.write(at) if at is not None else ""
