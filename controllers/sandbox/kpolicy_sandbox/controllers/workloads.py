"""Workloads: Deployments make ReplicaSets, these and StatefulSets, DaemonSets and Jobs make Pods; all report what became of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zlib import crc32

from kpolicy_sandbox.clock import parse_instant
from kpolicy_sandbox.errors import ApiError

from .rollout import deployment
from .writing import create, delete, owned, owner, set_status

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

__all__ = ["daemon_set", "deployment", "job", "replica_set", "stateful_set"]

Object = dict[str, Any]
_CONDITION = "ReplicaFailure"


async def replica_set(cluster: Cluster, obj: Object) -> None:
    """Keep as many Pods as a ReplicaSet wants."""
    if obj["metadata"].get("deletionTimestamp"):
        return
    wanted = obj["spec"].get("replicas", 1)
    failure = await _keep(cluster, obj, wanted, "replicaset-controller")
    held = owned(cluster, obj, "/pods")
    ready = sum(1 for pod in held if _is_ready(pod))
    status: Object = {
        "replicas": len(held),
        "observedGeneration": obj["metadata"].get("generation", 1),
    }
    status |= {key: len(held) for key in ("fullyLabeledReplicas",) if held}
    status |= {key: ready for key in ("readyReplicas", "availableReplicas") if ready}
    if failure:
        status["conditions"] = [_failed(cluster, obj, failure)]
    set_status(cluster, "apps/replicasets", obj, status)
    if failure:
        raise failure


def _failed(cluster: Cluster, obj: Object, failure: ApiError) -> Object:
    held = ((obj.get("status") or {}).get("conditions") or [{}])[0]
    return {
        "type": _CONDITION,
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
            await create(
                cluster, pods, pod_of(obj, {"generateName": f"{obj['metadata']['name']}-"}), by=by
            )
        except ApiError as error:
            await _report(cluster, obj, by, error)
            return error
    return None


def pod_of(obj: Object, meta: Object) -> Object:
    """Return the Pod that a workload's template describes."""
    template = obj["spec"]["template"]
    held = template.get("metadata") or {}
    kept = {key: held[key] for key in ("labels", "annotations") if held.get(key)}
    meta = {
        **kept,
        "namespace": obj["metadata"]["namespace"],
        "ownerReferences": [owner(obj)],
        **meta,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


async def _report(cluster: Cluster, obj: Object, by: str, failure: ApiError) -> None:
    """Write the Event by which people learn why there are no Pods; a refusal of the Event itself changes nothing."""
    meta, now = obj["metadata"], cluster.clock.stamp()
    about = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
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
    try:
        await create(cluster, cluster.resource("", "events"), event, by=by)
    except ApiError:
        return


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def stateful_set(cluster: Cluster, obj: Object) -> None:
    """Keep the numbered Pods of a StatefulSet."""
    if obj["metadata"].get("deletionTimestamp"):
        return
    wanted, name = obj["spec"].get("replicas", 1), obj["metadata"]["name"]
    held = {pod["metadata"]["name"]: pod for pod in owned(cluster, obj, "/pods")}
    pods = cluster.resource("", "pods")
    by = "statefulset-controller"
    for number in range(wanted):
        if f"{name}-{number}" not in held:
            made = pod_of(obj, {"name": f"{name}-{number}"})
            labels = {
                **(made["metadata"].get("labels") or {}),
                "statefulset.kubernetes.io/pod-name": f"{name}-{number}",
            }
            made["metadata"]["labels"] = labels
            await _created(cluster, obj, made, by)
    names = {f"{name}-{number}" for number in range(wanted)}
    for pod in held.values():
        if pod["metadata"]["name"] not in names:
            await delete(cluster, pods, pod, by=by)
    found = owned(cluster, obj, "/pods")
    ready = sum(1 for pod in found if _is_ready(pod))
    status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "replicas": len(found),
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": len(found),
        "updatedReplicas": len(found),
        "currentRevision": f"{name}-1",
        "updateRevision": f"{name}-1",
    }
    set_status(cluster, "apps/statefulsets", obj, status)


async def _created(cluster: Cluster, obj: Object, pod: Object, by: str) -> None:
    try:
        await create(cluster, cluster.resource("", "pods"), pod, by=by)
    except ApiError as error:
        await _report(cluster, obj, by, error)
        raise


async def daemon_set(cluster: Cluster, obj: Object) -> None:
    """Keep one Pod of a DaemonSet: there is one node."""
    if obj["metadata"].get("deletionTimestamp"):
        return
    failure = await _keep(cluster, obj, 1, "daemon-set-controller")
    held = owned(cluster, obj, "/pods")
    ready = sum(1 for pod in held if _is_ready(pod))
    status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        "desiredNumberScheduled": 1,
        "currentNumberScheduled": len(held),
        "updatedNumberScheduled": len(held),
        "numberReady": ready,
        "numberAvailable": ready,
        "numberMisscheduled": 0,
    }
    set_status(cluster, "apps/daemonsets", obj, status)
    if failure:
        raise failure


async def job(cluster: Cluster, obj: Object) -> datetime | None:
    """Make the Pods of a Job, count those that finished, and remove it when its time after that is over."""
    if obj["metadata"].get("deletionTimestamp"):
        return None
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
        await _created(
            cluster,
            obj,
            pod_of(obj, {"generateName": f"{obj['metadata']['name']}-"}),
            "job-controller",
        )
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
