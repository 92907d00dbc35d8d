"""What the benchmark is run on: a Pod AdmissionReview of about 6.6 KB, policies from the samples, and files of Pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

SAMPLES = Path(__file__).parents[2] / "controllers" / "manifests" / "samples"
STANDARDS = sorted((SAMPLES / "pod-security-standards").glob("*.yaml"))
STANDARDS_IN_CEL = Path(__file__).with_name("pod_security_cel.yaml")
PRACTICES = sorted((SAMPLES / "best-practices").glob("*.yaml"))


def pod(index: int = 0) -> dict[str, Any]:
    """Return a Pod that keeps the Pod Security Standards: three containers with probes, environment and volumes."""
    name = f"checkout-{index:04d}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": f"team-{index % 40}",
            "uid": f"0b4c7a5e-1111-2222-3333-{index:012d}",
            "creationTimestamp": "2026-11-21T10:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "checkout",
                "app.kubernetes.io/instance": name,
                "app.kubernetes.io/version": "2.14.0",
                "app.kubernetes.io/part-of": "shop",
                "pod-template-hash": "7d4b9c6f58",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/port": "9102",
                "checksum/config": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
            },
        },
        "spec": {
            "serviceAccountName": "checkout",
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "fsGroup": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [_container("migrate", index, 5)],
            "containers": [_container("app", index, 14), _container("proxy", index, 10)],
            "volumes": [
                {"name": "config", "configMap": {"name": "checkout", "defaultMode": 420}},
                {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
                {"name": "identity", "projected": {"defaultMode": 420, "sources": _sources()}},
            ],
            "tolerations": [
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                },
                {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            ],
            "nodeSelector": {"kubernetes.io/os": "linux", "pool": "general"},
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
        },
    }


def _sources() -> list[dict[str, Any]]:
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]


def _container(name: str, index: int, variables: int) -> dict[str, Any]:
    probe = {"httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10}
    return {
        "name": name,
        "image": f"registry.example.com/shop/{name}:2.14.{index % 7}",
        "imagePullPolicy": "IfNotPresent",
        "args": ["--listen=:8080", "--metrics=:9102", f"--shard={index % 3}", "--log-format=json"],
        "env": [
            {"name": f"{name.upper()}_SETTING_{number}", "value": f"value-{number}-{index % 5}"}
            for number in range(variables)
        ],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "livenessProbe": {**probe, "initialDelaySeconds": 15, "timeoutSeconds": 2},
        "readinessProbe": {**probe, "initialDelaySeconds": 5, "failureThreshold": 3},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/checkout", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "identity", "mountPath": "/var/run/secrets/identity", "readOnly": True},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def review_bytes(*, is_bad: bool = False) -> bytes:
    """Return the AdmissionReview of creating `pod()`, as an API server sends it; a bad one violates one of the standards."""
    obj = pod()
    if is_bad:
        obj["spec"]["hostPID"] = True
    managed = {"manager": "kubectl-create", "operation": "Update", "apiVersion": "v1"}
    obj["metadata"]["managedFields"] = [{**managed, "fieldsV1": _fields(obj["spec"])}]
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "jane", "groups": ["developers", "system:authenticated"]},
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    )


def _fields(spec: dict[str, Any]) -> dict[str, Any]:
    return {"f:spec": {f"f:{key}": {} for key in spec}}
