"""Workloads: Deployments make ReplicaSets, these and StatefulSets, DaemonSets and Jobs make Pods; all report what became of it."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

import orjson

from kpolicy_sandbox.clock import parse_instant
from kpolicy_sandbox.errors import ApiError

from .writing import change, create, delete, owned, owner, put, set_status

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]


async def replica_set(cluster: Cluster, obj: Object) -> None:
    """Keep as many Pods as a ReplicaSet wants."""
    wanted = obj["spec"].get("replicas", 1)
    failure = await _keep(cluster, obj, wanted, "replicaset-controller")
    held, ready = _counts(cluster, obj)
    status: Object = {"replicas": held, "observedGeneration": obj["metadata"].get("generation", 1)}
    status |= {key: held for key in ("fullyLabeledReplicas",) if held}
    status |= {key: ready for key in ("readyReplicas", "availableReplicas") if ready}
    if failure:
        status["conditions"] = [_failed(cluster, obj, failure)]
    set_status(cluster, "apps/replicasets", obj, status)
    if failure:
        raise failure


def _failed(cluster: Cluster, obj: Object, failure: ApiError) -> Object:
    held = ((obj.get("status") or {}).get("conditions") or [{}])[0]
    return {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": held.get("lastTransitionTime") or cluster.clock.stamp(),
        "reason": "FailedCreate",
        "message": failure.message,
    }


async def _keep(cluster: Cluster, obj: Object, wanted: int, by: str) -> ApiError | None:
    """Create or delete Pods until there are as many as wanted; return the refusal that stopped it."""
    held = owned(cluster, obj, "/pods")
    pods = cluster.resource("", "pods")
    for pod in held[wanted:]:
        await delete(cluster, pods, pod, by=by)
    for _ in range(wanted - len(held)):
        try:
            await _create(cluster, obj, pod_of(obj), by)
        except ApiError as error:
            return error
    return None


def pod_of(obj: Object, name: str = "") -> Object:
    """Return the Pod that a workload's template describes, with a name or with one that the server completes."""
    template = obj["spec"]["template"]
    held = template.get("metadata") or {}
    kept = {key: held[key] for key in ("labels", "annotations") if held.get(key)}
    meta = {
        **kept,
        "namespace": obj["metadata"]["namespace"],
        "ownerReferences": [owner(obj)],
        **({"name": name} if name else {"generateName": f"{obj['metadata']['name']}-"}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


async def _report(cluster: Cluster, obj: Object, by: str, failure: ApiError) -> None:
    """Write the Event by which people learn why there are no Pods; a refusal of the Event itself changes nothing."""
    meta, now = obj["metadata"], cluster.clock.stamp()
    about = {
        **{key: obj[key] for key in ("apiVersion", "kind")},
        **{key: meta[key] for key in ("name", "namespace", "uid")},
    }
    event = {
        "metadata": {
            "name": f"{meta['name'][:200]}.{crc32(failure.message.encode()):08x}",
            "namespace": meta["namespace"],
        },
        "involvedObject": about,
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating: {failure.message}",
        "source": {"component": by},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    with suppress(ApiError):
        await create(cluster, cluster.resource("", "events"), event, by=by)


def _counts(cluster: Cluster, obj: Object) -> tuple[int, int]:
    """Return how many Pods a workload has, and how many of them are ready."""
    statuses = [pod.get("status") or {} for pod in owned(cluster, obj, "/pods")]
    conditions = [one for status in statuses for one in status.get("conditions") or ()]
    ready = sum(1 for one in conditions if one["type"] == "Ready" and one["status"] == "True")
    return len(statuses), ready


async def stateful_set(cluster: Cluster, obj: Object) -> None:
    """Keep the numbered Pods of a StatefulSet."""
    wanted, name = obj["spec"].get("replicas", 1), obj["metadata"]["name"]
    held = {pod["metadata"]["name"]: pod for pod in owned(cluster, obj, "/pods")}
    pods = cluster.resource("", "pods")
    by = "statefulset-controller"
    for number in range(wanted):
        if f"{name}-{number}" not in held:
            made = pod_of(obj, f"{name}-{number}")
            labels = made["metadata"].get("labels") or {}
            numbered = {"statefulset.kubernetes.io/pod-name": f"{name}-{number}"}
            made["metadata"]["labels"] = {**labels, **numbered}
            await _create(cluster, obj, made, by)
    names = {f"{name}-{number}" for number in range(wanted)}
    for pod in held.values():
        if pod["metadata"]["name"] not in names:
            await delete(cluster, pods, pod, by=by)
    found, ready = _counts(cluster, obj)
    status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "replicas": found,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": found,
        "updatedReplicas": found,
        "currentRevision": f"{name}-1",
        "updateRevision": f"{name}-1",
    }
    set_status(cluster, "apps/statefulsets", obj, status)


async def _create(cluster: Cluster, obj: Object, pod: Object, by: str) -> None:
    try:
        await create(cluster, cluster.resource("", "pods"), pod, by=by)
    except ApiError as error:
        await _report(cluster, obj, by, error)
        raise


async def daemon_set(cluster: Cluster, obj: Object) -> None:
    """Keep one Pod of a DaemonSet: there is one node."""
    failure = await _keep(cluster, obj, 1, "daemon-set-controller")
    held, ready = _counts(cluster, obj)
    status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "desiredNumberScheduled": 1,
        "currentNumberScheduled": held,
        "updatedNumberScheduled": held,
        "numberReady": ready,
        "numberAvailable": ready,
        "numberMisscheduled": 0,
    }
    set_status(cluster, "apps/daemonsets", obj, status)
    if failure:
        raise failure


async def job(cluster: Cluster, obj: Object) -> datetime | None:
    """Make the Pods of a Job, count those that finished, and remove it when its time after that is over."""
    status = obj.get("status") or {}
    if status.get("completionTime"):
        return await _outlived(cluster, obj, status)
    if obj["spec"].get("suspend"):
        return None
    wanted = obj["spec"].get("completions") or 1
    held = owned(cluster, obj, "/pods")
    done = sum(1 for pod in held if (pod.get("status") or {}).get("phase") == "Succeeded")
    active = len(held) - done
    missing = min(obj["spec"].get("parallelism", 1), wanted - done) - active
    for _ in range(missing):
        await _create(cluster, obj, pod_of(obj), "job-controller")
        active += 1
    now = cluster.clock.stamp()
    made: Object = {
        "startTime": status.get("startTime", now),
        "ready": active,
        "uncountedTerminatedPods": {},
    }
    made |= {key: count for key, count in (("active", active), ("succeeded", done)) if count}
    if done >= wanted:
        made["completionTime"] = now
        made["conditions"] = [_complete(kind, now) for kind in ("SuccessCriteriaMet", "Complete")]
    set_status(cluster, "batch/jobs", obj, made)
    return None


def _complete(kind: str, now: str) -> Object:
    return {
        "type": kind,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": "CompletionsReached",
        "message": "Reached expected number of succeeded pods",
    }


async def _outlived(cluster: Cluster, obj: Object, status: Object) -> datetime | None:
    seconds = obj["spec"].get("ttlSecondsAfterFinished")
    end = parse_instant(status["completionTime"])
    if seconds is None or end is None:
        return None
    due = end + timedelta(seconds=seconds)
    if cluster.clock.now() < due:
        return due
    jobs = cluster.resource("batch", "jobs")
    await delete(
        cluster, jobs, obj, by="ttl-after-finished-controller", propagationPolicy="Background"
    )
    return None


BY = "deployment-controller"
HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
_SAFE = "bcdfghjklmnpqrstvwxz2456789"


async def deployment(cluster: Cluster, obj: Object) -> None:
    """Bring the ReplicaSets of a Deployment to where it wants them, and report."""
    held = owned(cluster, obj, "apps/replicasets")
    word = _word(obj["spec"]["template"])
    current = next((one for one in held if _hash(one) == word), None)
    wanted = obj["spec"].get("replicas", 1)
    if not obj["spec"].get("paused"):
        current = await _current_set(cluster, obj, current, held, word)
        await _scale(cluster, current, wanted)
        if (current.get("status") or {}).get("availableReplicas", 0) >= wanted:
            for old in held:
                if old["metadata"]["uid"] != current["metadata"]["uid"]:
                    await _scale(cluster, old, 0)
    _report_sets(cluster, obj, word)


def _hash(replica_set: Object) -> str:
    """Return the word of a ReplicaSet's template: the end of its name, where people took its labels away."""
    meta = replica_set["metadata"]
    return str((meta.get("labels") or {}).get(HASH) or meta["name"].rpartition("-")[2])


def _word(template: Object) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


async def _current_set(
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


def _report_sets(cluster: Cluster, obj: Object, word: str) -> None:
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
