"""How the controllers run in a cluster: namespace, settings, Deployment and what belongs to it.

For `kubectl kpolicy install`. Three replicas that spread over nodes, under the restricted Pod Security profile, closed to
everything but the API server's calls and metrics. The image is built from the Dockerfile beside this module.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube.accounts import ACCOUNTS, Job
from controllers.manifests import monitoring
from controllers.manifests.choice import DEFAULT, NAMESPACE, Choice, labels_of, selector_of
from engine import vocabulary

if TYPE_CHECKING:
    from engine.model import Object

PINNED: Final = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")
NAME: Final = "kyverno-admission-controller"
SERVICE: Final = "kyverno-svc"
CONFIG_MAP: Final = "kyverno"
HTTPS_PORT: Final = 9443
METRICS_PORT: Final = 8000
CLIENT_CA_SECRET: Final = "kpolicy-client-ca"  # noqa: S105 - the name of an object, not a secret
"""Where administrators put the authority of the certificate that the API server shows to webhooks, under `ca.crt`."""
CLIENT_CA_FOLDER: Final = "/etc/kpolicy/client-ca"
CLIENT_NAME: Final = "kube-apiserver-webhook-client"
"""The common name of that certificate, so that the authority of a cluster can be named that signs people's, too."""
NO_ENFORCER: Final = "admissions.enforcer/disabled"
"""Annotation of webhook configurations by which Azure's admission enforcer leaves them as they are."""
UNPRIVILEGED_POD: Final = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
UNPRIVILEGED_CONTAINER: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the restricted profile asks of Pods and containers, and a root that nobody writes."""
SCRATCH: Final = {"name": "scratch", "emptyDir": {"sizeLimit": "64Mi"}}
"""The volume that every Pod of ours may write."""
SELECTOR: Final = selector_of("admission-controller")
_LABELS: Final = labels_of("admission-controller")

RESOURCE_FILTERS: Final = (
    "[Event,*,*]", "[*/*,kube-system,*]", "[*/*,kube-public,*]", "[*/*,kube-node-lease,*]",
    "[Node,*,*]", "[Node/?*,*,*]", "[APIService,*,*]", "[APIService/?*,*,*]", "[TokenReview,*,*]",
    "[SubjectAccessReview,*,*]", "[SelfSubjectAccessReview,*,*]", "[Binding,*,*]", "[Pod/binding,*,*]",
    "[ReplicaSet,*,*]", "[ReplicaSet/?*,*,*]", "[EphemeralReport,*,*]", "[ClusterEphemeralReport,*,*]",
    "[PolicyReport,*,*]", "[ClusterPolicyReport,*,*]", "[Lease,*,*]", "[UpdateRequest,*,*]",
)  # fmt: skip
"""What policies do not see unless this list is changed (row W-20)."""


def is_pinned(image: str) -> bool:
    """Tell whether an image is named by its digest; what a tag names is for whoever may push to the registry to say."""
    return PINNED.fullmatch(image) is not None


def namespace_of(name: str = NAMESPACE) -> Object:
    """Return the namespace, which admits restricted Pods only."""
    level = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
    }
    made = _head("v1", "Namespace", name)
    made["metadata"]["labels"] = {**made["metadata"]["labels"], **level}
    return made


def config_map(namespace: str = NAMESPACE) -> Object:
    """Return the settings, with upstream's keys and defaults (row W-20)."""
    made = _head("v1", "ConfigMap", CONFIG_MAP, namespace)
    made["metadata"]["labels"]["app.kubernetes.io/component"] = "config"
    return {
        **made,
        "data": {
            "defaultRegistry": "docker.io",
            "enableDefaultRegistryMutation": "true",
            "excludeGroups": "system:nodes",
            "generateSuccessEvents": "false",
            "resourceFilters": "\n".join((*RESOURCE_FILTERS, f"[*/*,{namespace},*]")),
            "webhookAnnotations": f'{{"{NO_ENFORCER}":"true"}}',
            "webhooks": '{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name",'
            f'"operator":"NotIn","values":["kube-system","{namespace}"]}}]}}}}',
        },
    }


def deployment(choice: Choice = DEFAULT) -> Object:
    """Return the Deployment: replicas that all answer requests, of which one leads."""
    return {
        **_head("apps/v1", "Deployment", NAME, choice.namespace),
        "spec": {
            "replicas": choice.replicas,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {**SELECTOR}},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {"metadata": {"labels": {**_LABELS}}, "spec": _pod(choice)},
        },
    }


def _pod(choice: Choice) -> Object:
    made: Object = {
        "serviceAccountName": ACCOUNTS[Job.ADMISSION],
        "terminationGracePeriodSeconds": 45,
        "securityContext": {**UNPRIVILEGED_POD},
        "containers": [_container(choice)],
        "volumes": [
            {**SCRATCH},
            {
                "name": "client-ca",
                "secret": {
                    "secretName": CLIENT_CA_SECRET,
                    "optional": True,
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                },
            },
        ],
    }
    if choice.with_topology_spread:
        domains = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
        made["topologySpreadConstraints"] = [_spread(key) for key in domains]
    return {**made, **chosen_for_pods(choice)}


def chosen_for_pods(choice: Choice) -> Object:
    """Return what every Pod of ours says where it was chosen: pull secrets and a priority."""
    made: Object = {}
    if choice.pull_secrets:
        made["imagePullSecrets"] = [{"name": one} for one in choice.pull_secrets]
    if choice.priority_class:
        made["priorityClassName"] = choice.priority_class
    return made


def _spread(key: str) -> Object:
    return {
        "labelSelector": {"matchLabels": {**SELECTOR}},
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
    }


def arguments(
    port: int = HTTPS_PORT,
    metrics_port: int = METRICS_PORT,
    client_ca: str = f"{CLIENT_CA_FOLDER}/ca.crt",
) -> list[str]:
    """Return the command line of the controllers, for the Deployment and for whoever proves what it promises.

    The file of the authority need not be there: until it is, the API server is called at secret paths.
    """
    return [
        f"--port={port}",
        f"--metrics-port={metrics_port}",
        f"--client-ca={client_ca}",
        f"--client-name={CLIENT_NAME}",
    ]


def _container(choice: Choice) -> Object:
    return {
        "name": "kpolicy",
        "image": choice.image,
        "args": [
            *arguments(),
            *(["--reports=store"] if choice.with_report_store else []),
            *choice.flags,
        ],
        "env": [
            _from_field("KYVERNO_NAMESPACE", "metadata.namespace"),
            _from_field("KYVERNO_POD_NAME", "metadata.name"),
        ],
        "ports": [
            {"name": "https", "containerPort": HTTPS_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
        ],
        # The pause lets every API server notice that this replica is going before it stops answering.
        "lifecycle": {"preStop": {"exec": {"command": ["/app/bin/python", "-c", _PAUSE]}}},
        "livenessProbe": probe("/health/liveness", initialDelaySeconds=15, periodSeconds=30),
        "readinessProbe": probe("/health/readiness", periodSeconds=5),
        "startupProbe": probe("/health/liveness", periodSeconds=3, failureThreshold=20),
        **confined(choice, {"name": "client-ca", "mountPath": CLIENT_CA_FOLDER, "readOnly": True}),
    }


def confined(choice: Choice, *mounts: Object) -> Object:
    """Return what every container of ours is kept to: its resources, no privileges, and nothing to write but `mounts` and scratch."""
    return {
        "resources": {
            "requests": {"cpu": choice.cpu, "memory": choice.memory},
            "limits": {"memory": choice.memory_limit},
        },
        "securityContext": {**UNPRIVILEGED_CONTAINER},
        "volumeMounts": [{"name": SCRATCH["name"], "mountPath": "/tmp"}, *mounts],  # noqa: S108 - inside the container
    }


_PAUSE: Final = "import time; time.sleep(6)"


def _from_field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def probe(path: str, **timing: int) -> Object:
    """Return how a container of ours is asked whether it is well; `timing` are further fields of a probe."""
    return {
        "httpGet": {"path": path, "port": "https", "scheme": "HTTPS"},
        "timeoutSeconds": 5,
        **timing,
    }


def service(namespace: str = NAMESPACE) -> Object:
    """Return the Service that webhook configurations name."""
    return {
        **_head("v1", "Service", SERVICE, namespace),
        "spec": {
            "type": "ClusterIP",
            "selector": {**SELECTOR},
            "ports": [
                {"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"},
                {"name": "metrics", "port": METRICS_PORT, "protocol": "TCP", "targetPort": "metrics"},
            ],
        },
    }  # fmt: skip


def disruption_budget(namespace: str = NAMESPACE) -> Object:
    """Return the PodDisruptionBudget: replicas are moved one at a time."""
    return {
        **_head("policy/v1", "PodDisruptionBudget", NAME, namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {**SELECTOR}}},
    }


def network_policy(namespace: str = NAMESPACE) -> Object:
    """Return the NetworkPolicy: in come requests and metrics, out go DNS and HTTPS.

    API servers have no labels to select them by, so the port is open and callers are told apart above it.
    """
    return {
        **_head("networking.k8s.io/v1", "NetworkPolicy", NAME, namespace),
        "spec": {
            "podSelector": {"matchLabels": {**SELECTOR}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [{"port": HTTPS_PORT, "protocol": "TCP"}]},
                {
                    "from": [{"namespaceSelector": {"matchLabels": {"kpolicy.io/metrics": "true"}}}],
                    "ports": [{"port": METRICS_PORT, "protocol": "TCP"}],
                },
            ],
            "egress": calls_out(443, 6443),
        },
    }  # fmt: skip


def calls_out(*ports: int) -> list[Object]:
    """Return the rules of a NetworkPolicy that lets DNS out, and calls to some ports."""
    return [
        {"ports": [{"port": 53, "protocol": name} for name in ("UDP", "TCP")]},
        {"ports": [{"port": port, "protocol": "TCP"} for port in ports]},
    ]


def headed(
    labels: dict[str, str], api_version: str, kind: str, name: str, namespace: str = ""
) -> Object:
    """Return what every object of an installation begins with."""
    metadata = {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "labels": {**labels},
        "annotations": {vocabulary.OWNER: "kpolicy"},
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


_head: Final = partial(headed, _LABELS)


def service_monitor(namespace: str = NAMESPACE) -> Object:
    """Return the ServiceMonitor by which the Prometheus operator has the metrics scraped."""
    return {
        **_head("monitoring.coreos.com/v1", "ServiceMonitor", NAME, namespace),
        "spec": {
            "selector": {"matchLabels": {**SELECTOR}},
            "endpoints": [{"port": "metrics", "path": "/metrics", "interval": "30s"}],
        },
    }


def prometheus_rule(namespace: str = NAMESPACE) -> Object:
    """Return the PrometheusRule by which the Prometheus operator has alerts raised."""
    made = _head("monitoring.coreos.com/v1", "PrometheusRule", NAME, namespace)
    return {**made, "spec": monitoring.alert_rules()}


def dashboard(namespace: str = NAMESPACE) -> Object:
    """Return the ConfigMap in which Grafana's sidecar finds the dashboard."""
    made = _head("v1", "ConfigMap", "kpolicy-dashboard", namespace)
    made["metadata"]["labels"]["grafana_dashboard"] = "1"
    return {**made, "data": monitoring.dashboard_file()}


def controllers(choice: Choice = DEFAULT) -> list[Object]:
    """Return everything that runs the controllers, without roles and kinds."""
    wanted = {
        network_policy: choice.with_network_policy,
        disruption_budget: choice.with_disruption_budget,
        service_monitor: choice.with_service_monitor,
        prometheus_rule: choice.with_prometheus_rule,
        dashboard: choice.with_dashboard,
    }
    return [
        config_map(choice.namespace),
        service(choice.namespace),
        *(make(choice.namespace) for make, is_wanted in wanted.items() if is_wanted),
        deployment(choice),
    ]
