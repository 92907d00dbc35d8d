"""Aggregated ClusterRoles: their rules are those of every ClusterRole that their selectors choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.access.bootstrap import AGGREGATOR
from kpolicy_sandbox.objects.selectors import matches_selector

from .writing import change

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
STORAGE = "rbac.authorization.k8s.io/clusterroles"


def aggregates(cluster: Cluster) -> list[str]:
    """Return the names of the roles that are made of others."""
    return [
        one["metadata"]["name"] for one in cluster.store.list(STORAGE) if one.get("aggregationRule")
    ]


async def reconcile(cluster: Cluster, role: Object) -> None:
    """Put the rules of the chosen roles into an aggregated one."""
    rule = role.get("aggregationRule")
    if not rule:
        return
    selectors = rule.get("clusterRoleSelectors") or ()
    rules: list[Object] = []
    for other in cluster.store.list(STORAGE):
        labels = other["metadata"].get("labels") or {}
        if other["metadata"]["name"] != role["metadata"]["name"] and any(
            matches_selector(one, labels) for one in selectors
        ):
            rules += [one for one in other.get("rules") or () if one not in rules]
    if rules != (role.get("rules") or []):
        resource = cluster.resource("rbac.authorization.k8s.io", "clusterroles")
        await change(cluster, resource, role, lambda held: {**held, "rules": rules}, by=AGGREGATOR)
