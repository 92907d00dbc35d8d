"""What becomes of a grant, and what people read about it: what was made or decided, and waiting until it is active or has ended."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Final, cast

from controllers.kube.errors import Gone, NotFound
from controllers.kube.kinds import GRANTS
from engine.fields import word
from engine.grants import FINAL
from engine.grants.circumstances import state_of
from kubectl_kpolicy.output.diagnostics import visible
from kubectl_kpolicy.session.errors import TimedOut

from .requests import who_may_approve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from controllers.kube import Client
    from controllers.kube.client import Event
    from engine.grants import GrantPolicy
    from engine.model import Object


SETTLED: Final = frozenset({"active", *FINAL})
ENDS: Final = {"approve": SETTLED, "deny": FINAL, "withdraw": FINAL, "drop": FINAL, "revoke": FINAL}
"""States in which there is nothing more to wait for after a decision."""


async def settled(
    client: Client,
    obj: Object,
    seconds: float | None,
    changed: Callable[[str], None] = lambda _state: None,
    ends: frozenset[str] = SETTLED,
) -> Object:
    """Return a grant once it is active or has ended, or is in one of `ends`; `changed` is told each state.

    Raises TimedOut, NotFound, KubeError.
    """
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    told = ""
    try:
        async with asyncio.timeout(seconds), aclosing(_versions(client, namespace, name)) as found:
            async for one in found:
                state = state_of(one)
                if state != told:
                    changed(state)
                    told = state
                if state in ends:
                    return one
    except TimeoutError as error:
        text = f"grant `{name}` was not settled in time; nothing of it is lost"
        raise TimedOut(text, help=f"kubectl get grants {name} -n {namespace} -w") from error
    raise AssertionError("versions have no end")


async def _versions(client: Client, namespace: str, name: str) -> AsyncGenerator[Object]:
    """Yield a grant as it is, and as it becomes; read anew wherever the server ends the watch. Raises NotFound, KubeError."""
    only = f"metadata.name={name}"
    while True:
        obj = await client.get(GRANTS, name, namespace)
        yield obj
        version = str(obj["metadata"].get("resourceVersion") or "")
        events = client.watch(GRANTS, version, namespace=namespace, field_selector=only)
        with suppress(Gone):
            async with aclosing(cast("AsyncGenerator[Event]", events)):
                async for event in events:
                    if event.type == "DELETED":
                        raise NotFound(f"grant `{name}` was deleted", status=404)
                    if event.type != "BOOKMARK":
                        yield event.object


# What people read about a grant that they have just made or decided: state, who may approve, until when, what next.


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
