"""How the report store runs in a cluster: its account, what it may do, its Pod and volume, and the APIServices that lead to it.

The account may ask what people may do and read by what the API server is known; of what it may change there are the two
APIServices by name. One Pod with a volume keeps reports in SQLite; where a Secret names a PostgreSQL database there may be several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import CLASSIC_REPORTS, OPENREPORTS
from controllers.manifests.choice import labels_of, selector_of
from controllers.manifests.rbac import GROUP
from controllers.manifests.rbac.rules import rule

from . import SCRATCH, UNPRIVILEGED_POD, calls_out, chosen_for_pods, confined, headed, probe

if TYPE_CHECKING:
    from controllers.manifests.choice import Choice
    from engine.model import Object

NAME: Final = "kpolicy-report-store"
PORT: Final = 9444
DSN: Final = "KPOLICY_REPORTS_DSN"
"""The environment's name for the address of a PostgreSQL database, password and all."""

DSN_KEY: Final = "dsn"
FOLDER: Final = "/var/lib/kpolicy"
DATABASE: Final = f"{FOLDER}/reports.db"
SELECTOR: Final = selector_of("report-store")
_LABELS: Final = labels_of("report-store")
_KINDS: Final = (CLASSIC_REPORTS.namespaced, OPENREPORTS.namespaced)
_PRIORITY: Final = 100


def api_service_names() -> tuple[str, ...]:
    """Return the names of the APIServices of the store."""
    return tuple(f"{kind.version}.{kind.group}" for kind in _KINDS)


def objects(choice: Choice) -> list[Object]:
    """Return everything that runs the store, each after those that it needs; the APIServices come last."""
    namespace = choice.namespace
    return [
        _head("v1", "ServiceAccount", namespace),
        {**_head(f"{GROUP}/v1", "ClusterRole"), "rules": _rules()},
        _bound("ClusterRoleBinding", "ClusterRole", NAME, "", namespace),
        _bound(
            "RoleBinding",
            "Role",
            "extension-apiserver-authentication-reader",
            "kube-system",
            namespace,
        ),
        _service(namespace),
        _network_policy(namespace),
        _stateful_set(choice),
        *(_api_service(kind.group, kind.version, namespace) for kind in _KINDS),
    ]


def _rules() -> list[Object]:
    return [
        rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
        rule("apiregistration.k8s.io", ("apiservices",), ("get", "patch"), *api_service_names()),
    ]


def _bound(kind: str, role_kind: str, role: str, place: str, namespace: str) -> Object:
    return {
        **_head(f"{GROUP}/v1", kind, place),
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _service(namespace: str) -> Object:
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}
    return {
        **_head("v1", "Service", namespace),
        "spec": {"type": "ClusterIP", "selector": {**SELECTOR}, "ports": [port]},
    }


def _network_policy(namespace: str) -> Object:
    """Return the NetworkPolicy: in come requests, out go DNS, HTTPS and PostgreSQL."""
    return {
        **_head("networking.k8s.io/v1", "NetworkPolicy", namespace),
        "spec": {
            "podSelector": {"matchLabels": {**SELECTOR}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"port": PORT, "protocol": "TCP"}]}],
            "egress": calls_out(443, 5432, 6443),
        },
    }


def _stateful_set(choice: Choice) -> Object:
    claim = {
        "metadata": {"name": "reports"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": choice.report_storage}},
        },
    }
    return {
        **_head("apps/v1", "StatefulSet", choice.namespace),
        "spec": {
            "serviceName": NAME,
            "selector": {"matchLabels": {**SELECTOR}},
            "template": {"metadata": {"labels": {**_LABELS}}, "spec": _pod(choice)},
            "volumeClaimTemplates": [claim],
        },
    }


def _pod(choice: Choice) -> Object:
    return {
        "serviceAccountName": NAME,
        "securityContext": {**UNPRIVILEGED_POD, "fsGroup": UNPRIVILEGED_POD["runAsGroup"]},
        "containers": [_container(choice)],
        "volumes": [{**SCRATCH}],
        **chosen_for_pods(choice),
    }


def arguments(port: int = PORT, database: str = DATABASE) -> list[str]:
    """Return the command line of the store, for its Pod and for whoever proves what it promises."""
    return [f"--port={port}", f"--database={database}"]


def _container(choice: Choice) -> Object:
    field = {"fieldRef": {"fieldPath": "metadata.namespace"}}
    environment: list[Object] = [{"name": "KYVERNO_NAMESPACE", "valueFrom": field}]
    if choice.report_database_secret:
        reference = {"name": choice.report_database_secret, "key": DSN_KEY}
        environment.append({"name": DSN, "valueFrom": {"secretKeyRef": reference}})
    return {
        "name": "report-store",
        "image": choice.image,
        "command": ["/app/bin/python", "-I", "-u", "-m", "controllers.report_store"],
        "args": arguments(),
        "env": environment,
        "ports": [{"name": "https", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": probe("/livez", periodSeconds=30),
        "readinessProbe": probe("/readyz", periodSeconds=5),
        **confined(choice, {"name": "reports", "mountPath": FOLDER}),
    }


def _api_service(group: str, version: str, namespace: str) -> Object:
    made = _head("apiregistration.k8s.io/v1", "APIService")
    made["metadata"]["name"] = f"{version}.{group}"
    # keeps the API server from leading back to the definition of a kind that is installed, too
    made["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"] = "false"
    return {
        **made,
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": _PRIORITY,
            "versionPriority": _PRIORITY,
            "service": {"name": NAME, "namespace": namespace, "port": 443},
        },
    }


def _head(api_version: str, kind: str, namespace: str = "") -> Object:
    return headed(_LABELS, api_version, kind, NAME, namespace)
