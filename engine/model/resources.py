"""Resource names of kinds (`Pod` is `pods`), for policies that match resources while reviews name kinds.

A request of the API server says its resource. For objects from files it is worked out as clients do without discovery.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .json import Object

CLUSTER_SCOPED: Final[Mapping[str, str]] = {
    "APIService": "apiregistration.k8s.io",
    "CSIDriver": "storage.k8s.io",
    "CSINode": "storage.k8s.io",
    "CertificateSigningRequest": "certificates.k8s.io",
    "ClusterCleanupPolicy": "kyverno.io",
    "ClusterPolicy": "kyverno.io",
    "ClusterRole": "rbac.authorization.k8s.io",
    "ClusterRoleBinding": "rbac.authorization.k8s.io",
    "CustomResourceDefinition": "apiextensions.k8s.io",
    "FlowSchema": "flowcontrol.apiserver.k8s.io",
    "GlobalContextEntry": "kyverno.io",
    "GrantPolicy": "kpolicy.io",
    "IngressClass": "networking.k8s.io",
    "MutatingAdmissionPolicy": "admissionregistration.k8s.io",
    "MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io",
    "Namespace": "",
    "Node": "",
    "PersistentVolume": "",
    "PriorityClass": "scheduling.k8s.io",
    "PriorityLevelConfiguration": "flowcontrol.apiserver.k8s.io",
    "RuntimeClass": "node.k8s.io",
    "StorageClass": "storage.k8s.io",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
    "VolumeAttachment": "storage.k8s.io",
}
"""Kinds that never have a namespace, of those every cluster has, with their groups; others are known to a cluster only."""


def is_cluster_scoped(obj: Object) -> bool:
    """Tell whether an object is of one of these kinds."""
    kind = str(obj.get("kind"))
    return CLUSTER_SCOPED.get(kind) == str(obj.get("apiVersion") or "").rpartition("/")[0]


_ALREADY_PLURAL = frozenset({"endpoints", "podmetrics", "nodemetrics"})


@lru_cache(maxsize=2048)
def resource_of(kind: str) -> str:
    """Return the resource name that a kind has by Kubernetes' rule for guessing it."""
    name = kind.lower()
    if name in _ALREADY_PLURAL:
        return name
    if name.endswith("s"):
        return name + "es"
    if name.endswith("y"):
        return "gateways" if name == "gateway" else name[:-1] + "ies"
    return name + "s"
