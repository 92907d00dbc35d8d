"""The end of a CRD: its objects go first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.custom.definitions import STORAGE
from kpolicy_sandbox.objects.strategies import CRD_FINALIZER

from .writing import change, delete, set_status

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
BY = "crd-controller"


async def reconcile(cluster: Cluster, definition: Object) -> None:
    """Keep the status of a CRD; delete the objects of one that is to go, and let it go when none is left."""
    spec = definition["spec"]
    if not definition["metadata"].get("deletionTimestamp"):
        set_status(cluster, STORAGE, definition, _status(definition))
        return
    storage = f"{spec['group']}/{spec['names']['plural']}"
    resource = cluster.registry.by_storage(storage)
    for obj in cluster.store.list(storage) if resource else ():
        if not obj["metadata"].get("deletionTimestamp") and resource:
            await delete(cluster, resource, obj, by=BY)
    if cluster.store.list(storage) and resource:
        return
    crds = cluster.resource("apiextensions.k8s.io", "customresourcedefinitions")

    def make(held: Object) -> Object:
        kept = [one for one in held["metadata"].get("finalizers") or () if one != CRD_FINALIZER]
        return {**held, "metadata": {**held["metadata"], "finalizers": kept}}

    await change(cluster, crds, definition, make, by=BY)


def _status(definition: Object) -> Object:
    spec, status = definition["spec"], definition.get("status") or {}
    stored = list(status.get("storedVersions") or ())
    stored += [
        one["name"] for one in spec["versions"] if one.get("storage") and one["name"] not in stored
    ]
    return {**status, "acceptedNames": spec["names"], "storedVersions": stored}
