"""One request to the API, from outside or from the sandbox's own controllers: who wants what done to which object.

Every room takes it; apart so that none of them needs to know HTTP.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .cluster import Cluster
    from .kinds import Resource


@dataclass(frozen=True, slots=True)
class User:
    """Who asks."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, list[str]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """Return the user as reviews carry it."""
        made: dict[str, Any] = {"username": self.name}
        if self.uid:
            made["uid"] = self.uid
        if self.groups:
            made["groups"] = list(self.groups)
        if self.extra:
            made["extra"] = dict(self.extra)
        return made


def service_account(namespace: str, name: str, uid: str = "") -> User:
    """Return the user that a ServiceAccount is."""
    groups = (
        "system:serviceaccounts",
        f"system:serviceaccounts:{namespace}",
        "system:authenticated",
    )
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid)


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(slots=True)
class Call:
    """A request for a resource."""

    cluster: Cluster
    user: User
    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def dry_run(self) -> bool:
        """Tell whether nothing may be stored."""
        return bool(self.query.get("dryRun"))

    @property
    def field_manager(self) -> str:
        """Return the name under which written fields are recorded."""
        return self.query.get("fieldManager") or self.agent.partition("/")[0][:128] or "unknown"

    def on(self, **changes: Any) -> Call:
        """Return this call with other particulars; warnings go to the same list."""
        return replace(self, **changes)


def internal(
    cluster: Cluster, resource: Resource, verb: str, namespace: str, name: str, *, by: User | str
) -> Call:
    """Return a call of the sandbox itself: of an account in kube-system, which `by` names, or of a user."""
    user = by if isinstance(by, User) else service_account("kube-system", by)
    return Call(cluster, user, verb, resource, namespace, name, agent="sandbox")
