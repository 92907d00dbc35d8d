"""A request for an exception: the Grant object it becomes, what speaks against it, and handing it in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from controllers.kube.errors import Forbidden, NotFound
from controllers.kube.kinds import GRANT_POLICIES, GRANTS
from engine.grants import GrantPolicy, chosen_policy, length_of, parse_grant
from engine.grants.circumstances import circumstances_of, readable_policies
from engine.lang import rfc3339
from engine.record import record
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.errors import admission, refused_by

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from controllers.kube import Client
    from engine.errors import EngineError
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity

_SLUG_LENGTH = 50


def duration_of(text: str) -> timedelta:
    """Return the length that `--for` names; raises Misuse."""
    found = length_of(text)
    if found is None:
        raise Misuse(f"`{text}` is no length of time", help="write --for 4h, 90m or 2d")
    return found


@record
class Ask:
    """What is asked for, in words that were read: lengths and instants as the API stores them."""

    policy: str
    rules: tuple[str, ...]
    kind: str
    name: str
    namespace: str
    length: str
    reason: str
    selector: Object | None = None
    ticket: str = ""
    start: str = ""
    uses: int = 0
    idle: str = ""
    approvers: tuple[str, ...] = ()
    emergency: bool = False
    extends: str = ""
    block: str = ""


def manifest(ask: Ask, who: Identity) -> Object:
    """Return the Grant object of a request by somebody."""
    target: Object = {"kind": ask.kind}
    if ask.name:
        target["name"] = ask.name
    if ask.selector:
        target["selector"] = ask.selector
    spec: Object = {
        "requester": who.user,
        "requesterGroups": list(who.groups),
        "policy": ask.policy,
        "rules": list(ask.rules),
        "target": target,
        "duration": ask.length,
        "reason": ask.reason,
        "ticket": ask.ticket,
        "startAt": ask.start,
        "uses": ask.uses,
        "idle": ask.idle,
        "approvers": list(ask.approvers),
        "emergency": ask.emergency,
        "extends": ask.extends,
        "block": ask.block,
    }
    return {
        "apiVersion": GRANTS.api_version,
        "kind": GRANTS.kind,
        "metadata": {"generateName": f"{_slug(ask)}-", "namespace": ask.namespace},
        "spec": {key: value for key, value in spec.items() if value},
    }


def _slug(ask: Ask) -> str:
    words = f"{ask.name or ask.kind}-{ask.policy}".lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:_SLUG_LENGTH].strip("-") or "grant"


async def judge(client: Client, obj: Object, now: datetime) -> GrantPolicy | None:
    """Return the grant policy that lets a request be made; raises Refused where limits speak against it.

    None where the limits cannot be read: then the server judges alone.
    """
    try:
        page = await client.list_all(GRANT_POLICIES)
        grants = (await client.list_all(GRANTS, obj["metadata"]["namespace"])).items
    except Forbidden:
        return None
    except NotFound as error:
        raise _no_kinds() from error
    grant = parse_grant(obj)
    policies, _ = readable_policies(page.items)
    policy, refusals = chosen_policy(grant, policies, circumstances_of(grant, grants, now))
    if refusals:
        raise refused_by(refusals)
    return policy


async def hand_in(client: Client, obj: Object, *, dry_run: bool = False) -> Object:
    """Create a Grant and return it as stored; raises Refused and KubeError."""
    try:
        with admission():
            return await client.create(GRANTS, obj, dry_run=dry_run)
    except NotFound as error:
        raise _no_kinds() if error.details.get("kind") != "namespaces" else error from error


def _no_kinds() -> EngineError:
    return NotFound(
        "the cluster has no grants",
        status=404,
        help="kubectl kpolicy install --crds-only | kubectl apply -f - ; and run kpolicy's controllers",
    )


@record
class Longer:
    """What the successor of a grant is asked for with."""

    length: str
    reason: str
    ticket: str = ""


async def successor(client: Client, place: tuple[str, str], who: Identity, ask: Longer, now: datetime) -> Object:  # fmt: skip
    """Return the request that follows the grant at (namespace, name); `ask` says length, reason and ticket.

    The successor starts where the grant ends, or now where it has ended: a grant that is there is never lengthened.
    """
    namespace, name = place
    obj = await client.get(GRANTS, name, namespace)
    earlier, spec = parse_grant(obj), obj["spec"]
    duration_of(ask.length)
    ends = rfc3339.read(str(earlier.status.get("expiresAt") or ""))
    made = Ask(
        policy=earlier.policy,
        rules=earlier.rules,
        kind=earlier.kind,
        name=earlier.target,
        namespace=namespace,
        length=ask.length,
        reason=ask.reason,
        selector=spec["target"].get("selector"),
        ticket=ask.ticket or earlier.ticket,
        start=str(earlier.status["expiresAt"]) if ends and ends > now else "",
        uses=earlier.uses,
        idle=str(spec.get("idle") or ""),
        extends=name,
    )
    return manifest(made, who)


def who_may_approve(policy: GrantPolicy) -> list[str]:
    """Return one text for each level of approval: how many of whom."""
    return [
        f"{level.count} of {', '.join([*sorted(level.users), *(f'group {name}' for name in sorted(level.groups))])}"
        for level in policy.levels
    ]
