"""Deleting objects: preconditions, webhooks, finalizers, propagation; what is left to do is the garbage collector's.

An object without finalizers goes at once; with finalizers it only gets a `deletionTimestamp` and goes with its last finalizer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.admission.webhook_client import Subject
from kpolicy_sandbox.errors import ApiError, bad_request, conflict, forbidden
from kpolicy_sandbox.kinds import presented
from kpolicy_sandbox.schema.unknown import prune
from kpolicy_sandbox.store import Stale

from .write import current_of, finished

if TYPE_CHECKING:
    from kpolicy_sandbox.call import Call

Object = dict[str, Any]
_PROTECTED = ("default", "kube-system", "kube-public")
_POLICIES = {"Background", "Foreground", "Orphan"}
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


async def delete(call: Call, options: Object) -> tuple[Object, bool]:
    """Delete the object of a call; return its last state and whether it is gone already. ApiError 404, 409 or a denial."""
    options = _checked(call, options)
    while True:
        current = current_of(call)
        _preconditions(call, current, options)
        if call.resource.storage == "/namespaces" and call.name in _PROTECTED:
            raise forbidden("namespaces", "", call.name, "this namespace may not be deleted")
        subject = Subject("DELETE", None, current, options)
        await call.cluster.admission.mutate(call, subject)
        await call.cluster.admission.validate(call, subject)
        try:
            return _deleted(call, current, options)
        except Stale:
            continue


def _checked(call: Call, options: Object) -> Object:
    policy = options.get("propagationPolicy") or call.query.get("propagationPolicy", "")
    if policy and policy not in _POLICIES:
        raise ApiError(
            422,
            "Invalid",
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}": '
            'supported values: "Foreground", "Background", "Orphan", "nil"',
        )
    made = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **options}
    if policy:
        made["propagationPolicy"] = policy
    if call.dry_run:
        made["dryRun"] = ["All"]
    return made


def _preconditions(call: Call, current: Object, options: Object) -> None:
    wanted = options.get("preconditions") or {}
    held = current["metadata"]
    for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(field) and wanted[field] != held[field]:
            why = (
                f"Precondition failed: {name} in precondition: {wanted[field]}, "
                f"{name} in object meta: {held[field]}"
            )
            raise conflict(call.resource.plural, call.resource.group, call.name, why)


def _deleted(call: Call, current: Object, options: Object) -> tuple[Object, bool]:
    resource, store = call.resource, call.cluster.store
    marked = _marked(call, current, options)
    if call.dry_run:
        return marked, finished(marked)
    held = store.get(resource.storage, call.namespace, call.name)
    if (
        held is None
        or held["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]
    ):
        raise Stale
    if finished(marked):
        store.remove(resource.storage, call.namespace, call.name)
        return marked, True
    if marked["metadata"] == current["metadata"]:
        return current, False
    kept = {**held, "metadata": marked["metadata"]}
    if resource.storage == "/namespaces":
        kept["status"] = {**(held.get("status") or {}), "phase": "Terminating"}
    stored = store.put(resource.storage, kept, current["metadata"]["resourceVersion"])
    return presented(resource, stored), False


def _marked(call: Call, current: Object, options: Object) -> Object:
    meta = dict(current["metadata"])
    finalizers = [one for one in meta.get("finalizers") or () if one not in (FOREGROUND, ORPHAN)]
    policy = options.get("propagationPolicy")
    if policy in {"Foreground", "Orphan"}:
        finalizers.append(FOREGROUND if policy == "Foreground" else ORPHAN)
    elif policy is None:
        finalizers = list(meta.get("finalizers") or ())
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if not meta.get("deletionTimestamp"):
        meta["deletionTimestamp"] = call.cluster.clock.stamp()
        meta["deletionGracePeriodSeconds"] = 0
        if meta.get("generation"):
            meta["generation"] += 1
    return {**current, "metadata": meta}


def read_options(body: Any) -> Object:
    """Return the DeleteOptions of a request's body. ApiError 400 for a body that holds none."""
    if not body:
        return {}
    if not isinstance(body, dict):
        raise bad_request("the body is no DeleteOptions")
    given = {key: value for key, value in body.items() if key not in {"kind", "apiVersion"}}
    return prune("meta.v1.DeleteOptions", {"kind": "DeleteOptions", **given})[0]
