"""Fields that differ between a manifest and the stored object although nobody tampered: data only.

The merged default list of upstream, with its pod-level fields repeated below the places
where pod templates stand. The repetition is limited to fields that the API server fills in and that cannot widen what a
pod may do; `securityContext`, `resources` and `volumeMounts` are left out of it on purpose.
"""

from __future__ import annotations

from typing import Final

_EVERYWHERE: Final = (
    "metadata.namespace",
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.selfLink",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.uid",
    "metadata.finalizers",
    "status",
    "metadata.labels.app.kubernetes.io/instance",
    "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
    "metadata.annotations.namespace",
    "metadata.annotations.control-plane.alpha.kubernetes.io/leader",
    "metadata.annotations.deployment.kubernetes.io/revision",
    "metadata.annotations.deprecated.daemonset.template.generation",
)
_POD_DEFAULTS: Final = (
    "containers.*.imagePullPolicy",
    "containers.*.terminationMessagePath",
    "containers.*.terminationMessagePolicy",
    "containers.*.ports.*.protocol",
    "dnsPolicy",
    "restartPolicy",
    "schedulerName",
    "terminationGracePeriodSeconds",
)
_POD_PLACES: Final = ("spec.", "spec.template.spec.", "spec.jobTemplate.spec.template.spec.")

IGNORED_EVERYWHERE: Final = (
    *_EVERYWHERE,
    *(place + field for place in _POD_PLACES for field in _POD_DEFAULTS),
)

IGNORED_BY_KIND: Final[dict[str, tuple[str, ...]]] = {
    "Pod": (
        "spec.volumes.*.name",
        "spec.volumes.*.projected",
        "spec.volumes.*.configMap.defaultMode",
        "spec.containers.*.volumeMounts",
        "spec.tolerations",
        "spec.enableServiceLinks",
        "spec.preemptionPolicy",
        "spec.priority",
        "spec.serviceAccount",
    ),
    "Deployment": (
        "spec.progressDeadlineSeconds",
        "spec.revisionHistoryLimit",
        "spec.strategy",
        "spec.template.metadata.creationTimestamp",
    ),
    "CustomResourceDefinition": ("spec.conversion.strategy", "spec.names.listKind"),
    "Service": (
        "spec.ports.*.nodePort",
        "spec.clusterIP",
        "spec.clusterIPs.0",
        "spec.sessionAffinity",
        "spec.type",
        "spec.ipFamilies",
        "spec.ipFamilyPolicy",
        "spec.internalTrafficPolicy",
    ),
    "ClusterPolicy": (
        "metadata.annotations.pod-policies.kyverno.io/autogen-controllers",
        "spec.failurePolicy",
        "spec.background",
        "spec.validationFailureAction",
    ),
    "Policy": (
        "metadata.annotations.pod-policies.kyverno.io/autogen-controllers",
        "spec.failurePolicy",
        "spec.background",
        "spec.validationFailureAction",
    ),
    "ServiceAccount": ("secrets.*.name", "imagePullSecrets.*.name"),
    "Route": ("spec.host",),
}

SET_BY_THE_SERVER: Final[dict[str, dict[str, str]]] = {
    "Pod": {"spec.serviceAccountName": "default", "spec.serviceAccount": "default"},
    "Service": {"spec.ports.protocol": "TCP"},
}
"""Additions that count as unchanged only with exactly this value: elsewhere they would give rights away."""

NAMESPACE: Final = "metadata.namespace"
"""Ignored for all kinds but PolicyExceptions: copied elsewhere, an exception would excuse other people's objects."""
