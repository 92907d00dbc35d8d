"""What `kubectl get` shows of the built-in kinds that people look at, column by column as a real API server prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.clock import parse_instant

from .tables import AGE, NAME, Cell, Column, age_of, custom_columns, duration_text, json_path

if TYPE_CHECKING:
    from datetime import datetime

    from kpolicy_sandbox.kinds import Resource

Object = dict[str, Any]


def _at(path: str, default: Any = "") -> Cell:
    find = json_path(path)

    def cell(obj: Object, _: datetime) -> Any:
        found = find(obj)
        return found[0] if found else default

    return cell


def _count(path: str) -> Cell:
    find = json_path(path)
    return lambda obj, _: len(found[0]) if (found := find(obj)) else 0


def _joined(path: str) -> Cell:
    find = json_path(path)
    return lambda obj, _: ",".join(str(one) for one in find(obj)) or "<none>"


def _ratio(ready: str, wanted: str) -> Cell:
    first, second = json_path(ready), json_path(wanted)
    return lambda obj, _: f"{(first(obj) or [0])[0]}/{(second(obj) or [0])[0]}"


def _selector(path: str) -> Cell:
    find = json_path(path)
    return lambda obj, _: _pairs((find(obj) or [{}])[0])


def _spec(obj: Object) -> Any:
    return obj.get("spec") or {}


def _pairs(selector: Any) -> str:
    labels = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _param_kind(obj: Object, _: datetime) -> str:
    kind = _spec(obj).get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"


def _param_reference(obj: Object, _: datetime) -> str:
    given = _spec(obj).get("paramRef")
    if not given:
        return "<unset>"
    return f"{given.get('namespace') or '*'}/{given.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Object, _: datetime) -> str:
        found = [one for one in obj.get("subjects") or () if one.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in found)
        return ", ".join(one["name"] for one in found)

    return cell


def _pod_ready(obj: Object, _: datetime) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    ready = sum(1 for one in statuses if one.get("ready"))
    return f"{ready}/{len((obj.get('spec') or {}).get('containers') or ())}"


def _pod_status(obj: Object, _: datetime) -> str:
    status = obj.get("status") or {}
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = status.get("reason") or status.get("phase") or "Unknown"
    return "Completed" if phase == "Succeeded" else phase


def _pod_restarts(obj: Object, _: datetime) -> int:
    statuses = (obj.get("status") or {}).get("containerStatuses") or ()
    return sum(one.get("restartCount", 0) for one in statuses)


def _job_status(obj: Object, _: datetime) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    for one in conditions:
        if one.get("status") == "True" and one["type"] in {"Complete", "Failed", "Suspended"}:
            return str(one["type"])
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else "Running"


def _job_duration(obj: Object, now: datetime) -> str:
    status = obj.get("status") or {}
    start = parse_instant(status.get("startTime"))
    if start is None:
        return ""
    end = parse_instant(status.get("completionTime")) or now
    return duration_text(int((end - start).total_seconds()))


def _service_ports(obj: Object, _: datetime) -> str:
    ports = _spec(obj).get("ports") or ()
    shown = [
        f"{one['port']}{':' + str(one['nodePort']) if one.get('nodePort') else ''}/{one.get('protocol', 'TCP')}"
        for one in ports
    ]
    return ",".join(shown) or "<none>"


def _event_seen(obj: Object, now: datetime) -> str:
    series = obj.get("series") or {}
    stamp = series.get("lastObservedTime") or obj.get("lastTimestamp") or obj.get("eventTime")
    return age_of(stamp or obj["metadata"].get("creationTimestamp"), now)


def _event_object(obj: Object, _: datetime) -> str:
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _node_status(obj: Object, _: datetime) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    shown = "Ready" if ready else "NotReady"
    return f"{shown},SchedulingDisabled" if _spec(obj).get("unschedulable") else shown


def _number(name: str, path: str) -> Column:
    return Column(name, _at(path, 0), "integer")


_TEMPLATE = ".spec.template.spec.containers[*]"
_WIDE = (
    Column("Containers", _joined(f"{_TEMPLATE}.name"), priority=1),
    Column("Images", _joined(f"{_TEMPLATE}.image"), priority=1),
    Column("Selector", _selector(".spec.selector"), priority=1),
)
_BINDING = (
    Column("Role", lambda obj, _: f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"),
    AGE,
    Column("Users", _subjects("User"), priority=1),
    Column("Groups", _subjects("Group"), priority=1),
    Column("ServiceAccounts", _subjects("ServiceAccount"), priority=1),
)
_CREATED = (Column("Created At", _at(".metadata.creationTimestamp", None), "date"),)
_WEBHOOKS = (Column("Webhooks", _count(".webhooks"), "integer"), AGE)

_NATIVE_BINDING = (
    Column("PolicyName", _at(".spec.policyName")),
    Column("ParamRef", _param_reference),
    AGE,
)
BUILTIN: dict[str, tuple[Column, ...]] = {
    "/pods": (
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        AGE,
        Column("IP", _at(".status.podIP", "<none>"), priority=1),
        Column("Node", _at(".spec.nodeName", "<none>"), priority=1),
        Column("Nominated Node", _at(".status.nominatedNodeName", "<none>"), priority=1),
        Column("Readiness Gates", _joined(".spec.readinessGates[*].conditionType"), priority=1),
    ),
    "/namespaces": (Column("Status", _at(".status.phase")), AGE),
    "/nodes": (
        Column("Status", _node_status),
        Column("Roles", lambda *_: "<none>"),
        AGE,
        Column("Version", _at(".status.nodeInfo.kubeletVersion")),
    ),
    "/services": (
        Column("Type", _at(".spec.type")),
        Column("Cluster-IP", _at(".spec.clusterIP", "<none>")),
        Column("External-IP", _at(".spec.externalName", "<none>")),
        Column("Port(s)", _service_ports),
        AGE,
        Column("Selector", _selector(".spec.selector"), priority=1),
    ),
    "/configmaps": (Column("Data", _count(".data")), AGE),
    "/secrets": (Column("Type", _at(".type")), Column("Data", _count(".data")), AGE),
    "/serviceaccounts": (Column("Secrets", _count(".secrets")), AGE),
    "/events": (
        Column("Last Seen", _event_seen),
        Column("Type", _at(".type")),
        Column("Reason", _at(".reason")),
        Column("Object", _event_object),
        Column("Subobject", _at(".involvedObject.fieldPath"), priority=1),
        Column("Source", _at(".source.component"), priority=1),
        Column("Message", lambda obj, _: str(obj.get("message", obj.get("note", ""))).strip()),
        Column("Count", _at(".count", 1), "integer", priority=1),
    ),
    "apps/deployments": (
        Column("Ready", _ratio(".status.readyReplicas", ".spec.replicas")),
        _number("Up-to-date", ".status.updatedReplicas"),
        _number("Available", ".status.availableReplicas"),
        AGE,
        *_WIDE,
    ),
    "apps/replicasets": (
        _number("Desired", ".spec.replicas"),
        _number("Current", ".status.replicas"),
        _number("Ready", ".status.readyReplicas"),
        AGE,
        *_WIDE,
    ),
    "apps/statefulsets": (
        Column("Ready", _ratio(".status.readyReplicas", ".spec.replicas")),
        AGE,
        *_WIDE[:2],
    ),
    "apps/daemonsets": (
        _number("Desired", ".status.desiredNumberScheduled"),
        _number("Current", ".status.currentNumberScheduled"),
        _number("Ready", ".status.numberReady"),
        _number("Up-to-date", ".status.updatedNumberScheduled"),
        _number("Available", ".status.numberAvailable"),
        Column("Node Selector", _selector(".spec.template.spec.nodeSelector")),
        AGE,
        *_WIDE,
    ),
    "batch/jobs": (
        Column("Status", _job_status),
        Column("Completions", _ratio(".status.succeeded", ".spec.completions")),
        Column("Duration", _job_duration),
        AGE,
        *_WIDE,
    ),
    "rbac.authorization.k8s.io/roles": _CREATED,
    "rbac.authorization.k8s.io/clusterroles": _CREATED,
    "rbac.authorization.k8s.io/rolebindings": _BINDING,
    "rbac.authorization.k8s.io/clusterrolebindings": _BINDING,
    "apiextensions.k8s.io/customresourcedefinitions": _CREATED,
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": _WEBHOOKS,
    "admissionregistration.k8s.io/validatingwebhookconfigurations": _WEBHOOKS,
    "admissionregistration.k8s.io/validatingadmissionpolicies": (
        Column("Validations", _count(".spec.validations"), "integer"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    "admissionregistration.k8s.io/mutatingadmissionpolicies": (
        Column("Mutations", _count(".spec.mutations"), "integer"),
        Column("ParamKind", _param_kind),
        AGE,
    ),
    "admissionregistration.k8s.io/mutatingadmissionpolicybindings": _NATIVE_BINDING,
    "admissionregistration.k8s.io/validatingadmissionpolicybindings": _NATIVE_BINDING,
    "networking.k8s.io/networkpolicies": (
        Column("Pod-Selector", _selector(".spec.podSelector")),
        AGE,
    ),
}


def columns_of(resource: Resource) -> list[Column]:
    """Return the columns of a resource, the name first."""
    if resource.custom is not None:
        return custom_columns(resource.custom.printer_columns)
    return [NAME, *BUILTIN.get(resource.storage, (AGE,))]
