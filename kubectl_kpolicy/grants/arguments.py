"""From words of a command line to requests: policy and rule, objects by name, by label, from a file or from a denial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Client, Discovery, Kind
from controllers.kube.errors import KubeError, NotFound
from controllers.kube.kinds import CLUSTER_POLICIES, POLICIES
from engine.autogen import expand
from engine.errors import EngineError
from engine.grants import Grant, length_of, length_text, parse_grant
from engine.grants.subjects import ALL_RULES
from engine.lang import rfc3339
from engine.lang.wildcard import has_wildcard
from engine.model.kinds import BY_NAME, identity, is_of_cel, named
from engine.parse import parse_policy
from engine.record import replace
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session.errors import Refused
from kubectl_kpolicy.session.targets import Target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.model import Object

    from .requests import Ask


def bare(name: str) -> str:
    """Return the name of a grant that is given alone or, as commands print it, with its kind."""
    return name.removeprefix("grant.kpolicy.io/")


def read_length(text: str, until: str, start: datetime) -> str:
    """Read `--for`, or the way from `start` to `--until`; raises EngineError."""
    if until:
        end = read_instant(until)
        if end is None or end <= start:
            raise Misuse(f"`{until}` is no instant to come", help="write 2026-01-31T17:00:00Z")
        return length_text(end - start)
    if length_of(text) is None:
        raise Misuse(f"`{text}` is no length of time", help="write --for 4h, 90m or 2d")
    return text


def read_instant(text: str) -> datetime | None:
    """Read an instant; None where none is given. Raises EngineError."""
    if not text:
        return None
    found = rfc3339.read(text)
    if found is None:
        raise Misuse(f"`{text}` is no instant", help="write 2026-01-31T17:00:00Z")
    return found


def read_targets(names: Sequence[str], selector: str, documents: Sequence[Object]) -> list[Target]:
    """Return what is asked for, from `KIND/NAME`, from `KIND` with labels, and from documents; raises EngineError."""
    if selector:
        labels = dict(_label(one) for one in selector.split(","))
        return [Target(_kind_alone(name), selector={"matchLabels": labels}) for name in names]
    found = [_named(name) for name in names]
    for one in documents:
        metadata = one.get("metadata") or {}
        name = metadata.get("name") or (metadata.get("generateName") or "") + "*"
        found.append(Target(str(one.get("kind")), str(name), str(metadata.get("namespace") or "")))
    if not found:
        raise Misuse("say for which object", help="add KIND/NAME, or -f FILE with the object")
    return found


def _named(text: str) -> Target:
    kind, slash, name = text.partition("/")
    if not (slash and kind and name):
        raise Misuse(f"`{text}` names no object", help="write KIND/NAME, or KIND with -l LABEL=VALUE")  # fmt: skip
    return Target(kind, name)


def _kind_alone(text: str) -> str:
    if "/" in text:
        raise Misuse(f"`{text}` names one object", help="with -l write a kind alone")
    return text


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key or key.endswith("!"):
        raise Misuse(f"`{text}` is no label", help="write -l app=web,tier=front")
    return key, value.removeprefix("=")


def asks(base: Ask, targets: Sequence[Target]) -> list[Ask]:
    """Return a request for each target; one that names its own namespace is asked for there."""
    return [
        replace(
            base,
            kind=one.kind,
            name=one.name,
            namespace=one.namespace or base.namespace,
            selector=one.selector,
        )
        for one in targets
    ]


# What a request names that the cluster does not have: a policy, a rule of it, an object; a grant for nothing looks like help.
#
# An object may be missing because it was just denied, and a policy may come later, so what is missing is said and refuses nothing
# but an emergency, which nobody else looks at before it is active.


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
    except EngineError:
        # what cannot be read is not called missing, and what means no kind is refused with its reason
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
    return [f"policy `{grant.policy}` has no rule `{name}`; it has {', '.join(rules)}" for name in lost]  # fmt: skip


async def _policy(client: Client, policy: str) -> Object | None:
    """Return the policy with an identity; None where there is none. Raises KubeError and PolicyError."""
    kind, key = named(policy)
    if not kind.is_cel:
        return await _found(client, POLICIES if kind.is_namespaced else CLUSTER_POLICIES, key)
    served = await celkinds.kinds(client, celkinds.POLICIES)
    same = next((one for one in served if one.kind == kind.kind), None)
    return None if same is None else await _found(client, same, key)


async def _found(client: Client, kind: Kind, key: str) -> Object | None:
    namespace, _, name = key.rpartition("/")
    try:
        found = await client.get(kind, name, namespace)
    except NotFound:
        return None
    return {"apiVersion": kind.api_version, "kind": kind.kind, **found}


Named = tuple[str, tuple[str, ...]]
"""A policy by its identity, and rules of it."""


async def resolved(client: Client, asked: Named, namespace: str) -> Named:
    """Return policy and rules, the policy with its kind where somebody wrote the name alone of one written in CEL.

    A classic policy of that name goes first. Raises Misuse where several others have the name.
    """
    policy, rules = asked
    if is_of_cel(policy) or "/" in policy or has_wildcard(policy) or rules != ALL_RULES:
        return asked
    try:
        if await _found(client, CLUSTER_POLICIES, policy) is not None:
            return asked
        alike = [
            identity(kind.kind, key)
            for kind in await celkinds.kinds(client, celkinds.POLICIES)
            if kind.kind in BY_NAME
            and (key := f"{namespace}/{policy}" if kind.namespaced else policy)
            and await _found(client, kind, key) is not None
        ]
    except KubeError:
        return asked
    if len(alike) > 1:
        several = f"several policies are called `{policy}`"
        raise Misuse(several, help=f"write one of {', '.join(alike)}")
    return (alike[0], ()) if alike else asked


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
