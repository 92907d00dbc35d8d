"""Garbage collection by ownerReferences: dependents go when all their owners are gone; foreground and orphan deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.objects.delete import FOREGROUND, ORPHAN

from .writing import change, delete, drop_finalizer

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
BY = "generic-garbage-collector"


async def collected(cluster: Cluster, storage: str, obj: Object) -> bool:
    """Do what is due for an object; True when it has been deleted because its owners are gone."""
    resource = cluster.registry.by_storage(storage)
    if resource is None:
        return False
    meta = obj["metadata"]
    if meta.get("deletionTimestamp"):
        await _finish(cluster, resource, obj)
        return False
    if meta.get("ownerReferences") and not _has_owner(cluster, obj):
        await delete(cluster, resource, obj, by=BY, propagationPolicy="Background")
        return True
    return False


def _has_owner(cluster: Cluster, obj: Object) -> bool:
    for reference in obj["metadata"]["ownerReferences"]:
        found = cluster.store.by_uid(reference["uid"])
        if found is None:
            continue
        space = found["metadata"].get("namespace", "")
        # an owner in another namespace is no owner
        if not space or space == obj["metadata"].get("namespace", ""):
            return True
    return False


async def _finish(cluster: Cluster, resource: Resource, obj: Object) -> None:
    finalizers = obj["metadata"].get("finalizers") or ()
    uid = obj["metadata"]["uid"]
    dependents = list(cluster.store.owned_by(uid))
    if ORPHAN in finalizers:
        for storage, one in dependents:
            await _release(cluster, storage, one, uid)
        await drop_finalizer(cluster, resource, obj, ORPHAN, by=BY)
    elif FOREGROUND in finalizers:
        for storage, one in dependents:
            inner = cluster.registry.by_storage(storage)
            if inner is not None and not one["metadata"].get("deletionTimestamp"):
                await delete(cluster, inner, one, by=BY, propagationPolicy="Foreground")
        if not any(_blocks(one, uid) for _, one in cluster.store.owned_by(uid)):
            await drop_finalizer(cluster, resource, obj, FOREGROUND, by=BY)


def _blocks(dependent: Object, uid: str) -> bool:
    references = dependent["metadata"]["ownerReferences"]
    return any(one["uid"] == uid and one.get("blockOwnerDeletion") for one in references)


async def _release(cluster: Cluster, storage: str, obj: Object, uid: str) -> None:
    resource = cluster.registry.by_storage(storage)
    if resource is None:
        return

    def make(held: Object) -> Object:
        references = held["metadata"].get("ownerReferences") or ()
        kept = [one for one in references if one["uid"] != uid]
        return {**held, "metadata": {**held["metadata"], "ownerReferences": kept}}

    await change(cluster, resource, obj, make, by=BY)
