"""What gives power to somebody - roles, bindings, policies - and what its writer must be allowed besides, as the API server has it.

Writing such an object is not enough: who writes a role needs `escalate` on it or all that it gives, who binds one needs `bind` or
the same, and who changes a policy may have us do anything. So does whoever has others write them otherwise than they meant.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from engine import vocabulary
from engine.fields import part
from engine.model.kinds import CEL_GROUP, CLASSIC_GROUP
from engine.model.result import Power
from engine.mutate.lists import DIRECTIVE
from engine.requestinfo import ANY, RequestInfo

from .author_lookups import EVERYTHING, Need, RoleName, fixed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.model import Block, Json

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = "clusterroles"
_IDENTITIES: Final = frozenset(
    {"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io"}
)
ROLES: Final = {"Role": "roles", "ClusterRole": CLUSTER_ROLES}
MOST_OF_A_ROLE: Final = 64
"""Requests that a role may allow to be compared with what its giver may do; a larger one takes `bind` or `escalate`."""
_OPEN_METADATA: Final = ("annotations", "labels", "{{", DIRECTIVE)
BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")


def power_over(place: RequestInfo, power: Power) -> RequestInfo | None:
    """Return what is needed beside to write what gives power to somebody, None where it gives none.

    Labels of a ClusterRole say whose rules it is added to; no other metadata gives any power. Who is told who somebody is, or what
    they may do, goes by who asked.
    """
    if place.group in _IDENTITIES and power is Power.OF_ALL:
        return EVERYTHING
    if place.subresource or power is Power.NONE:
        return None
    if power is Power.OF_METADATA:
        is_role = place.group in (ANY, RBAC_GROUP) and place.resource in (ANY, CLUSTER_ROLES)
        labelled = RequestInfo("escalate", RBAC_GROUP, CLUSTER_ROLES, name=place.name)
        return labelled if is_role and not place.namespace else None
    if place.group == RBAC_GROUP and place.resource in ROLES.values():
        return replace(place, verb="escalate")
    if place.group == RBAC_GROUP and place.resource != ANY:
        return RequestInfo("bind", RBAC_GROUP, ANY, namespace=place.namespace)
    is_policy = place.group in (CLASSIC_GROUP, CEL_GROUP)
    return EVERYTHING if is_policy or place.group in (ANY, RBAC_GROUP) else None


def escalating(at: str, place: RequestInfo, data: Mapping[str, Any] | None) -> Need:
    """Return the right to write a role: `escalate` on it, or all that it gives, as the API server has it."""
    request = replace(place, verb="escalate")
    rules = (data or {}).get("rules")
    is_plain = data is not None and "aggregationRule" not in data and isinstance(rules, list)
    if not is_plain or "{{" in json.dumps(rules):
        return Need(at, request)
    return Need(at, request, instead=some_of_rules(rules or (), place.namespace))


def binding(at: str, place: RequestInfo, data: Mapping[str, Any] | None) -> Need:
    """Return the right to bind a role: `bind` on it, or all that it gives."""
    where = part(data, "roleRef")
    kind, name = fixed(where.get("kind")), fixed(where.get("name"))
    if kind not in ROLES or not name:
        return Need(at, RequestInfo("bind", RBAC_GROUP, ANY, namespace=place.namespace))
    request = RequestInfo("bind", RBAC_GROUP, ROLES[kind], "", place.namespace, name)
    return Need(f"{at}.data.roleRef", request, role=RoleName(kind, place.namespace, name))


def some_of_rules(rules: Iterable[Any], namespace: str) -> tuple[RequestInfo, ...]:
    """Return the requests that the rules of a role allow, of a large one more than are compared and not all."""
    return tuple(islice(_requests_of_rules(rules, namespace), MOST_OF_A_ROLE + 1))


def _requests_of_rules(rules: Iterable[Any], namespace: str) -> Iterator[RequestInfo]:
    """Yield every request that the rules of a role allow, as it may be made in a namespace or (empty) everywhere."""
    for rule in rules:
        for verb in rule.get("verbs") or ():
            for path in rule.get("nonResourceURLs") or ():
                yield RequestInfo(verb, path=path)
            for group in rule.get("apiGroups") or ():
                for text in rule.get("resources") or ():
                    resource, _, subresource = str(text).partition("/")
                    for name in rule.get("resourceNames") or ("",):
                        yield RequestInfo(verb, group, resource, subresource, namespace, name)


def power_of(block: Block | None) -> Power:
    """Return what a mutation may write: nothing but labels, annotations and the like, or anything.

    Metadata by which a policy comes to concern other objects is as good as its spec.
    """
    said = block or {}
    patch = said.get("patchStrategicMerge")
    is_plain = isinstance(patch, dict) and set(patch) == {"metadata"} and not said.get("foreach")
    return Power.OF_METADATA if is_plain and not _may_widen(patch) else Power.OF_ALL


def _may_widen(patch: Json) -> bool:
    """Tell whether a patch of metadata may write what decides what a policy does."""
    metadata = patch.get("metadata") if isinstance(patch, dict) else None
    if not isinstance(metadata, dict):
        return True
    found = [
        value for key, value in metadata.items() if any(name in key for name in _OPEN_METADATA)
    ]
    return not all(isinstance(one, dict) for one in found) or any(
        "{{" in key or key == DIRECTIVE or vocabulary.decides(key) for one in found for key in one
    )
