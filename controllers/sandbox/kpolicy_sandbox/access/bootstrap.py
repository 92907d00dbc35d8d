"""The roles and bindings that every cluster starts with: the administrator's, the four that people bind, and everybody's basics."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
AGGREGATOR = "clusterrole-aggregation-controller"
_GROUP = "rbac.authorization.k8s.io"
_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]
_DISCOVERY = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]
_CORE = [
    "configmaps", "endpoints", "events", "limitranges", "persistentvolumeclaims", "pods", "pods/log", "pods/status",
    "replicationcontrollers", "replicationcontrollers/scale", "resourcequotas", "serviceaccounts", "services",
]  # fmt: skip
_GROUPS: dict[str, list[str]] = {
    "apps": ["daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets", "statefulsets/scale"],
    "batch": ["cronjobs", "jobs"],
    "autoscaling": ["horizontalpodautoscalers"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
}  # fmt: skip


def objects() -> list[Object]:
    """Return roles and bindings, roles first."""
    roles = [
        _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _role("system:aggregate-to-view", [*_workloads(_READ), _rule(["get"], [""], ["namespaces"])], ("view",)),
        _role(
            "system:aggregate-to-edit",
            [*_workloads(_WRITE), _rule(_READ + _WRITE, [""], ["secrets"]), _rule(["impersonate"], [""], ["serviceaccounts"])],
            ("edit",),
        ),
        _role(
            "system:aggregate-to-admin",
            [_rule(_READ + _WRITE, [_GROUP], ["roles", "rolebindings"]),
             _rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"])],
            ("admin",),
        ),
        _role("view", [], aggregates=("view",), into=("edit",)),
        _role("edit", [], aggregates=("edit",), into=("admin",)),
        _role("admin", [], aggregates=("admin",)),
        _role("system:discovery", [{"nonResourceURLs": _DISCOVERY, "verbs": ["get"]}]),
        _role(
            "system:basic-user",
            [
                _rule(["create"], ["authorization.k8s.io"], ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
                _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
            ],
        ),
        _role(f"system:controller:{AGGREGATOR}", [_rule(["escalate", *_READ, "patch", "update"], [_GROUP], ["clusterroles"])]),
    ]  # fmt: skip
    bindings = [
        _binding("cluster-admin", "system:masters"),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:basic-user", "system:authenticated"),
    ]
    aggregating = _binding(f"system:controller:{AGGREGATOR}", "")
    aggregating["subjects"] = [
        {"kind": "ServiceAccount", "name": AGGREGATOR, "namespace": "kube-system"}
    ]
    return [*roles, *bindings, aggregating]


def _workloads(verbs: list[str]) -> list[Object]:
    core = (
        _CORE
        if "get" in verbs
        else [name for name in _CORE if name not in {"limitranges", "resourcequotas"}]
    )
    return [
        _rule(verbs, [""], core),
        *(_rule(verbs, [group], names) for group, names in _GROUPS.items()),
    ]


def _rule(verbs: list[str], groups: list[str], resources: list[str]) -> Object:
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def _role(
    name: str, rules: list[Object], into: tuple[str, ...] = (), aggregates: tuple[str, ...] = ()
) -> Object:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    labels.update({f"{_GROUP}/aggregate-to-{one}": "true" for one in into})
    made: Object = {
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels},
        "rules": rules,
    }
    if aggregates:
        selectors = [
            {"matchLabels": {f"{_GROUP}/aggregate-to-{one}": "true"}} for one in aggregates
        ]
        made["aggregationRule"] = {"clusterRoleSelectors": selectors}
    return made


def _binding(name: str, group: str) -> Object:
    return {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}},
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": _GROUP, "kind": "Group", "name": group}],
    }
