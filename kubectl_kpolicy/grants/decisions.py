"""Decisions about grants: approve, deny, withdraw, drop, revoke, each added under one's own name and nothing else changed.

A comment is kept among them, because nobody can change or forge what stands there, and decides nothing.

Somebody else's decision made at the same time is no conflict for anybody: the grant is read again, and what speaks against
the decision is asked again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.errors import Conflict
from controllers.kube.kinds import GRANT_POLICIES, GRANTS
from engine.errors import EngineError
from engine.grants import FINAL, Grant, GrantPolicy, cannot_decide, parse_grant, parse_grant_policy
from engine.grants.circumstances import state_of
from engine.grants.lifecycle import DECIDABLE, ending
from kubectl_kpolicy.session.errors import Over, Refused, admission

from .requests import who_may_approve

if TYPE_CHECKING:
    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.session.identity import Identity

_TRIES = 4
_OWN: Final = ("withdraw", "drop")


async def decide(
    client: Client,
    place: tuple[str, str],
    verdict: str,
    who: Identity,
    comment: str = "",
    *,
    dry_run: bool = False,
) -> Object:
    """Add a decision to the grant at (namespace, name) and return it as stored.

    Raises Refused where it is not this person's to make, Over where the grant has ended, Conflict where others keep
    changing it, and KubeError.
    """
    namespace, name = place
    for attempt in range(_TRIES):
        obj = await checked(client, place, verdict, who)
        patch = _patch(obj, verdict, who, comment)
        try:
            with admission():
                return await client.patch(GRANTS, name, namespace, patch, dry_run=dry_run)
        except Conflict:
            if attempt == _TRIES - 1:
                raise
    raise AssertionError


async def checked(client: Client, place: tuple[str, str], verdict: str, who: Identity) -> Object:
    """Return a grant about which somebody may decide so; raises as `decide` does."""
    obj = await client.get(GRANTS, place[1], place[0])
    await _check(client, obj, verdict, who)
    return obj


def _patch(obj: Object, verdict: str, who: Identity, comment: str) -> Object:
    made: Object = {"by": who.user, "verdict": verdict, "groups": list(who.groups)}
    if comment:
        made["comment"] = comment
    earlier = obj["spec"].get("decisions") or []
    metadata = obj["metadata"]
    return {
        "metadata": {"resourceVersion": metadata.get("resourceVersion"), "uid": metadata.get("uid")},
        "spec": {"decisions": [*earlier, made]},
    }  # fmt: skip


async def _check(client: Client, obj: Object, verdict: str, who: Identity) -> None:
    grant, state = parse_grant(obj), state_of(obj)
    own = who.user == grant.requester
    if verdict in _OWN and not own:
        other = ending(state, is_own=False)
        raise Refused(f"refused: grant `{grant.name}` is `{grant.requester}`'s, not yours to {verdict}; try {other}")  # fmt: skip
    if verdict == "revoke" and own:
        other = ending(state, is_own=True)
        raise Refused(f"refused: grant `{grant.name}` is your own; try {other}")
    if verdict in ("approve", "deny"):
        await _check_vote(client, grant, verdict, who)
    if state in FINAL:
        raise Over(f"grant `{grant.name}` is {state}, which is final", help="ask again with `kubectl kpolicy grant request`")  # fmt: skip
    if state not in DECIDABLE[verdict]:
        raise Conflict(f"grant `{grant.name}` is {state}; to {verdict} it, it would have to be {' or '.join(DECIDABLE[verdict])}", status=409)  # fmt: skip


async def _check_vote(client: Client, grant: Grant, verdict: str, who: Identity) -> None:
    policy = await policy_of(client, grant)
    whom = f"; ask {' and '.join(who_may_approve(policy))}" if policy and policy.levels else ""
    why = cannot_decide(who.user, frozenset(who.groups), grant, policy, verdict)
    if why and who.user == grant.requester:
        raise Refused(f"refused: nobody can {verdict} {why}{whom}")
    if why:
        said = f"is {why}" if why.startswith("no ") else why
        raise Refused(f"refused: `{who.user}` {said}{whom}")


async def policy_of(client: Client, grant: Grant) -> GrantPolicy | None:
    """Return the grant policy that a grant falls under; None where it is not settled or cannot be read."""
    name = str(grant.status.get("grantPolicy") or "")
    if not name:
        return None
    try:
        return parse_grant_policy(await client.get(GRANT_POLICIES, name))
    except EngineError:
        return None
