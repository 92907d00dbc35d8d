"""Which kinds live in namespaces, known without a cluster, and the namespace of objects that name none.

Built-in kinds are a table; custom kinds are looked up among CustomResourceDefinitions that came with the input, and
are taken as namespaced otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.fields import part
from engine.model.kinds import KINDS

from .names import labels_of, name_of, namespace_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from engine.model import Object

DEFAULT = "default"

_CLUSTER = {
    "": "Namespace Node PersistentVolume ComponentStatus",
    "admissionregistration.k8s.io": "MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy "
    "ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "TokenReview SelfSubjectReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
    "kyverno.io": "GlobalContextEntry",
    "wgpolicyk8s.io": "ClusterPolicyReport",
    "reports.kyverno.io": "ClusterEphemeralReport",
    "openreports.io": "ClusterReport",
    "kpolicy.io": "GrantPolicy",
}
CLUSTER_KINDS = frozenset(
    {
        *((group, kind) for group, kinds in _CLUSTER.items() for kind in kinds.split()),
        *((one.group, one.kind) for one in KINDS if not one.is_namespaced),
    }
)


class Scopes:
    """Knows for each group and kind whether its objects live in namespaces."""

    def __init__(self, definitions: Iterable[Object] = ()) -> None:
        self._cluster = set(CLUSTER_KINDS)
        for definition in definitions:
            self._learn(definition)

    def _learn(self, definition: Object) -> None:
        spec = definition.get("spec")
        names = spec.get("names") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict):
            return
        key = (str(spec.get("group", "")), str(names.get("kind", "")))
        if spec.get("scope") == "Cluster":
            self._cluster.add(key)
        else:
            self._cluster.discard(key)

    def is_namespaced(self, api_version: str, kind: str) -> bool:
        """Return whether objects of this kind live in namespaces."""
        return (api_version.rpartition("/")[0], kind) not in self._cluster

    def placed(self, obj: Object) -> Object:
        """Return `obj` with namespace `default` where its kind needs one and it names none."""
        if namespace_of(obj):
            return obj
        if not self.is_namespaced(str(obj.get("apiVersion", "")), str(obj.get("kind", ""))):
            return obj
        return {**obj, "metadata": {**part(obj, "metadata"), "namespace": DEFAULT}}


# Namespaces and their labels, learnt from the Namespace objects that came with the input.


def labels_by_namespace(objects: Iterable[Object]) -> dict[str, Mapping[str, str]]:
    """Return the labels of every Namespace among `objects`, by its name."""
    return {name: labels_of(obj) for name, obj in namespaces_by_name(objects).items()}


def namespaces_by_name(objects: Iterable[Object]) -> dict[str, Object]:
    """Return every Namespace among `objects`, by its name."""
    return {
        name_of(obj): obj
        for obj in objects
        if obj.get("kind") == "Namespace" and obj.get("apiVersion") == "v1"
    }
