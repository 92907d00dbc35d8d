"""What makes a Pod invalid, or what makes Pods from a template, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox import errors

from .metadata_checks import LABEL, LABEL_TEXT
from .selectors import matches_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Object = dict[str, Any]


def _pod_spec(spec: Object, path: str) -> Iterator[errors.Cause]:
    if not spec.get("containers"):
        yield errors.required_field(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(group) or ()):
            where = f"{path}.{group}[{number}]"
            yield from _container(container, where, volumes, seen)
    policies = ["Always", "OnFailure", "Never"]
    if spec.get("restartPolicy", "Always") not in policies:
        yield errors.unsupported_field(f"{path}.restartPolicy", spec["restartPolicy"], policies)


def _container(
    container: Object, where: str, volumes: set[Any], seen: set[str]
) -> Iterator[errors.Cause]:
    name = container.get("name", "")
    if not name:
        yield errors.required_field(f"{where}.name")
    elif not LABEL.fullmatch(name):
        yield errors.invalid_field(f"{where}.name", name, LABEL_TEXT)
    elif name in seen:
        yield errors.field_cause("Duplicate", f"{where}.name", f'Duplicate value: "{name}"')
    seen.add(name)
    if not container.get("image"):
        yield errors.required_field(f"{where}.image")
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            place = f"{where}.volumeMounts[{number}].name"
            yield errors.field_cause("NotFound", place, f'Not found: "{mount.get("name", "")}"')


def _workload(obj: Object) -> Iterator[errors.Cause]:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not spec.get("selector"):
        yield errors.required_field("spec.selector")
    elif not matches_selector(spec["selector"], labels):
        yield errors.invalid_field(
            "spec.template.metadata.labels", {}, "`selector` does not match template `labels`"
        )
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")
    restart = (template.get("spec") or {}).get("restartPolicy", "Always")
    if restart != "Always":
        yield errors.unsupported_field("spec.template.spec.restartPolicy", restart, ["Always"])
    if isinstance(count := spec.get("replicas"), int) and count < 0:
        yield errors.invalid_field("spec.replicas", count, "must be greater than or equal to 0")


def _job_spec(job: Object, place: str) -> Iterator[errors.Cause]:
    spec, path = (job.get("template") or {}).get("spec") or {}, f"{place}.template.spec"
    yield from _pod_spec(spec, path)
    if spec.get("restartPolicy", "Always") == "Always":
        yield errors.required_field(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')


def _cron_job(obj: Object) -> Iterator[errors.Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("schedule"):
        yield errors.required_field("spec.schedule")
    yield from _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


PODS_AND_WORKLOADS: dict[str, Callable[[Object], Iterator[errors.Cause]]] = {
    "Pod": lambda obj: _pod_spec(obj.get("spec") or {}, "spec"),
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "DaemonSet": _workload,
    "Job": lambda obj: _job_spec(obj.get("spec") or {}, "spec"),
    "CronJob": _cron_job,
}
