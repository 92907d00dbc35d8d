"""Who asks: people with the rights that Kubernetes and we hand out, our accounts, nobody, and an administrator as control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from controllers.manifests.bundle import Choice, installed
from kpolicy_sandbox.call import ADMIN, User, service_account

OWN, FOREIGN = "shop", "vault"
_GROUP: Final = "rbac.authorization.k8s.io"
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = [*_READ, "create", "update", "patch", "delete"]
_NAMESPACED: Final = [
    "policies",
    "cleanuppolicies",
    "namespaceddeletingpolicies",
    "namespacedgeneratingpolicies",
    "namespacedmutatingpolicies",
]
_OF_CLUSTER: Final = [
    "clusterpolicies",
    "clustercleanuppolicies",
    "deletingpolicies",
    "generatingpolicies",
    "mutatingpolicies",
    "validatingpolicies",
]


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody; `role` is bound in the own namespace, `wide` in the cluster, each a ClusterRole or rules."""

    name: str
    user: User
    role: str | list[dict[str, Any]] = ""
    wide: str | list[dict[str, Any]] = ""


def _person(name: str, **rights: Any) -> Actor:
    return Actor(name, User(name, ("system:authenticated",)), **rights)


def _rule(resources: list[str], verbs: list[str] = _WRITE) -> dict[str, Any]:
    return {
        "apiGroups": ["kyverno.io", "policies.kyverno.io"],
        "resources": resources,
        "verbs": verbs,
    }


CONTROL: Final = Actor("cluster-admin", ADMIN)
ANYBODY: Final = Actor("anonymous", User("system:anonymous", ("system:unauthenticated",)))
PEOPLE: Final = (
    ANYBODY,
    _person("viewer", role="view"),
    _person("editor", role="edit"),
    _person("namespace-admin", role="admin"),
    _person("policy-author", role=[_rule(_NAMESPACED)]),
    _person("cluster-policy-author", wide=[_rule(_OF_CLUSTER)]),
    _person("approver", role="kpolicy:grants:approve"),
    _person("code-issuer", role="kpolicy:codes:issue"),
)


def accounts() -> list[Actor]:
    """Return our accounts, as they are shipped."""
    return [
        Actor(one["metadata"]["name"], service_account(one["metadata"]["namespace"], one["metadata"]["name"]))
        for one in installed(Choice())
        if one["kind"] == "ServiceAccount"
    ]  # fmt: skip


def is_ours(actor: Actor) -> bool:
    """Tell whether an actor is one of our accounts."""
    return actor.user.name.startswith("system:serviceaccount:")


def actors() -> list[Actor]:
    """Return everybody, the control last."""
    return [*PEOPLE, *accounts(), CONTROL]


def rights_of(actor: Actor) -> list[dict[str, Any]]:
    """Return the roles and bindings that give an actor his rights."""
    made: list[dict[str, Any]] = []
    for given, namespace in ((actor.role, OWN), (actor.wide, "")):
        if not given:
            continue
        name = given if isinstance(given, str) else f"matrix:{actor.name}"
        if not isinstance(given, str):
            made.append({"apiVersion": f"{_GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": given})  # fmt: skip
        made.append(binding(actor.user.name, name, namespace))
    return made


def binding(user: str, role: str, namespace: str = "") -> dict[str, Any]:
    """Return the binding of a user to a ClusterRole, of the cluster or in a namespace."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"matrix-{user}-{role}".replace(":", "-"), **place},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
    }
