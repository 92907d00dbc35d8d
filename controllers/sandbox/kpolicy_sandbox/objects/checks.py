"""What makes an object of a built-in kind invalid: its metadata for every kind, the few rules that people run into, what may not change.

Answers 422 with one cause per field, as Kubernetes words them. Not every rule of a real server is here; what is accepted here and
refused there shows in the tier that runs the same scenarios on a real one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors

from .extension_checks import check_definition, check_native_policy, check_webhooks
from .metadata_checks import check_metadata
from .pod_checks import PODS_AND_WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kpolicy_sandbox.expressions import Expressions
    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


def check(resource: Resource, obj: Object, expressions: Expressions | None) -> None:
    """Raise ApiError 422 when the object is not valid, 501 when it takes CEL and there is none."""
    causes = [*check_metadata(resource, obj["metadata"])]
    if resource.custom is None and (rule := _RULES.get(resource.kind)):
        causes += rule(obj)
    if resource.custom is None and (with_cel := _RULES_WITH_CEL.get(resource.kind)):
        causes += with_cel(obj, expressions)
    if causes:
        raise errors.invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def _service(obj: Object) -> Iterator[errors.Cause]:
    spec = obj.get("spec") or {}
    headless = spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"
    if not spec.get("ports") and not headless:
        yield errors.required_field("spec.ports")


def _binding(obj: Object) -> Iterator[errors.Cause]:
    reference = obj.get("roleRef") or {}
    if not reference.get("name"):
        yield errors.required_field("roleRef.name")
    if reference.get("kind") not in {"Role", "ClusterRole"}:
        yield errors.unsupported_field(
            "roleRef.kind", reference.get("kind", ""), ["ClusterRole", "Role"]
        )
    if obj.get("kind") != "ClusterRoleBinding":
        return
    for number, subject in enumerate(obj.get("subjects") or ()):
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield errors.required_field(f"subjects[{number}].namespace")


def _config_map(obj: Object) -> Iterator[errors.Cause]:
    for part in ("data", "binaryData"):
        for key in obj.get(part) or ():
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
                text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                yield errors.invalid_field(f"{part}[{key}]", key, text)


_RULES: dict[str, Callable[[Object], Iterator[errors.Cause]]] = {
    **PODS_AND_WORKLOADS,
    "Service": _service,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "ConfigMap": _config_map,
    "Secret": _config_map,
    "CustomResourceDefinition": check_definition,
}
_RULES_WITH_CEL: dict[str, Callable[[Object, Expressions | None], Iterator[errors.Cause]]] = {
    "MutatingWebhookConfiguration": check_webhooks,
    "ValidatingWebhookConfiguration": check_webhooks,
    "MutatingAdmissionPolicy": check_native_policy,
    "MutatingAdmissionPolicyBinding": check_native_policy,
    "ValidatingAdmissionPolicy": check_native_policy,
    "ValidatingAdmissionPolicyBinding": check_native_policy,
}
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
    causes = list(_update_causes(resource.kind, old, new))
    if causes:
        raise errors.invalid(resource.kind, resource.group, old["metadata"]["name"], causes)


def _update_causes(kind: str, old: Object, new: Object) -> Iterator[errors.Cause]:
    for path in _PATHS.get(kind, ()):
        before, after = _at(old, path), _at(new, path)
        if before is not None and before != after:
            yield errors.invalid_field(path, after, "field is immutable")
    if kind in {"RoleBinding", "ClusterRoleBinding"} and old.get("roleRef") != new.get("roleRef"):
        yield errors.invalid_field("roleRef", new.get("roleRef"), "cannot change roleRef")
    if kind in {"ConfigMap", "Secret"} and old.get("immutable"):
        for part in ("data", "binaryData", "immutable"):
            if old.get(part) != new.get(part):
                yield errors.forbidden_field(part, "field is immutable when `immutable` is set")
    if kind == "Pod" and _frozen_pod(old) != _frozen_pod(new):
        yield errors.forbidden_field("spec", _POD)
    if kind == "Secret" and old.get("type") != new.get("type"):
        yield errors.invalid_field("type", new.get("type"), "field is immutable")


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
