"""The node that is none: Pods get a place and an address, look as if they ran, and those of Jobs look as if they had finished."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.clock import parse_instant

from .writing import put

if TYPE_CHECKING:
    from kpolicy_sandbox.cluster import Cluster

Object = dict[str, Any]
NODE = "sandbox"
_WORK = timedelta(seconds=2)


async def reconcile(cluster: Cluster, pod: Object) -> datetime | None:
    """Let a Pod run, and after a moment let it finish when it belongs to a Job."""
    status = pod.get("status") or {}
    if status.get("phase") in {"Succeeded", "Failed"}:
        return None
    if (pod.get("spec") or {}).get("schedulingGates"):
        return None
    if status.get("phase") != "Running":
        pod = put(cluster, "/pods", pod, lambda held: _running(cluster, held))
    if all(one["kind"] != "Job" for one in pod["metadata"].get("ownerReferences") or ()):
        return None
    started = parse_instant((pod.get("status") or {}).get("startTime")) or cluster.clock.now()
    if cluster.clock.now() < started + _WORK:
        return started + _WORK
    put(cluster, "/pods", pod, lambda held: _finished(cluster, held))
    return None


def _running(cluster: Cluster, pod: Object) -> Object:
    now = cluster.clock.stamp()
    number = int(pod["metadata"]["resourceVersion"])
    status = {
        **(pod.get("status") or {}),
        "phase": "Running",
        "conditions": [
            _condition(kind, now)
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ],
        "hostIP": "127.0.0.1",
        "podIP": f"10.244.{number // 250 % 250}.{number % 250 + 1}",
        "startTime": now,
        "containerStatuses": [
            {
                **_container(one),
                "ready": True,
                "started": True,
                "state": {"running": {"startedAt": now}},
            }
            for one in pod["spec"].get("containers") or ()
        ],
    }
    status["podIPs"] = [{"ip": status["podIP"]}]
    return {**pod, "spec": {"nodeName": NODE, **pod["spec"]}, "status": status}


def _finished(cluster: Cluster, pod: Object) -> Object:
    now = cluster.clock.stamp()
    start = pod["status"].get("startTime", now)
    ended = {
        "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": start, "finishedAt": now}
    }
    conditions = [
        {**one, "status": "False", "reason": "PodCompleted"}
        if one["type"] in {"Ready", "ContainersReady"}
        else one
        for one in pod["status"].get("conditions") or ()
    ]
    statuses = [
        {**_container(one), "ready": False, "started": False, "state": ended}
        for one in pod["spec"].get("containers") or ()
    ]
    status = {
        **pod["status"],
        "phase": "Succeeded",
        "conditions": conditions,
        "containerStatuses": statuses,
    }
    return {**pod, "status": status}


def _condition(kind: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}


def _container(container: Object) -> Object:
    image = container.get("image", "")
    return {
        "name": container["name"],
        "image": image,
        "imageID": "",
        "containerID": "",
        "restartCount": 0,
        "lastState": {},
    }
