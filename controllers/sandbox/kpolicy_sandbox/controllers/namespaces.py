"""What a namespace begins with, and how it ends: its content first, then itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.call import internal
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.objects import write

from .writing import delete, ensure

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
_BY = "namespace-controller"
_FINALIZER = "kubernetes"
FURNITURE = frozenset(("/serviceaccounts", "/configmaps"))


async def reconcile(cluster: Cluster, space: Object) -> None:
    """Give a namespace its ServiceAccount and the authority's certificate, or empty it when it is to go."""
    if space["metadata"].get("deletionTimestamp"):
        await _empty(cluster, space)
        return
    name = space["metadata"]["name"]
    account: Object = {"metadata": {"name": "default", "namespace": name}}
    accounts = cluster.resource("", "serviceaccounts")
    await ensure(cluster, accounts, account, by="service-account-controller")
    bundle = {
        "metadata": {"name": "kube-root-ca.crt", "namespace": name},
        "data": {"ca.crt": cluster.authority},
    }
    maps = cluster.resource("", "configmaps")
    await ensure(cluster, maps, bundle, by="root-ca-cert-publisher")


async def _empty(cluster: Cluster, space: Object) -> None:
    name = space["metadata"]["name"]
    resources = [one for one in cluster.registry.stored() if one.namespaced]
    for resource in resources:
        for obj in cluster.store.list(resource.storage, name):
            if not obj["metadata"].get("deletionTimestamp"):
                await delete(cluster, resource, obj, by=_BY, propagationPolicy="Background")
    if any(cluster.store.list(one.storage, name) for one in resources):
        return
    spaces = cluster.resource("", "namespaces")
    call = internal(cluster, spaces, "patch", "", name, by=_BY).on(subresource="finalize")

    def finalize(held: Object) -> Object:
        finalizers = [one for one in held["spec"].get("finalizers") or () if one != _FINALIZER]
        return {**held, "spec": {**held["spec"], "finalizers": finalizers}}

    try:
        await write.update(call, finalize)
    except ApiError as error:
        if error.code != 404:
            raise
