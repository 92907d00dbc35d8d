"""Checks of what a pod takes from its node: namespaces, paths, ports, volumes, sysctls and hosts of probes.

Each check is a function of a pod that answers a Violation or None. Reasons and paths are those of Kubernetes'
pod-security-admission as Kyverno reports them (rows A-76, P-47).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .pod import Container, Fault, Pod, Violation, block, entries, flag, number, violation, word

_NAMESPACES: Final = ("hostNetwork", "hostPID", "hostIPC")
_ALLOWED_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
_OTHER_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS: Final = ("postStart", "preStop")
_ACTIONS: Final = ("httpGet", "tcpSocket")


def host_namespaces(pod: Pod) -> Violation | None:
    """Forbid the node's network, process and IPC namespaces."""
    return violation(
        "host namespaces",
        [Fault(f"spec.{name}", bad=True) for name in _NAMESPACES if flag(pod.spec, name)],
    )


def host_path_volumes(pod: Pod) -> Violation | None:
    """Forbid volumes that are paths of the node."""
    return violation(
        "hostPath volumes",
        [
            Fault(f"spec.volumes[{index}].hostPath", bad=word(block(volume, "hostPath"), "path"))
            for index, volume in enumerate(entries(pod.spec, "volumes"))
            if volume.get("hostPath") is not None
        ],
    )


def restricted_volumes(pod: Pod) -> Violation | None:
    """Allow only volume types that cannot reach the node or other pods' storage."""
    return violation(
        "restricted volume types",
        [
            Fault(f"spec.volumes[{index}].{_volume_type(volume)}")
            for index, volume in enumerate(entries(pod.spec, "volumes"))
            if all(volume.get(name) is None for name in _ALLOWED_VOLUMES)
        ],
    )


def _volume_type(volume: Mapping[str, Any]) -> str:
    return next((name for name in _OTHER_VOLUMES if volume.get(name) is not None), "unknown")


def host_ports(pod: Pod) -> Violation | None:
    """Forbid ports of the node."""
    return violation(
        "hostPort",
        [
            Fault(f"{container.path}.ports[{index}].hostPort", taken, container=container)
            for container in pod.containers
            for index, port in enumerate(entries(container.body, "ports"))
            if (taken := number(port, "hostPort"))
        ],
        names=False,
    )


def sysctls(allowed: frozenset[str]) -> Callable[[Pod], Violation | None]:
    """Make the check that only `allowed` kernel parameters are set."""

    def check(pod: Pod) -> Violation | None:
        return violation(
            "forbidden sysctls",
            [
                Fault(f"spec.securityContext.sysctls[{index}].name", bad=name)
                for index, entry in enumerate(entries(pod.security, "sysctls"))
                if (name := word(entry, "name")) not in allowed
            ],
        )

    return check


def host_probes(pod: Pod) -> Violation | None:
    """Forbid probes and lifecycle hooks that call another host than the pod.

    The violation names no field: Kyverno lists none, and so no exclusion can excuse it.
    """
    if any(_calls_a_host(container) for container in pod.containers):
        return Violation("probe or lifecycle host", ())
    return None


def _calls_a_host(container: Container) -> bool:
    body = container.body
    for name in _PROBES:
        if body.get(name) is not None and _has_host(block(body, name)):
            return True
    if body.get("lifecycle") is None:
        return False
    lifecycle = block(body, "lifecycle")
    return any(_has_host(block(lifecycle, name)) for name in _HOOKS)


def _has_host(handler: Mapping[str, Any]) -> bool:
    return any(word(block(handler, action), "host") for action in _ACTIONS)
