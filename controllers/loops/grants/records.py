"""What the audit trail says about grants: one record for each decision of a person and each change of state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.grants.subjects import subject_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from engine.grants import Grant, GrantStatus

CONTROLLER = "kpolicy"


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
    return {
        "id": f"{grant.uid}/{verb}/{number}",
        "time": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "actor": actor,
        "verb": verb,
        "object": {"kind": "Grant", "namespace": grant.namespace, "name": grant.name},
        "policy": subject_text(grant.policy, grant.rules),
        "result": result,
        "reason": reason,
    }
