"""How controllers write: creating and deleting like anybody (webhooks see it), status straight into the store as nobody reviews it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.call import internal
from kpolicy_sandbox.errors import ApiError
from kpolicy_sandbox.objects import delete as deleting
from kpolicy_sandbox.objects import write
from kpolicy_sandbox.store import Stale

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.call import User
    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


async def create(cluster: Cluster, resource: Resource, obj: Object, *, by: User | str) -> Object:
    """Create an object as a user, or as one of the control plane's accounts. ApiError as for anybody."""
    namespace = obj["metadata"].get("namespace", "")
    return await write.create(internal(cluster, resource, "create", namespace, "", by=by), obj)


async def ensure(cluster: Cluster, resource: Resource, obj: Object, *, by: User | str) -> None:
    """Create an object unless it is there."""
    meta = obj["metadata"]
    if cluster.store.get(resource.storage, meta.get("namespace", ""), meta["name"]) is None:
        try:
            await create(cluster, resource, obj, by=by)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


async def change(
    cluster: Cluster, resource: Resource, obj: Object, make: Callable[[Object], Object], *, by: str
) -> Object:
    """Change an object as one of the control plane's accounts."""
    meta = obj["metadata"]
    call = internal(cluster, resource, "patch", meta.get("namespace", ""), meta["name"], by=by)
    return await write.update(call, make)


async def drop_finalizer(
    cluster: Cluster, resource: Resource, obj: Object, name: str, *, by: str
) -> None:
    """Take a finalizer off an object, which goes with its last one."""

    def make(held: Object) -> Object:
        kept = [one for one in held["metadata"].get("finalizers") or () if one != name]
        return {**held, "metadata": {**held["metadata"], "finalizers": kept}}

    await change(cluster, resource, obj, make, by=by)


async def delete(
    cluster: Cluster, resource: Resource, obj: Object, *, by: str, **options: Any
) -> None:
    """Delete exactly this object (by its UID); one that is gone already is fine."""
    meta = obj["metadata"]
    call = internal(cluster, resource, "delete", meta.get("namespace", ""), meta["name"], by=by)
    given = {"preconditions": {"uid": meta["uid"]}, **options}
    try:
        await deleting.delete(call, given)
    except ApiError as error:
        if error.code not in {404, 409}:
            raise


def put(cluster: Cluster, storage: str, obj: Object, make: Callable[[Object], Object]) -> Object:
    """Change what is stored without any review (status, what a node does to Pods); nothing is written when nothing changes."""
    meta = obj["metadata"]
    held = cluster.store.get(storage, meta.get("namespace", ""), meta["name"])
    if held is None or held["metadata"]["uid"] != meta["uid"]:
        return obj
    made = make(held)
    if made == held:
        return held
    try:
        return cluster.store.put(storage, made, held["metadata"]["resourceVersion"])
    except Stale:
        raise AssertionError("nothing runs between reading and writing") from None


def set_status(cluster: Cluster, storage: str, obj: Object, status: Object) -> Object:
    """Write an object's status."""
    return put(cluster, storage, obj, lambda held: {**held, "status": status})


def owner(obj: Object) -> Object:
    """Return the reference by which a controller owns what it makes."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owned(cluster: Cluster, obj: Object, storage: str) -> list[Object]:
    """Return the objects of a resource that this one controls and that are not on their way out."""
    uid = obj["metadata"]["uid"]
    return [
        one
        for place, one in cluster.store.owned_by(uid)
        if place == storage
        and not one["metadata"].get("deletionTimestamp")
        and any(
            ref["uid"] == uid and ref.get("controller")
            for ref in one["metadata"]["ownerReferences"]
        )
    ]
