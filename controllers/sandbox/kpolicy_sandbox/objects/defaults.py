"""Defaults of built-in kinds: what a real API server fills in before webhooks see an object.

Policies judge what is there after defaulting (imagePullPolicy, protocol, restartPolicy, strategy, …), hence written down here
for every kind that people's policies look at; the source is the defaults.go of each API group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from .pod_defaults import fill, pod
from .workload_defaults import WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


def with_defaults(resource: Resource, obj: Object) -> Object:
    """Return an object with its kind's defaults; the given one is left as it is."""
    filler = _FILLERS.get(resource.kind)
    if resource.custom is not None or filler is None:
        return obj
    copy: Object = orjson.loads(orjson.dumps(obj))
    filler(copy)
    return copy


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    fill(spec, type="ClusterIP", sessionAffinity="None")
    for port in spec.get("ports") or ():
        fill(port, protocol="TCP", targetPort=port.get("port"))
    if spec["type"] == "ExternalName":
        return
    fill(spec, internalTrafficPolicy="Cluster", ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")
    if spec["type"] in {"NodePort", "LoadBalancer"}:
        fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)


def _binding(obj: Object) -> None:
    fill(obj.setdefault("roleRef", {}), apiGroup="rbac.authorization.k8s.io")
    for subject in obj.get("subjects") or ():
        if subject.get("kind") != "ServiceAccount":
            fill(subject, apiGroup="rbac.authorization.k8s.io")


def _network_policy(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    both = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    fill(spec, policyTypes=both, podSelector={})
    for direction in ("ingress", "egress"):
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                fill(port, protocol="TCP")


def _claim(obj: Object) -> None:
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem")
    fill(obj.setdefault("status", {}), phase="Pending")


def _webhooks(obj: Object) -> None:
    mutating = obj.get("kind") == "MutatingWebhookConfiguration"
    for hook in obj.get("webhooks") or ():
        fill(
            hook,
            failurePolicy="Fail",
            matchPolicy="Equivalent",
            namespaceSelector={},
            objectSelector={},
            timeoutSeconds=10,
        )
        if mutating:
            fill(hook, reinvocationPolicy="Never")
        for rule in hook.get("rules") or ():
            fill(rule, scope="*")
        if service := (hook.get("clientConfig") or {}).get("service"):
            fill(service, port=443)


def _crd(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = str(names.get("kind", ""))
    fill(names, singular=kind.lower(), listKind=f"{kind}List")
    fill(spec, conversion={"strategy": "None"})


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    if name := obj["metadata"].get("name"):
        labels["kubernetes.io/metadata.name"] = name


_FILLERS: dict[str, Callable[[Object], None]] = {
    **WORKLOADS,
    "Pod": pod,
    "Service": _service,
    "Secret": lambda obj: fill(obj, type="Opaque"),
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "NetworkPolicy": _network_policy,
    "PersistentVolumeClaim": _claim,
    "ValidatingWebhookConfiguration": _webhooks,
    "MutatingWebhookConfiguration": _webhooks,
    "CustomResourceDefinition": _crd,
    "HorizontalPodAutoscaler": lambda obj: fill(obj.setdefault("spec", {}), minReplicas=1),
    "Namespace": _namespace,
}
