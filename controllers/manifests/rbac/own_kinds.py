"""Roles for people about our own kinds: ask, approve, issue codes, acknowledge with one, read the audit trail.

Who counts as an approver, and what may be asked for, is for GrantPolicies to say; these roles only let people speak. What is
dangerous to have by accident is collected by none of Kubernetes' own roles and has to be handed out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.model.kinds import ASKED_KINDS, CEL_GROUP, CLASSIC_GROUP, KINDS

from .rules import READ, rule

if TYPE_CHECKING:
    from engine.model import Object

_GROUP: Final = "kpolicy.io"
_WRITTEN: Final = (*(one.plural for one in KINDS), "globalcontextentries")
"""What is written by authors, who may do themselves what it does, except for those who may `bypass` that."""

_LABELS: Final = {
    "app.kubernetes.io/component": "rbac",
    "app.kubernetes.io/instance": "kyverno",
    "app.kubernetes.io/part-of": "kyverno",
}


def people_roles() -> list[Object]:
    """Return the ClusterRoles, to be bound by whoever owns the cluster or its namespaces."""
    limits = rule(_GROUP, ("grantpolicies",), READ)
    return [
        _role("grants:request", [rule(_GROUP, ("grants",), (*READ, "create", "patch")), limits], "edit"),
        _role("grants:approve", [rule(_GROUP, ("grants",), (*READ, "patch")), limits], "admin"),
        _role("codes:issue", [
            rule(_GROUP, ("onetimecodes",), (*READ, "create")),
            rule(_GROUP, ("onetimecodes/status",), ("patch",)),
            rule(_GROUP, ("codeuses",), READ),
        ]),
        _role("codes:redeem", [
            *(rule(group, [one.plural for one in ASKED_KINDS if one.group == group], ("redeem",))
              for group in (CLASSIC_GROUP, CEL_GROUP)),
            rule(_GROUP, ("codeclaims",), ("create",)),
        ]),
        _role("policies:bypass", [rule(_GROUP, _WRITTEN, ("bypass",))]),
        _role("audit", [
            rule(_GROUP, ("auditsegments", "codeuses", "grants", "onetimecodes"), READ),
            limits,
        ]),
    ]  # fmt: skip


def _role(name: str, rules: list[Object], collected_by: str = "") -> Object:
    labels = dict(_LABELS)
    if collected_by:
        labels[f"rbac.authorization.k8s.io/aggregate-to-{collected_by}"] = "true"
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"kpolicy:{name}", "labels": labels},
        "rules": rules,
    }
