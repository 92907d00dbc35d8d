"""Defaults of Pods: of their containers, probes and volumes, whoever makes them."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def fill(target: Object, **values: Any) -> None:
    """Set fields that are not there, or null."""
    for key, value in values.items():
        if target.get(key) is None:
            target[key] = value


def pod(obj: Object) -> None:
    """Fill a Pod."""
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    pod_spec(spec)
    fill(spec, enableServiceLinks=True)
    fill(obj.setdefault("status", {}), phase="Pending", qosClass=_quality(spec))


def _quality(spec: Object) -> str:
    resources = [one.get("resources") or {} for one in spec.get("containers") or ()]
    if not any(one.get("limits") or one.get("requests") for one in resources):
        return "BestEffort"
    full = all(
        {"cpu", "memory"} <= (one.get("limits") or {}).keys()
        and one.get("limits") == one.get("requests")
        for one in resources
    )
    return "Guaranteed" if full else "Burstable"


def pod_spec(spec: Object) -> None:
    """Fill the spec of a Pod or of a template."""
    fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        terminationGracePeriodSeconds=30,
        securityContext={},
        schedulerName="default-scheduler",
    )
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(group) or ():
            _container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _volume(volume)


def _container(container: Object, *, host_network: bool) -> None:
    fill(
        container,
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
        resources={},
        imagePullPolicy=_pull_policy(str(container.get("image", ""))),
    )
    resources = container["resources"]
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for name, value in limits.items():
            requests.setdefault(name, value)
    for port in container.get("ports") or ():
        fill(port, protocol="TCP")
        if host_network and port.get("containerPort"):
            fill(port, hostPort=port["containerPort"])
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(probe):
            _probe(container[probe])
    for env in container.get("env") or ():
        if reference := (env.get("valueFrom") or {}).get("fieldRef"):
            fill(reference, apiVersion="v1")


def _pull_policy(image: str) -> str:
    if "@" in image:
        return "IfNotPresent"
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if tag in {"", "latest"} else "IfNotPresent"


def _probe(probe: Object) -> None:
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    if http := probe.get("httpGet"):
        fill(http, path="/", scheme="HTTP")
    if grpc := probe.get("grpc"):
        fill(grpc, service="")


def _volume(volume: Object) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(source) is not None:
            fill(volume[source], defaultMode=420)
    for part in (volume.get("projected") or {}).get("sources") or ():
        if part.get("serviceAccountToken") is not None:
            fill(part["serviceAccountToken"], expirationSeconds=3600)
    if volume.get("hostPath") is not None:
        fill(volume["hostPath"], type="")
