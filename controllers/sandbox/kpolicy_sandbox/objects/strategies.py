"""What the API server itself does to objects of single kinds: addresses for Services, labels for Jobs, finalizers for Namespaces.

`admit` stands where a real server's built-in admission plugins stand, before the webhooks; `prepare_create` after them.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from kpolicy_sandbox.cluster import Cluster
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
_TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{why}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for why in ("not-ready", "unreachable")
]
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_GENERATIONS = {"apps", "batch", "networking.k8s.io", "policy", "admissionregistration.k8s.io"}


def admit(resource: Resource, obj: Object) -> Object:
    """Return a new object as built-in admission leaves it."""
    if resource.storage != "/pods":
        return obj
    spec = dict(obj.get("spec") or {})
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    held = spec.get("tolerations") or []
    keys = {one.get("key") for one in held}
    spec["tolerations"] = [*held, *(one for one in _TOLERATIONS if one["key"] not in keys)]
    return {**obj, "spec": spec}


def prepare_create(cluster: Cluster, resource: Resource, obj: Object) -> Object:
    """Return a new object as its strategy prepares it; it has its name and UID already."""
    if resource.has_status and resource.kind not in {"Node", "Pod"}:
        obj = {key: value for key, value in obj.items() if key != "status"}
    if resource.custom is not None:
        return obj
    preparer = _PREPARERS.get(resource.kind)
    return preparer(cluster, obj) if preparer else obj


def prepare_update(resource: Resource, obj: Object) -> Object:
    """Return a changed object as its strategy prepares it."""
    return _secret(None, obj) if resource.storage == "/secrets" else obj


def counts_generations(resource: Resource) -> bool:
    """Tell whether objects of this resource have `metadata.generation`."""
    if resource.custom is not None or resource.kind == "CustomResourceDefinition":
        return True
    return resource.group in _GENERATIONS and resource.kind != "ControllerRevision"


def _namespace(_: Cluster, obj: Object) -> Object:
    labels = {**obj["metadata"].get("labels", {})}
    labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    return {
        **obj,
        "metadata": {**obj["metadata"], "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _service(cluster: Cluster, obj: Object) -> Object:
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or spec.get("clusterIP"):
        if address := spec.get("clusterIP"):
            spec = {**spec, "clusterIPs": [address]}
        return {**obj, "spec": spec, "status": {"loadBalancer": {}}}
    number = int(cluster.store.fact("service-addresses") or 10) + 1
    cluster.store.set_fact("service-addresses", str(number))
    address = f"10.96.{number // 250 % 250}.{number % 250 + 1}"
    spec = {**spec, "clusterIP": address, "clusterIPs": [address]}
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def _secret(_: Cluster | None, obj: Object) -> Object:
    texts = obj.get("stringData")
    if not texts:
        return obj
    data = {**(obj.get("data") or {})}
    data.update({key: base64.b64encode(text.encode()).decode() for key, text in texts.items()})
    return {**{key: value for key, value in obj.items() if key != "stringData"}, "data": data}


def _job(_: Cluster, obj: Object) -> Object:
    spec = obj["spec"]
    if spec.get("manualSelector"):
        return obj
    uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    labels = {
        **(meta.get("labels") or {}),
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    spec = {
        **spec,
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
        "template": {**template, "metadata": {**meta, "labels": labels}},
    }
    return {**obj, "spec": spec}


def _pod(_: Cluster, obj: Object) -> Object:
    status = obj.get("status") or {}
    kept = {key: status[key] for key in ("phase", "qosClass") if key in status}
    return {**obj, "status": {**kept, "phase": "Pending"}}


def _crd(_: Cluster | None, obj: Object) -> Object:
    """Accept names and establish at once; the finalizer lets the objects go before their definition."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    stamp = meta.get("creationTimestamp")
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": stamp,
        }
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    stored = [one.get("name") for one in spec.get("versions") or () if one.get("storage")]
    finalizers = meta.get("finalizers") or []
    if not meta.get("deletionTimestamp") and CRD_FINALIZER not in finalizers:
        meta = {**meta, "finalizers": [*finalizers, CRD_FINALIZER]}
    status = {
        "acceptedNames": spec.get("names"),
        "conditions": conditions,
        "storedVersions": stored,
    }
    return {**obj, "metadata": meta, "status": status}


_PREPARERS: dict[str, Callable[[Any, Object], Object]] = {
    "Namespace": _namespace,
    "Service": _service,
    "Secret": _secret,
    "Job": _job,
    "Pod": _pod,
    "CustomResourceDefinition": _crd,
}
