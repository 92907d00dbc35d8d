"""What a request names that the cluster does not have: a policy, a rule of it, an object; a grant for nothing looks like help.

An object may be missing because it was just denied, and a policy may come later, so what is missing is said and refuses nothing
but an emergency, which nobody else looks at before it is active.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Discovery
from controllers.kube.errors import KubeError, NotFound
from controllers.kube.kinds import CLUSTER_POLICIES, POLICIES
from engine.autogen.expand import expand
from engine.errors import EngineError
from engine.grants import parse_grant
from engine.lang.wildcard import has_wildcard
from engine.parse import parse_policy
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.session.errors import Refused

if TYPE_CHECKING:
    from controllers.kube import Client
    from engine.grants import Grant
    from engine.model import Object


async def missing(client: Client, obj: Object) -> list[str]:
    """Return a sentence for each name of a request that nothing has; what cannot be read is not called missing.

    Raises Refused where an emergency names a policy or rule that is not there.
    """
    grant = parse_grant(obj)
    lacking = await _missing_rules(client, grant)
    if grant.emergency and lacking:
        raise Refused(f"refused: {lacking[0]}, and nobody looks at an emergency before it is active")  # fmt: skip
    return [*lacking, *await _missing_object(client, grant)]


async def _missing_rules(client: Client, grant: Grant) -> list[str]:
    if has_wildcard(grant.policy):
        return []
    try:
        policy = await _policy(client, grant.policy)
    except KubeError:
        return []
    if policy is None:
        return [f"there is no policy `{grant.policy}`"]
    if celkinds.is_cel(policy):
        return []
    try:
        rules = [rule.name for rule in expand(parse_policy(policy, strict=False))]
    except EngineError:
        return []
    lost = [name for name in grant.rules if not has_wildcard(name) and name not in rules]
    return [f"policy `{grant.policy}` has no rule `{name}`; it has {', '.join(rules)}" for name in lost]  # fmt: skip


async def _policy(client: Client, key: str) -> Object | None:
    """Return the policy that reports and exceptions call so, of any kind; None where there is none. Raises KubeError."""
    namespace, _, name = key.rpartition("/")
    kinds = [POLICIES if namespace else CLUSTER_POLICIES]
    kinds += [kind for kind in await celkinds.kinds(client, celkinds.POLICIES) if kind.namespaced == bool(namespace)]  # fmt: skip
    for kind in kinds:
        try:
            return {"apiVersion": kind.api_version, "kind": kind.kind, **await client.get(kind, name, namespace)}  # fmt: skip
        except NotFound:
            continue
    return None


async def _missing_object(client: Client, grant: Grant) -> list[str]:
    if not grant.target or has_wildcard(grant.target) or has_wildcard(grant.kind):
        return []
    discovery = Discovery(client)
    try:
        await discovery.refresh()
        kind = discovery.named(grant.kind)
        if kind is None:
            return [f"the server has no kind `{grant.kind}`"]
        await client.get(kind, grant.target, grant.namespace if kind.namespaced else "")
    except NotFound:
        return [f"there is no {grant.kind} `{grant.target}` in namespace {grant.namespace} yet"]
    except KubeError:
        return []
    return []
