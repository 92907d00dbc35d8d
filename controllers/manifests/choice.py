"""What whoever installs may choose, with defaults, for `kubectl kpolicy install`, the Helm chart and the kustomize base alike.

Everything that is installed is a function of a `Choice`; flags of the command and values of the chart are its fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMESPACE: Final = "kyverno"
INSTANCE: Final = {"app.kubernetes.io/instance": "kyverno"}
DIGEST: Final = ""
"""Digest of the released image, which the release writes here once it is pushed; empty while there is none."""
VERSION: Final = "0.1.0"
IMAGE: Final = f"ghcr.io/kpolicy/kpolicy:v{VERSION}" + (f"@{DIGEST}" if DIGEST else "")


def selector_of(component: str) -> dict[str, str]:
    """Return the labels by which the Pods of a part of an installation are found."""
    return {"app.kubernetes.io/component": component, **INSTANCE}


def labels_of(component: str) -> dict[str, str]:
    """Return the labels of a part of an installation."""
    return {**selector_of(component), "app.kubernetes.io/part-of": "kyverno"}


def _said(default: Any, words: str) -> Any:
    """Return a field with the words that help texts and the chart's values say of it."""
    return field(default=default, metadata={"words": words})


@dataclass(frozen=True, slots=True)
class Choice:
    """What is installed, and how."""

    namespace: str = _said(NAMESPACE, "namespace of the controllers")
    image: str = _said(IMAGE, "image of the controllers, best by digest: NAME@sha256:DIGEST")
    replicas: int = _said(3, "number of replicas of the controllers")
    flags: tuple[str, ...] = _said((), "an extra flag of the controllers, such as --omitEvents=PolicyApplied")  # fmt: skip
    cpu: str = _said("100m", "CPU request of each replica")
    memory: str = _said("128Mi", "memory request of each replica")
    memory_limit: str = _said("512Mi", "memory limit of each replica")
    pull_secrets: tuple[str, ...] = _said((), "an image pull Secret in the namespace")
    priority_class: str = _said("", "PriorityClass of the replicas, such as system-cluster-critical")  # fmt: skip
    with_namespace: bool = _said(True, "the namespace itself, which admits restricted Pods only")
    with_people_roles: bool = _said(True, "the roles for people: additions to view, edit and admin, and those to ask, approve, issue and audit")  # fmt: skip
    with_network_policy: bool = _said(True, "the NetworkPolicy, which lets requests and metrics in, and DNS and HTTPS out")  # fmt: skip
    with_disruption_budget: bool = _said(True, "the PodDisruptionBudget, which has replicas moved one at a time")  # fmt: skip
    with_topology_spread: bool = _said(True, "the topology spread constraints over nodes and zones")  # fmt: skip
    with_service_monitor: bool = _said(False, "a ServiceMonitor for the Prometheus operator")
    with_prometheus_rule: bool = _said(
        False, "a PrometheusRule with alerts for the Prometheus operator"
    )
    with_dashboard: bool = _said(
        False, "a ConfigMap with the dashboard, labelled for Grafana's sidecar"
    )
    with_report_store: bool = _said(
        False, "the report store: a database of its own, served through the API server"
    )
    report_storage: str = _said("10Gi", "size of the volume of the report store")
    report_database_secret: str = _said(
        "", "a Secret whose key `dsn` is the address of a PostgreSQL database for the report store"
    )
    with_kinds: bool = _said(True, "the kinds (CustomResourceDefinitions)")
    with_controllers: bool = _said(
        True, "the controllers with roles, Service and everything else they need"
    )


DEFAULT: Final = Choice()
"""What is installed where nobody chooses."""


def words_of() -> Mapping[str, str]:
    """Return what is to be said of each field."""
    return {one.name: one.metadata["words"] for one in fields(Choice)}
