"""What is told about grants: each state, once, and the end before it comes (20 % of the time and five minutes ahead)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import GRANTS
from engine.grants.spans import length_text
from engine.grants.subjects import subject_text

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.loops.notices import Notices
    from engine.grants import Grant, GrantStatus

REASONS: Final = {
    "pending": "GrantPending",
    "scheduled": "GrantScheduled",
    "active": "GrantActive",
    "expired": "GrantExpired",
    "revoked": "GrantRevoked",
    "dropped": "GrantDropped",
    "idle-expired": "GrantExpired",
    "exhausted": "GrantExhausted",
    "denied": "GrantDenied",
    "withdrawn": "GrantWithdrawn",
    "timed-out": "GrantTimedOut",
}
EXPIRING: Final = "GrantExpiring"


def tell_state(notices: Notices, grant: Grant, status: GrantStatus) -> None:
    """Tell that a grant has come into a state."""
    reason = REASONS.get(status.state)
    if reason is not None:
        by = f" by {status.ended_by}" if status.ended_by else ""
        why = f": {status.message}" if status.message else ""
        message = f"{_what(grant)}, asked for by {grant.requester}, is {status.state}{by}{why}"
        notices.tell(reason, _about(grant), message, **_fields(grant, status))


def tell_expiring(notices: Notices, grant: Grant, status: GrantStatus, now: datetime) -> None:
    """Tell that a grant ends soon."""
    if status.expires_at is None:
        return
    message = f"{_what(grant)}, asked for by {grant.requester}, ends in {length_text(status.expires_at - now)}"
    notices.tell(EXPIRING, _about(grant), message, **_fields(grant, status))


def _what(grant: Grant) -> str:
    target = f"{grant.kind}/{grant.target}" if grant.target else grant.kind
    return f"exception from {subject_text(grant.policy, grant.rules)} for {target}"


def _about(grant: Grant) -> dict[str, str]:
    return {
        "apiVersion": GRANTS.api_version,
        "kind": GRANTS.kind,
        "name": grant.name,
        "namespace": grant.namespace,
        "uid": grant.uid,
    }


def _fields(grant: Grant, status: GrantStatus) -> dict[str, Any]:
    return {
        "state": status.state,
        "requester": grant.requester,
        "policy": grant.policy,
        "rules": list(grant.rules),
        "expiresAt": status.fields().get("expiresAt", ""),
        "ticket": grant.ticket,
        "emergency": grant.emergency,
    }
