"""What the audit trail says about grants: one record for each decision of a person and each change of state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from controllers.kube.kinds import GRANTS
from controllers.store.audit import CONTROLLER, audit_entry
from controllers.store.grants import GRANT_UID
from controllers.store.uses import UNPROVEN
from engine.grants.model import length_text
from engine.grants.subjects import subject_text
from engine.lang import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from controllers.kube.store import Change
    from controllers.loops.notices import Notices
    from engine.grants import Grant, GrantStatus
    from engine.model import Object


def records_of(grant: Grant, status: GrantStatus, now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the records that the trail has to hold before `status` is written; their ids are the same each time."""
    yield _record(grant, "request", 0, grant.requester, "ok", grant.reason, now)
    for number, one in enumerate(grant.decisions, 1):
        result = "denied" if one.verdict == "deny" else "ok"
        yield _record(grant, one.verdict, number, one.by, result, one.comment, now)
    if status.state != "pending":
        by = status.ended_by or CONTROLLER
        yield _record(grant, status.state, 0, by, "ok", status.message, now)


def _record(
    grant: Grant, verb: str, number: int, actor: str, result: str, reason: str, now: datetime
) -> dict[str, Any]:
    key, policy = f"{grant.uid}/{verb}/{number}", subject_text(grant.policy, grant.rules)
    at, about = rfc3339.write(now), _about(grant)
    return audit_entry(key, at, actor, verb, about, policy=policy, result=result, reason=reason)


# How often each grant was used, as far as records tell.
#
# Of limited grants from the records of their uses, of others from what the webhooks have added up in their status.


class Uses:
    """Follows the records of uses of grants."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, datetime | None]] = {}

    def note(self, change: Change) -> tuple[str, str] | None:
        """Take over a record that came or went; return (namespace, name) of the grant that it is about, if any."""
        use = change.new or change.old
        uid = _uid(use) if use is not None else ""
        if use is None or not uid:
            return None
        if change.new is None:
            # A record that was pruned is still a use: the status keeps the number.
            return None
        spec = use.get("spec") or {}
        state = (use.get("status") or {}).get("state")
        if spec.get(UNPROVEN) and state != "Confirmed":
            # a reservation is no use yet, and may be given back
            self._known.get(uid, {}).pop(use["metadata"]["name"], None)
            return None
        at = rfc3339.read(str(spec.get("usedAt") or ""))
        self._known.setdefault(uid, {})[use["metadata"]["name"]] = at
        namespace, _, name = str(spec.get("grant") or "").rpartition("/")
        return namespace, name

    def of(self, grant: Grant) -> tuple[int, datetime | None]:
        """Return how often a grant was used, and when for the last time."""
        written = grant.status.get("uses")
        uses = written if type(written) is int else 0
        last = rfc3339.read(str(grant.status.get("lastUsedAt") or ""))
        known = self._known.get(grant.uid)
        if not grant.uses or known is None:
            return uses, last
        instants = [at for at in (*known.values(), last) if at is not None]
        return max(uses, len(known)), max(instants, default=None)

    def forget(self, uid: str) -> None:
        """Forget the records of a grant that is gone."""
        self._known.pop(uid, None)


def _uid(use: Object) -> str:
    labels = (use.get("metadata") or {}).get("labels") or {}
    return str(labels.get(GRANT_UID) or "")


# What is told about grants: each state, once, and the end before it comes (20 % of the time and five minutes ahead).

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
