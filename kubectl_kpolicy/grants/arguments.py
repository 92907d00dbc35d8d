"""From words of a command line to requests: policy and rule, objects by name, by label, from a file or from a denial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import Client, Discovery
from controllers.kube.errors import KubeError
from controllers.kube.kinds import CLUSTER_POLICIES
from controllers.kube.paths import label_requirements
from controllers.lookups import grant_names
from engine.grants import length_of, length_text, parse_grant
from engine.grants.subjects import ALL_RULES
from engine.lang.wildcard import has_wildcard
from engine.model.kinds import BY_NAME, identity, is_of_cel
from kubectl_kpolicy.cluster import celkinds
from kubectl_kpolicy.output.misuse import Misuse
from kubectl_kpolicy.session import cluster
from kubectl_kpolicy.session.errors import Refused
from kubectl_kpolicy.session.targets import Target

from .requests import duration_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.model import Object


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
    duration_of(text)
    return text


def read_window(text: str) -> tuple[str, str, str]:
    """Read START/END or START/DURATION as a start, and an end or a length; raises EngineError."""
    start, slash, end = text.partition("/")
    begins = read_instant(start)
    if not slash or begins is None or not end:
        raise Misuse(f"`{text}` is no window", help="write 2026-01-31T17:00:00Z/2h, or an end for the length")  # fmt: skip
    if length_of(end) is not None:
        return start, "", end
    read_length("", end, begins)
    return start, end, ""


def read_instant(text: str) -> datetime | None:
    """Read an instant; None where none is given. Raises EngineError."""
    return cluster.instant_of(text) if text else None


def read_targets(names: Sequence[str], selector: str, documents: Sequence[Object]) -> list[Target]:
    """Return what is asked for, from `KIND/NAME`, from `KIND` with labels, and from documents; raises EngineError."""
    if selector:
        labels = _labels(selector)
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


def _labels(text: str) -> dict[str, str]:
    """Return the labels that a selector names one by one, each with its value; raises EngineError for any other."""
    labels: dict[str, str] = {}
    for one in label_requirements(text):
        if not one.is_wanted or one.values is None or len(one.values) > 1 or one.key in labels:
            raise Misuse(f"`{text}` is more than labels", help="write -l app=web,tier=front")
        (labels[one.key],) = one.values
    return labels


# What a request names that the cluster does not have.


async def missing(client: Client, obj: Object) -> list[str]:
    """Return a sentence for each name of a request that nothing has; what cannot be read is not called missing.

    Raises Refused where an emergency names a policy or rule that is not there.
    """
    grant, discovery = parse_grant(obj), Discovery(client)
    try:
        await discovery.refresh()
    except KubeError:
        return []
    lacking = await grant_names.missing_rules(client, discovery, grant)
    if refused := grant_names.refused_emergency(grant, lacking):
        raise Refused(refused)
    return [*lacking, *await grant_names.missing_object(client, discovery, grant)]


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
        if await grant_names.found(client, CLUSTER_POLICIES, policy) is not None:
            return asked
        alike = [
            identity(kind.kind, key)
            for kind in await celkinds.kinds(client, celkinds.POLICIES)
            if kind.kind in BY_NAME
            and (key := f"{namespace}/{policy}" if kind.namespaced else policy)
            and await grant_names.found(client, kind, key) is not None
        ]
    except KubeError:
        return asked
    if len(alike) > 1:
        several = f"several policies are called `{policy}`"
        raise Misuse(several, help=f"write one of {', '.join(alike)}")
    return (alike[0], ()) if alike else asked
