"""Deployments: one ReplicaSet per template, the newest at full size, the others at zero once it is ready."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from .writing import change, create, owned, owner, put, set_status

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
BY = "deployment-controller"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


async def deployment(cluster: Cluster, obj: Object) -> None:
    """Bring the ReplicaSets of a Deployment to where it wants them, and report."""
    if obj["metadata"].get("deletionTimestamp"):
        return
    held = owned(cluster, obj, "apps/replicasets")
    word = _word(obj["spec"]["template"])
    current = next((one for one in held if _hash(one) == word), None)
    wanted = obj["spec"].get("replicas", 1)
    if not obj["spec"].get("paused"):
        current = await _current(cluster, obj, current, held, word)
        await _scale(cluster, current, wanted)
        if (current.get("status") or {}).get("availableReplicas", 0) >= wanted:
            for old in held:
                if old["metadata"]["uid"] != current["metadata"]["uid"]:
                    await _scale(cluster, old, 0)
    _report(cluster, obj, word)


def _hash(replica_set: Object) -> str:
    """Return the word of a ReplicaSet's template: the end of its name, where people took its labels away."""
    meta = replica_set["metadata"]
    return str((meta.get("labels") or {}).get(HASH) or meta["name"].rpartition("-")[2])


def _word(template: Object) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


async def _current(
    cluster: Cluster, obj: Object, current: Object | None, held: list[Object], word: str
) -> Object:
    numbers = [int((one["metadata"].get("annotations") or {}).get(REVISION, 0)) for one in held]
    newest = max(numbers, default=0)
    sets = cluster.resource("apps", "replicasets")
    if current is None:
        current = await create(cluster, sets, _set(obj, word, newest + 1), by=BY)
    elif (current["metadata"].get("annotations") or {}).get(REVISION) != str(newest):
        current = await change(
            cluster, sets, current, lambda one: _numbered(one, newest + 1), by=BY
        )
    number = current["metadata"]["annotations"][REVISION]
    put(cluster, "apps/deployments", obj, lambda one: _numbered(one, int(number)))
    return current


def _numbered(obj: Object, number: int) -> Object:
    annotations = {**(obj["metadata"].get("annotations") or {}), REVISION: str(number)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def _set(obj: Object, word: str, revision: int) -> Object:
    spec, meta = obj["spec"], obj["metadata"]
    template = spec["template"]
    inner = template.get("metadata") or {}
    labels = {**(inner.get("labels") or {}), HASH: word}
    selector = spec["selector"]
    chosen = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: word}}
    annotations = {
        REVISION: str(revision),
        "deployment.kubernetes.io/desired-replicas": str(spec.get("replicas", 1)),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{word}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner(obj)],
        },
        "spec": {
            "replicas": spec.get("replicas", 1),
            "selector": chosen,
            "template": {**template, "metadata": {**inner, "labels": labels}},
        },
    }


async def _scale(cluster: Cluster, one: Object, replicas: int) -> None:
    if one["spec"].get("replicas") == replicas:
        return
    sets = cluster.resource("apps", "replicasets")

    def make(held: Object) -> Object:
        return {**held, "spec": {**held["spec"], "replicas": replicas}}

    await change(cluster, sets, one, make, by=BY)


def _report(cluster: Cluster, obj: Object, word: str) -> None:
    held = owned(cluster, obj, "apps/replicasets")
    statuses = [one.get("status") or {} for one in held]
    newest = [one.get("status") or {} for one in held if _hash(one) == word]
    wanted = obj["spec"].get("replicas", 1)
    available = sum(one.get("availableReplicas", 0) for one in statuses)
    counts = {
        "replicas": sum(one.get("replicas", 0) for one in statuses),
        "updatedReplicas": sum(one.get("replicas", 0) for one in newest),
        "readyReplicas": sum(one.get("readyReplicas", 0) for one in statuses),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
    }
    status: Object = {"observedGeneration": obj["metadata"].get("generation", 1)}
    status |= {key: count for key, count in counts.items() if count}
    done = sum(one.get("availableReplicas", 0) for one in newest) >= wanted
    failures = [two for one in newest for two in one.get("conditions") or ()]
    status["conditions"] = (
        _conditions(cluster, obj, word, enough=available >= wanted, done=done) + failures
    )
    set_status(cluster, "apps/deployments", obj, status)


def _conditions(
    cluster: Cluster, obj: Object, word: str, *, enough: bool, done: bool
) -> list[Object]:
    name = f"{obj['metadata']['name']}-{word}"
    available = (
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    )
    progressing = (
        ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        if done
        else ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    )
    held = {one["type"]: one for one in (obj.get("status") or {}).get("conditions") or ()}
    made = []
    for kind, (status, reason, message) in (("Available", available), ("Progressing", progressing)):
        old, now = held.get(kind, {}), cluster.clock.stamp()
        same = (old.get("status"), old.get("reason")) == (status, reason)
        made.append({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastUpdateTime": old["lastUpdateTime"] if same else now,
            "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == status else now,
        })  # fmt: skip
    return made
