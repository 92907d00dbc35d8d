"""Which fields of built-in kinds may not change once an object exists; answers 422 as Kubernetes words it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import Cause, forbidden_field, invalid, invalid_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
_PATHS = {
    "Deployment": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "DaemonSet": ("spec.selector",),
    "Job": ("spec.selector", "spec.template", "spec.completions", "spec.completionMode"),
    "PersistentVolumeClaim": ("spec.storageClassName", "spec.volumeName"),
    "StorageClass": ("provisioner", "parameters"),
    "PriorityClass": ("value",),
}
_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_update(resource: Resource, old: Object, new: Object) -> None:
    """Raise ApiError 422 when a change touches what may not change."""
    if resource.custom is not None:
        return
    causes = list(_causes(resource.kind, old, new))
    if causes:
        raise invalid(resource.kind, resource.group, old["metadata"]["name"], causes)


def _causes(kind: str, old: Object, new: Object) -> Iterator[Cause]:
    for path in _PATHS.get(kind, ()):
        before, after = _at(old, path), _at(new, path)
        if before is not None and before != after:
            yield invalid_field(path, after, "field is immutable")
    if kind in {"RoleBinding", "ClusterRoleBinding"} and old.get("roleRef") != new.get("roleRef"):
        yield invalid_field("roleRef", new.get("roleRef"), "cannot change roleRef")
    if kind in {"ConfigMap", "Secret"} and old.get("immutable"):
        for part in ("data", "binaryData", "immutable"):
            if old.get(part) != new.get(part):
                yield forbidden_field(part, "field is immutable when `immutable` is set")
    if kind == "Pod" and _frozen_pod(old) != _frozen_pod(new):
        yield forbidden_field("spec", _POD)
    if kind == "Secret" and old.get("type") != new.get("type"):
        yield invalid_field("type", new.get("type"), "field is immutable")


def _at(obj: Any, path: str) -> Any:
    for key in path.split("."):
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def _frozen_pod(pod: Object) -> Object:
    free = {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName",
            "schedulingGates", "ephemeralContainers"}  # fmt: skip
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key not in free}
    for group in ("containers", "initContainers"):
        spec[group] = [
            {key: value for key, value in one.items() if key not in {"image", "resources"}}
            for one in spec.get(group) or ()
        ]
    return spec
