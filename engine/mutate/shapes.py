"""Which lists of the built-in kinds are merged element by element, and by which keys: data, not code.

Taken from the patch strategy, merge key and list map keys in Kubernetes' published OpenAPI document. A list that is not named
here is replaced as a whole, and so are all lists of kinds that are not named (custom resources): nothing is guessed from a
list's content. Apart from `merge` so that a new API field is one line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.record import field, record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json


@record
class Shape:
    """What a merge has to know of a value.

    `keys` is None for anything but a merged list; empty for a list that is a set of scalars; else it names the fields that
    tell elements apart, the first being the one that counts. `fields` are those of the map, or of the list's elements.
    """

    keys: tuple[str, ...] | None = None
    fields: Mapping[str, Shape] = field(default_factory=dict)


def shape_of(value: Json) -> Shape | None:
    """Return the shape of an object of a built-in kind by its apiVersion and kind, None for any other value."""
    if not isinstance(value, dict):
        return None
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and isinstance(kind, str):
        return _KINDS.get((version, kind))
    return None


def _by(*keys: str, **fields: Shape) -> Shape:
    return Shape(keys, fields)


def _map(**fields: Shape) -> Shape:
    return Shape(None, fields)


_SET: Final = Shape(())
_METADATA: Final = _map(ownerReferences=_by("uid"), finalizers=_SET)
_CONDITIONS: Final = _map(conditions=_by("type"))

_CONTAINERS: Final = _by(
    "name",
    ports=_by("containerPort", "protocol"),
    env=_by("name"),
    volumeMounts=_by("mountPath"),
    volumeDevices=_by("devicePath"),
)
_POD_SPEC: Final = _map(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    volumes=_by("name"),
    imagePullSecrets=_by("name"),
    hostAliases=_by("ip"),
    topologySpreadConstraints=_by("topologyKey", "whenUnsatisfiable"),
    resourceClaims=_by("name"),
    schedulingGates=_by("name"),
)
_POD_STATUS: Final = _map(
    conditions=_by("type"), podIPs=_by("ip"), resourceClaimStatuses=_by("name")
)
_TEMPLATE: Final = _map(metadata=_METADATA, spec=_POD_SPEC)
_WORKLOAD: Final = _map(metadata=_METADATA, spec=_map(template=_TEMPLATE), status=_CONDITIONS)
_CRON_JOB: Final = _map(
    metadata=_METADATA,
    spec=_map(jobTemplate=_map(metadata=_METADATA, spec=_map(template=_TEMPLATE))),
)
_WITH_CONDITIONS: Final = _map(metadata=_METADATA, status=_CONDITIONS)
_WEBHOOKS: Final = _map(metadata=_METADATA, webhooks=_by("name", matchConditions=_by("name")))

_SPECIAL: Final[dict[tuple[str, str], Shape]] = {
    ("v1", "Pod"): _map(metadata=_METADATA, spec=_POD_SPEC, status=_POD_STATUS),
    ("v1", "PodTemplate"): _map(metadata=_METADATA, template=_TEMPLATE),
    ("v1", "ReplicationController"): _WORKLOAD,
    ("v1", "Service"): _map(
        metadata=_METADATA, spec=_map(ports=_by("port", "protocol")), status=_CONDITIONS
    ),
    ("v1", "ServiceAccount"): _map(metadata=_METADATA, secrets=_by("name")),
    ("v1", "Namespace"): _WITH_CONDITIONS,
    ("v1", "PersistentVolumeClaim"): _WITH_CONDITIONS,
    ("v1", "ComponentStatus"): _map(metadata=_METADATA, conditions=_by("type")),
    ("v1", "Node"): _map(
        metadata=_METADATA,
        spec=_map(podCIDRs=_SET),
        status=_map(addresses=_by("type"), conditions=_by("type")),
    ),
    ("apps/v1", "Deployment"): _WORKLOAD,
    ("apps/v1", "DaemonSet"): _WORKLOAD,
    ("apps/v1", "ReplicaSet"): _WORKLOAD,
    ("apps/v1", "StatefulSet"): _WORKLOAD,
    ("batch/v1", "Job"): _WORKLOAD,
    ("batch/v1", "CronJob"): _CRON_JOB,
    ("batch/v1beta1", "CronJob"): _CRON_JOB,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): _WITH_CONDITIONS,
    ("policy/v1", "PodDisruptionBudget"): _WITH_CONDITIONS,
    ("apiregistration.k8s.io/v1", "APIService"): _WITH_CONDITIONS,
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): _WITH_CONDITIONS,
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): _WITH_CONDITIONS,
    ("storage.k8s.io/v1", "CSINode"): _map(metadata=_METADATA, spec=_map(drivers=_by("name"))),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): _map(
        metadata=_METADATA, spec=_map(matchConditions=_by("name"), variables=_by("name"))
    ),
}

_METADATA_ONLY: Final = {
    "v1": "ConfigMap Endpoints Event LimitRange PersistentVolume ResourceQuota Secret",
    "apps/v1": "ControllerRevision",
    "admissionregistration.k8s.io/v1": "ValidatingAdmissionPolicyBinding",
    "apiextensions.k8s.io/v1": "CustomResourceDefinition",
    "autoscaling/v1": "HorizontalPodAutoscaler",
    "certificates.k8s.io/v1": "CertificateSigningRequest",
    "coordination.k8s.io/v1": "Lease",
    "discovery.k8s.io/v1": "EndpointSlice",
    "events.k8s.io/v1": "Event",
    "networking.k8s.io/v1": "Ingress IngressClass NetworkPolicy",
    "node.k8s.io/v1": "RuntimeClass",
    "rbac.authorization.k8s.io/v1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1": "PriorityClass",
    "storage.k8s.io/v1": "CSIDriver CSIStorageCapacity StorageClass VolumeAttachment",
}

_KINDS: Final = {
    (version, kind): _map(metadata=_METADATA)
    for version, kinds in _METADATA_ONLY.items()
    for kind in kinds.split()
} | _SPECIAL
