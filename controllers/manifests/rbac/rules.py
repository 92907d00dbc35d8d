"""The rules of the shipped roles, each kind by name.

Reading is broad, because policies and reports concern the kinds that people work with; writing is narrow. What policies of a
cluster need beyond this is added by ClusterRoles with the labels that the roles collect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.model import Object

READ: Final = ("get", "list", "watch")
CHANGE: Final = ("create", "update", "patch", "delete")
WRITE: Final = (*READ, *CHANGE)

POLICIES: Final = (
    "clusterpolicies",
    "policies",
    "policyexceptions",
    "cleanuppolicies",
    "clustercleanuppolicies",
    "globalcontextentries",
)
WRITTEN_BY_PEOPLE: Final = (
    "cleanuppolicies",
    "clustercleanuppolicies",
    "clusterpolicies",
    "policies",
)
CEL_POLICIES: Final = ("namespacedvalidatingpolicies", "validatingpolicies")
_CEL_KINDS: Final = (*CEL_POLICIES, "policyexceptions")
EPHEMERAL_KINDS: Final = ("clusterephemeralreports", "ephemeralreports")
REPORT_KINDS: Final = ("policyreports", "clusterpolicyreports")
_STATUSES: Final = tuple(
    f"{name}/status"
    for name in (
        "clusterpolicies",
        "policies",
        "cleanuppolicies",
        "clustercleanuppolicies",
        "globalcontextentries",
        "updaterequests",
    )
)
_CORE_KINDS: Final = (
    "configmaps",
    "endpoints",
    "limitranges",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "serviceaccounts",
    "services",
)
_RBAC_KINDS: Final = ("roles", "rolebindings", "clusterroles", "clusterrolebindings")


def rule(group: str, resources: Iterable[str], verbs: Sequence[str], *names: str) -> Object:
    """Return one PolicyRule; `names` narrow it to objects of those names."""
    made: Object = {"apiGroups": [group], "resources": sorted(resources), "verbs": sorted(verbs)}
    return {**made, "resourceNames": list(names)} if names else made


_WORKLOADS: Final = (
    rule("", _CORE_KINDS, READ),
    rule("apps", ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
         READ),
    rule("batch", ("cronjobs", "jobs"), READ),
    rule("autoscaling", ("horizontalpodautoscalers",), READ),
    rule("networking.k8s.io", ("ingresses", "ingressclasses", "networkpolicies"), READ),
    rule("policy", ("poddisruptionbudgets",), READ),
    rule("storage.k8s.io", ("storageclasses",), READ),
    rule("scheduling.k8s.io", ("priorityclasses",), READ),
    rule("rbac.authorization.k8s.io", _RBAC_KINDS, READ),
    rule("apiextensions.k8s.io", ("customresourcedefinitions",), READ),
)  # fmt: skip

ADMISSION: Final = (
    rule("kyverno.io", POLICIES, READ),
    rule("kyverno.io", _STATUSES, ("patch",)),
    rule("kyverno.io", ("updaterequests",), (*READ, "create", "delete")),
    rule("policies.kyverno.io", _CEL_KINDS, READ),
    rule("policies.kyverno.io", [f"{name}/status" for name in CEL_POLICIES],
         ("patch",)),
    rule("", ("events",), (*READ, "create", "patch")),
    rule("admissionregistration.k8s.io",
         ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
         (*READ, "create", "update")),
    rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    *_WORKLOADS,
)  # fmt: skip
"""What answering requests needs: policies and what their context entries commonly read."""

BACKGROUND: Final = (
    rule("", ("configmaps", "limitranges", "resourcequotas"), CHANGE),
    rule("networking.k8s.io", ("ingresses", "ingressclasses", "networkpolicies"), CHANGE),
    rule("rbac.authorization.k8s.io", ("roles", "rolebindings"), CHANGE),
)
"""What is generated and mutated without further rights, as upstream; Kubernetes still refuses rights that we lack."""

REPORTS: Final = (
    rule("wgpolicyk8s.io", REPORT_KINDS, (*READ, "create", "update", "delete")),
    rule("kyverno.io", POLICIES, READ),
    rule("policies.kyverno.io", _CEL_KINDS, READ),
    *_WORKLOADS,
)

CLEANUP: Final = (
    rule("kyverno.io", ("cleanuppolicies", "clustercleanuppolicies"), READ),
    rule("kyverno.io", ("cleanuppolicies/status", "clustercleanuppolicies/status"), ("patch",)),
    rule("kyverno.io", ("policyexceptions",), (*READ, "delete")),
    rule("policies.kyverno.io", ("policyexceptions",), (*READ, "delete")),
    rule("", ("namespaces",), READ),
)  # fmt: skip
"""Deleting anything but exceptions that are over needs rights that the owner of the cluster gives."""

GRANTS: Final = (
    rule("kpolicy.io", ("grantpolicies", "grants"), READ),
    rule("kpolicy.io", ("grants/status",), ("patch",)),
    rule("kpolicy.io", ("codeclaims",), (*READ, "delete")),
    rule("kyverno.io", ("policyexceptions",), ("create",)),
)
"""What keeping grants needs: their exceptions are made by us."""

OWN_NAMESPACE: Final = (
    rule("kpolicy.io", ("auditsegments",), ("get", "list", "create", "update")),
    rule("kpolicy.io", ("auditnotes",), (*READ, "create", "delete")),
    rule("kpolicy.io", ("codeuses",), (*READ, "create", "delete")),
    rule("kpolicy.io", ("onetimecodes",), READ),
    rule("kpolicy.io", ("codeuses/status", "onetimecodes/status"), ("patch",)),
    rule("", ("secrets",), (*READ, "create", "update")),
    rule("", ("configmaps",), (*READ, "create", "patch")),
    rule("coordination.k8s.io", ("leases",), ("get", "create", "update")),
    rule("apps", ("deployments",), ("get", "list", "watch")),
)
