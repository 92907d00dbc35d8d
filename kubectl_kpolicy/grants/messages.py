"""What people read about a grant that they have just made or decided: state, who may approve, until when, what next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.grants.circumstances import state_of
from kubectl_kpolicy.output.diagnostics import visible
from kubectl_kpolicy.output.fields import word

from .requests import who_may_approve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.grants import GrantPolicy
    from engine.model import Object

FORMATS = ("", "json", "yaml", "name")


def requested(obj: Object, policy: GrantPolicy | None, tried: str) -> str:
    """Return the lines about a request; `tried` is how far it went where it was only a dry run."""
    return "\n".join(visible(line) for line in _requested(obj, policy, tried))


def _requested(obj: Object, policy: GrantPolicy | None, tried: str) -> Iterator[str]:
    metadata = obj["metadata"]
    name = metadata.get("name") or f"{metadata.get('generateName', '')}*"
    yield f"grant.kpolicy.io/{name} requested{f' ({tried} dry run)' if tried else ''}"
    yield f"state: {state_of(obj)}"
    if obj["spec"].get("emergency"):
        yield "approval: none needed in an emergency; it is shown as one for ever"
    elif policy is not None:
        yield f"may approve: {' and '.join(who_may_approve(policy)) or 'nobody needs to'} (grantpolicy/{policy.name})"
    deadline = word(obj, "status", "approvalDeadline")
    if deadline:
        yield f"waits until: {deadline}"
    elif policy is not None and policy.levels:
        from engine.grants import length_text

        yield f"waits for: {length_text(policy.approval_for)}"
    if not tried:
        yield f"watch: kubectl kpolicy grant list --where name={name} -n {metadata['namespace']} -w"


def outcome(obj: Object) -> str:
    """Return one line about where a grant stands."""
    status = obj.get("status") or {}
    state = state_of(obj)
    when = f" until {status['expiresAt']}" if state == "active" and status.get("expiresAt") else ""
    why = f": {status['message']}" if status.get("message") else ""
    by = f" by {status['endedBy']}" if status.get("endedBy") else ""
    return visible(f"grant.kpolicy.io/{obj['metadata']['name']} {state}{when}{by}{why}")
