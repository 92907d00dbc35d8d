"""Policies and exceptions written in CEL (`policies.kyverno.io`), of every kind and version that a server has.

Kyverno serves more such kinds than our engine decides by, and serves them in different versions; which there are is asked of
the server, so that a list shows all that is in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.errors import NotFound
from controllers.kube.kinds import Kind
from engine.fields import items, part, word
from engine.grants.conditions import EITHER
from engine.grants.subjects import identity_of as exceptions_from
from engine.model.kinds import CEL_GROUP, CEL_KINDS, identity

if TYPE_CHECKING:
    from datetime import datetime

    from controllers.kube import Client
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

GROUP: Final = CEL_GROUP
POLICIES: Final = "celpolicies"
"""The resource that holds policies of all these kinds."""
EXCEPTIONS: Final = "celexceptions"
"""The resource that holds exceptions from them."""
NAMES: Final = (POLICIES, EXCEPTIONS)
_NAMESPACED: Final = "Namespaced"
_BY_SOURCE: Final = {one.family.source: one.family for one in CEL_KINDS}


async def kinds(client: Client, resource: str) -> list[Kind]:
    """Return the kinds of a resource that the server has, none where it has no such group; raises KubeError."""
    try:
        group = await client.raw("GET", f"/apis/{GROUP}")
        version = str((group.get("preferredVersion") or {}).get("version") or "v1")
        listed = await client.raw("GET", f"/apis/{GROUP}/{version}")
    except NotFound:
        return []
    return [
        Kind(GROUP, version, str(one["name"]), str(one["kind"]), bool(one.get("namespaced")))
        for one in listed.get("resources") or ()
        if "/" not in str(one.get("name", "")) and _is_of(resource, str(one.get("kind", "")))
    ]


def _is_of(resource: str, kind: str) -> bool:
    return kind == "PolicyException" if resource == EXCEPTIONS else kind.endswith("Policy")


def is_cel(obj: Object) -> bool:
    """Tell whether an object is of one of these kinds."""
    return word(obj, "apiVersion").startswith(f"{GROUP}/")


def is_deleting(obj: Object) -> bool:
    """Tell whether an object is a policy that deletes by a schedule."""
    return is_cel(obj) and word(obj, "kind").endswith("DeletingPolicy")


def key_of_policy(policy: Object) -> str:
    """Return how reports name a policy: with its namespace where its kind lives in one."""
    name = word(policy, "metadata", "name")
    is_namespaced = word(policy, "kind").startswith(_NAMESPACED)
    return f"{word(policy, 'metadata', 'namespace')}/{name}" if is_namespaced else name


def identity_of_policy(policy: Object) -> str:
    """Return what tells a policy of any kind from all others (`engine.model.kinds.identity`)."""
    return identity(word(policy, "kind"), key_of_policy(policy))


def identity_of(row: Row) -> str:
    """Return the identity of the policy that a row is about, by the kind that it names or by the source of its report."""
    policy = row.text("policy")
    family = _BY_SOURCE.get(row.text("source"))
    if family is None:
        return identity(row.text("policykind"), policy)
    return identity(family.twin if "/" in policy else family.kind, policy)


def mode(policy: Object) -> str:
    """Return `enforce` or `audit` as its actions say; `-` for a policy that validates nothing."""
    spec = part(policy, "spec")
    if "validations" not in spec and "validationActions" not in spec:
        return "-"
    actions = {str(one) for one in spec.get("validationActions") or ("Deny",)}
    return "enforce" if "Deny" in actions else "audit"


def readiness(policy: Object) -> str:
    """Return whether the engine says that it took the policy over: `yes`, `no`, `unknown`."""
    ready = part(policy, "status", "conditionStatus").get("ready")
    if ready is None:
        found = [one for one in items(policy, "status", "conditionStatus", "conditions") if one.get("type") == "Ready"]  # fmt: skip
        ready = found[0].get("status") == "True" if found else None
    return "unknown" if ready is None else "yes" if ready else "no"


def named_policies(exception: Object) -> list[str]:
    """Return the policies that an exception is from, by their identities."""
    namespace = word(exception, "metadata", "namespace")
    return [
        exceptions_from(word(one, "name"), word(one, "kind"), namespace)
        for one in items(exception, "spec", "policyRefs")
    ]


def expressions(exception: Object) -> list[str]:
    """Return the conditions under which an exception covers a request; those that a grant caused say `object` for short."""
    found = (word(one, "expression") for one in items(exception, "spec", "matchConditions"))
    return [text.replace(EITHER, "object") for text in found]


def ends_at(exception: Object) -> datetime | None:
    """Return when an exception ends, None when it does not; raises EngineError for one that cannot be read."""
    from engine.evaluate.cel.exceptions import compile_cel_exception
    from engine.parse.celpolicies import parse_cel_exception

    return compile_cel_exception(parse_cel_exception(exception, strict=False)).ends
