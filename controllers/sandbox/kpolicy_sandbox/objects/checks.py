"""What makes an object of a built-in kind invalid: its metadata for every kind, the few rules per kind that people run into.

Answers 422 with one cause per field, as Kubernetes words them. Not every rule of a real server is here; what is accepted here and
refused there shows in the tier that runs the same scenarios on a real one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import (
    Cause,
    field_cause,
    invalid,
    invalid_field,
    required_field,
    unsupported_field,
)
from kpolicy_sandbox.expressions import Expressions, needed

from .selectors import matches_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_NAMED = {"Namespace", "Service"}
_CONDITION_NAMES = frozenset(("object", "oldObject", "request", "authorizer"))
_FREE_NAMED = {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}


def check(resource: Resource, obj: Object, expressions: Expressions | None) -> None:
    """Raise ApiError 422 when the object is not valid, 501 when it takes CEL and there is none."""
    causes = [*_metadata(resource, obj["metadata"])]
    if resource.custom is None and (rule := _RULES.get(resource.kind)):
        causes += rule(obj)
    if resource.custom is None and (with_cel := _RULES_WITH_CEL.get(resource.kind)):
        causes += with_cel(obj, expressions)
    if causes:
        raise invalid(resource.kind, resource.group, obj["metadata"].get("name", ""), causes)


def _metadata(resource: Resource, meta: Object) -> Iterator[Cause]:
    yield from _name(resource, str(meta.get("name", "")))
    for key, value in (meta.get("labels") or {}).items():
        yield from _key("metadata.labels", key)
        if not _VALUE.fullmatch(value) or len(value) > 63:
            yield invalid_field("metadata.labels", value, VALUE_TEXT)
    for key in meta.get("annotations") or ():
        yield from _key("metadata.annotations", key.lower())
    for number, owner in enumerate(meta.get("ownerReferences") or ()):
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                yield required_field(
                    f"metadata.ownerReferences[{number}].{field}", f"{field} must not be empty"
                )


def _name(resource: Resource, name: str) -> Iterator[Cause]:
    if not name:
        yield required_field("metadata.name", "name or generateName is required")
    elif resource.kind in _FREE_NAMED:
        if "/" in name or "%" in name or name in {".", ".."}:
            yield invalid_field("metadata.name", name, "may not contain '/'")
    elif resource.kind in _LABEL_NAMED:
        if not _LABEL.fullmatch(name):
            yield invalid_field("metadata.name", name, LABEL_TEXT)
        elif len(name) > 63:
            yield invalid_field("metadata.name", name, "must be no more than 63 characters")
    elif not _SUBDOMAIN.fullmatch(name):
        yield invalid_field("metadata.name", name, SUBDOMAIN_TEXT)
    elif len(name) > 253:
        yield invalid_field("metadata.name", name, "must be no more than 253 characters")


def _key(path: str, key: str) -> Iterator[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        yield invalid_field(path, key, f"prefix part {SUBDOMAIN_TEXT}")
    if not name:
        yield invalid_field(path, key, "name part must be non-empty")
    elif not _QUALIFIED.fullmatch(name):
        yield invalid_field(path, key, KEY_TEXT)
    elif len(name) > 63:
        yield invalid_field(path, key, "name part must be no more than 63 characters")


def _pod(obj: Object) -> Iterator[Cause]:
    yield from _pod_spec(obj.get("spec") or {}, "spec")


def _pod_spec(spec: Object, path: str) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield required_field(f"{path}.containers")
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    seen: set[str] = set()
    for group in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(group) or ()):
            where = f"{path}.{group}[{number}]"
            yield from _container(container, where, volumes, seen)
    policies = ["Always", "OnFailure", "Never"]
    if spec.get("restartPolicy", "Always") not in policies:
        yield unsupported_field(f"{path}.restartPolicy", spec["restartPolicy"], policies)


def _container(container: Object, where: str, volumes: set[Any], seen: set[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required_field(f"{where}.name")
    elif not _LABEL.fullmatch(name):
        yield invalid_field(f"{where}.name", name, LABEL_TEXT)
    elif name in seen:
        yield field_cause("Duplicate", f"{where}.name", f'Duplicate value: "{name}"')
    seen.add(name)
    if not container.get("image"):
        yield required_field(f"{where}.image")
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") not in volumes:
            place = f"{where}.volumeMounts[{number}].name"
            yield field_cause("NotFound", place, f'Not found: "{mount.get("name", "")}"')


def _workload(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not spec.get("selector"):
        yield required_field("spec.selector")
    elif not matches_selector(spec["selector"], labels):
        yield invalid_field(
            "spec.template.metadata.labels", {}, "`selector` does not match template `labels`"
        )
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")
    restart = (template.get("spec") or {}).get("restartPolicy", "Always")
    if restart != "Always":
        yield unsupported_field("spec.template.spec.restartPolicy", restart, ["Always"])
    if isinstance(count := spec.get("replicas"), int) and count < 0:
        yield invalid_field("spec.replicas", count, "must be greater than or equal to 0")


def _job(obj: Object) -> Iterator[Cause]:
    template = (obj.get("spec") or {}).get("template") or {}
    yield from _job_template(template, "spec.template.spec")


def _job_template(template: Object, path: str) -> Iterator[Cause]:
    spec = template.get("spec") or {}
    yield from _pod_spec(spec, path)
    if spec.get("restartPolicy", "Always") == "Always":
        yield required_field(f"{path}.restartPolicy", 'valid values: "OnFailure", "Never"')


def _cron_job(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    if not spec.get("schedule"):
        yield required_field("spec.schedule")
    template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
    yield from _job_template(template, "spec.jobTemplate.spec.template.spec")


def _service(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    headless = spec.get("clusterIP") == "None" or spec.get("type") == "ExternalName"
    if not spec.get("ports") and not headless:
        yield required_field("spec.ports")


def _binding(obj: Object) -> Iterator[Cause]:
    reference = obj.get("roleRef") or {}
    if not reference.get("name"):
        yield required_field("roleRef.name")
    if reference.get("kind") not in {"Role", "ClusterRole"}:
        yield unsupported_field("roleRef.kind", reference.get("kind", ""), ["ClusterRole", "Role"])
    if obj.get("kind") != "ClusterRoleBinding":
        return
    for number, subject in enumerate(obj.get("subjects") or ()):
        if subject.get("kind") == "ServiceAccount" and not subject.get("namespace"):
            yield required_field(f"subjects[{number}].namespace")


def _config_map(obj: Object) -> Iterator[Cause]:
    for part in ("data", "binaryData"):
        for key in obj.get(part) or ():
            if not re.fullmatch(r"[-._a-zA-Z0-9]+", key):
                text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
                yield invalid_field(f"{part}[{key}]", key, text)


def _definition(obj: Object) -> Iterator[Cause]:
    spec = obj.get("spec") or {}
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field in ("plural", "kind"):
        if not names.get(field):
            yield required_field(f"spec.names.{field}")
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if obj["metadata"].get("name") != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        yield invalid_field("metadata.name", obj["metadata"].get("name", ""), why)
    if spec.get("scope") not in {"Namespaced", "Cluster"}:
        yield unsupported_field("spec.scope", spec.get("scope", ""), ["Cluster", "Namespaced"])
    if sum(1 for one in versions if one.get("storage")) != 1:
        why = "must have exactly one version marked as storage version"
        yield invalid_field("spec.versions", {}, why)
    for number, version in enumerate(versions):
        if not version.get("name"):
            yield required_field(f"spec.versions[{number}].name")
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required_field(
                f"spec.versions[{number}].schema.openAPIV3Schema", "schemas are required"
            )


def _webhooks(obj: Object, expressions: Expressions | None) -> Iterator[Cause]:
    for number, hook in enumerate(obj.get("webhooks") or ()):
        where = f"webhooks[{number}]"
        name = hook.get("name", "")
        if not _SUBDOMAIN.fullmatch(name) or name.count(".") < 2:
            yield invalid_field(
                f"{where}.name",
                name,
                "should be a domain with at least three segments separated by dots",
            )
        effects = ["None", "NoneOnDryRun"]
        if not hook.get("sideEffects"):
            yield required_field(f"{where}.sideEffects", "must specify one of None, NoneOnDryRun")
        elif hook["sideEffects"] not in effects:
            yield unsupported_field(f"{where}.sideEffects", hook["sideEffects"], effects)
        if not hook.get("admissionReviewVersions"):
            yield required_field(
                f"{where}.admissionReviewVersions", "must specify one of v1, v1beta1"
            )
        if not 1 <= hook.get("timeoutSeconds", 10) <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield invalid_field(f"{where}.timeoutSeconds", hook["timeoutSeconds"], why)
        yield from _client(hook.get("clientConfig") or {}, f"{where}.clientConfig")
        for place, condition in enumerate(hook.get("matchConditions") or ()):
            yield from _condition(condition, f"{where}.matchConditions[{place}]", expressions)


def _condition(condition: Object, where: str, expressions: Expressions | None) -> Iterator[Cause]:
    text = condition.get("expression", "")
    if not text:
        yield required_field(f"{where}.expression")
        return
    try:
        foreign = needed(expressions).compile(text).names - _CONDITION_NAMES
    except ValueError as error:
        yield invalid_field(f"{where}.expression", text, f"compilation failed: {error}")
        return
    if foreign:
        why = f"compilation failed: undeclared reference to '{min(foreign)}'"
        yield invalid_field(f"{where}.expression", text, why)


def _client(config: Object, where: str) -> Iterator[Cause]:
    url, service = config.get("url"), config.get("service")
    if bool(url) == bool(service):
        yield required_field(where, "exactly one of url or service is required")
    elif url and not str(url).startswith("https://"):
        yield invalid_field(f"{where}.url", url, "'https' is the only allowed URL scheme")
    elif service and not (service.get("name") and service.get("namespace")):
        yield required_field(f"{where}.service.name", "a service needs a name and a namespace")


def _native_policy(obj: Object, expressions: Expressions | None) -> Iterator[Cause]:
    """Yield what is wrong with an admission policy or its binding; its expressions must compile."""
    for path, message in needed(expressions).faults(obj):
        yield field_cause(message.partition(" value")[0], path, message)


_RULES: dict[str, Callable[[Object], Iterator[Cause]]] = {
    "Pod": _pod,
    "Deployment": _workload,
    "ReplicaSet": _workload,
    "StatefulSet": _workload,
    "DaemonSet": _workload,
    "Job": _job,
    "CronJob": _cron_job,
    "Service": _service,
    "RoleBinding": _binding,
    "ClusterRoleBinding": _binding,
    "ConfigMap": _config_map,
    "Secret": _config_map,
    "CustomResourceDefinition": _definition,
}
_RULES_WITH_CEL: dict[str, Callable[[Object, Expressions | None], Iterator[Cause]]] = {
    "MutatingWebhookConfiguration": _webhooks,
    "ValidatingWebhookConfiguration": _webhooks,
    "MutatingAdmissionPolicy": _native_policy,
    "MutatingAdmissionPolicyBinding": _native_policy,
    "ValidatingAdmissionPolicy": _native_policy,
    "ValidatingAdmissionPolicyBinding": _native_policy,
}
