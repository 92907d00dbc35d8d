"""Roles of the controllers: what they may do, without wildcards and without `escalate`, `bind` or `impersonate`.

For `kubectl kpolicy install` and the tests that run under exactly these rights. Each part of upstream has its ClusterRole,
collected by labels, so that rights which people have written for Kyverno take effect here, too; all are bound to the one
service account that the controllers run as.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import rules
from .own_kinds import people_roles
from .rules import rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Object

NAMESPACE: Final = "kyverno"
SERVICE_ACCOUNT: Final = "kyverno-background-controller"
"""Upstream's name for who generates and mutates: what people's rights, exclusions and skipBackgroundRequests name."""

CLEANUP_ACCOUNT: Final = "kyverno-cleanup-controller"
"""Upstream's name for who cleans up. Nobody runs as it: its rights, bound here, are those that count for TTL labels."""

GROUP: Final = "rbac.authorization.k8s.io"
PARTS: Final = {
    "admission-controller": rules.ADMISSION,
    "background-controller": rules.BACKGROUND,
    "reports-controller": rules.REPORTS,
    "cleanup-controller": rules.CLEANUP,
    "grants-controller": rules.GRANTS,
}
_INSTANCE: Final = {"app.kubernetes.io/instance": "kyverno"}


def roles(namespace: str = NAMESPACE) -> list[Object]:
    """Return service account, roles and bindings for controllers that run in `namespace`."""
    made = [_account(namespace)]
    for part, permitted in PARTS.items():
        made += [_collected(part), _core(part, permitted), _cluster_binding(part, namespace)]
    return [*made, _own_role(namespace), _own_binding(namespace), *_for_people(), *people_roles()]


def _labels(part: str = "") -> dict[str, str]:
    named = {"app.kubernetes.io/component": part} if part else {}
    return {**named, **_INSTANCE, "app.kubernetes.io/part-of": "kyverno"}


def _account(namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "name": SERVICE_ACCOUNT,
            "namespace": namespace,
            "labels": _labels(),
        },
    }


def _collected(part: str) -> Object:
    """Return the ClusterRole that collects the rights of a part by every set of labels in use for them.

    It names no rules: those are the cluster's to fill in, and naming them would make a second installation a conflict.
    """
    selectors = [
        {"matchLabels": {f"rbac.kyverno.io/aggregate-to-{part}": "true"}},
        {"matchLabels": _labels(part)},
        {
            "matchLabels": {
                "app.kubernetes.io/component": part,
                **_INSTANCE,
                "app.kubernetes.io/name": f"kyverno-{part}",
            }
        },
    ]
    if part == "admission-controller":
        selectors.append({"matchLabels": {"app": "kyverno", **_INSTANCE}})
    return {
        **_head("ClusterRole", f"kyverno:{part}", {**_INSTANCE}),
        "aggregationRule": {"clusterRoleSelectors": selectors},
    }


def _core(part: str, permitted: Sequence[Object]) -> Object:
    return {
        **_head("ClusterRole", f"kyverno:{part}:core", _labels(part)),
        "rules": list(permitted),
    }


def _cluster_binding(part: str, namespace: str) -> Object:
    subjects = [_subject(namespace)]
    if part == "cleanup-controller":
        subjects.append(_subject(namespace, CLEANUP_ACCOUNT))
    return {
        **_head("ClusterRoleBinding", f"kyverno:{part}", _labels(part)),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"kyverno:{part}"},
        "subjects": subjects,
    }


def _own_role(namespace: str) -> Object:
    made = _head("Role", "kyverno:controllers", _labels())
    made["metadata"]["namespace"] = namespace
    return {**made, "rules": list(rules.OWN_NAMESPACE)}


def _own_binding(namespace: str) -> Object:
    made = _head("RoleBinding", "kyverno:controllers", _labels())
    made["metadata"]["namespace"] = namespace
    return {
        **made,
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "kyverno:controllers"},
        "subjects": [_subject(namespace)],
    }


def _for_people() -> list[Object]:
    """Return what Kubernetes' own roles for people gain, under upstream's names.

    Exceptions are for administrators of the cluster to hand out: who may write both Pods and exceptions has no policies.
    """
    parts = {
        "policies": [
            rule("kyverno.io", rules.WRITTEN_BY_PEOPLE, rules.WRITE),
            rule("policies.kyverno.io", rules.CEL_POLICIES, rules.WRITE),
        ],
        "policyreports": [rule("wgpolicyk8s.io", rules.REPORT_KINDS, rules.WRITE)],
        "reports": [rule("reports.kyverno.io", rules.EPHEMERAL_KINDS, rules.WRITE)],
        "updaterequests": [rule("kyverno.io", ("updaterequests",), rules.WRITE)],
    }
    seen = {
        **{
            name: [{**one, "verbs": list(rules.READ)} for one in permitted]
            for name, permitted in parts.items()
        },
        "exceptions": [
            rule("kyverno.io", ("policyexceptions",), rules.READ),
            rule("policies.kyverno.io", ("policyexceptions",), rules.READ),
        ],
        "grants": [rule("kpolicy.io", ("grantpolicies", "grants"), rules.READ)],
    }
    return [
        _people_role(to, name, permitted)
        for to, granted in (("admin", parts), ("view", seen))
        for name, permitted in granted.items()
    ]


def _people_role(to: str, name: str, permitted: list[Object]) -> Object:
    labels = {**_labels("rbac"), f"rbac.authorization.k8s.io/aggregate-to-{to}": "true"}
    return {**_head("ClusterRole", f"kyverno:rbac:{to}:{name}", labels), "rules": permitted}


def _subject(namespace: str, name: str = SERVICE_ACCOUNT) -> Object:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def _head(kind: str, name: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
    }
