"""What a request for a grant names that the cluster does not have: a policy, a rule of it, an object; a grant for nothing looks like help.

An object may be missing because it was just denied, and a policy may come later, so what is missing is said and refuses nothing
but an emergency, which nobody else looks at before it is active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube.client import find
from controllers.kube.errors import KubeError, NotFound
from controllers.kube.kinds import CLUSTER_POLICIES, POLICIES
from engine.autogen import expand
from engine.errors import EngineError
from engine.lang.wildcard import has_wildcard
from engine.model.kinds import is_of_cel, named
from engine.parse import parse_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from controllers.kube import Client, Discovery, Kind
    from engine.grants import Grant
    from engine.model import Object


def refused_emergency(grant: Grant, lacking: list[str]) -> str:
    """Return why an emergency is refused for what it names and nothing has, empty where it is not; `lacking` are `missing_rules`."""
    if not grant.emergency or not lacking:
        return ""
    return f"refused: {lacking[0]}, and nobody looks at an emergency before it is active"


async def missing_rules(client: Client, discovery: Discovery, grant: Grant) -> list[str]:
    """Return a sentence for the policy or each rule that a grant names and nothing has; what cannot be read is not called missing."""
    if has_wildcard(grant.policy):
        return []
    try:
        policy = await _policy(client, discovery, grant.policy)
    except EngineError:
        # what means no kind is refused with its reason elsewhere
        return []
    if policy is None:
        return [f"there is no policy `{grant.policy}`"]
    if is_of_cel(grant.policy):
        return []
    try:
        rules = [rule.name for rule in expand(parse_policy(policy, strict=False))]
    except EngineError:
        return []
    lost = [name for name in grant.rules if not has_wildcard(name) and name not in rules]
    return [
        f"policy `{grant.policy}` has no rule `{name}`; it has {', '.join(rules)}" for name in lost
    ]


async def _policy(client: Client, discovery: Discovery, policy: str) -> Object | None:
    """Return the policy with an identity; None where there is none. Raises KubeError and PolicyError."""
    kind, key = named(policy)
    if not kind.is_cel:
        return await found(client, POLICIES if kind.is_namespaced else CLUSTER_POLICIES, key)
    served = discovery.named(f"{kind.kind}.{kind.group}")
    return None if served is None else await found(client, served, key)


async def found(client: Client, kind: Kind, key: str) -> Object | None:
    """Return the object of a kind with a name, or `namespace/name`; None where there is none. Raises KubeError."""
    namespace, _, name = key.rpartition("/")
    obj = await find(client, kind, name, namespace)
    return None if obj is None else kind.typed(obj)


async def missing_object(
    client: Client,
    discovery: Discovery,
    grant: Grant,
    may_read: Callable[[Kind], Awaitable[bool]] | None = None,
) -> list[str]:
    """Return a sentence where nothing has the name that a grant is for; what cannot be read is not called missing.

    `may_read` tells whether whoever hears the sentence may read that object: who may not learns nothing by asking.
    """
    if not grant.target or has_wildcard(grant.target) or has_wildcard(grant.kind):
        return []
    kind = discovery.named(grant.kind)
    if kind is None:
        return [f"the server has no kind `{grant.kind}`"]
    try:
        if may_read is None or await may_read(kind):
            await client.get(kind, grant.target, grant.namespace if kind.namespaced else "")
    except NotFound:
        return [f"there is no {grant.kind} `{grant.target}` in namespace {grant.namespace} yet"]
    except KubeError:
        return []
    return []
