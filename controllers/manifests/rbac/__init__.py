"""Accounts and roles of the controllers: what they may do, without wildcards and without `escalate`, `bind` or `impersonate`.

For `kubectl kpolicy install` and the tests that run under exactly these rights. Each job has its service account and its
ClusterRole, collected by labels, so that rights which people have written for Kyverno's parts take effect here, too, and for
that part only. The process runs as the admission account and may ask for tokens of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.accounts import ACCOUNTS, CONTROLLERS, Job
from controllers.kube.kinds import SERVICE_ACCOUNTS
from controllers.manifests.choice import INSTANCE, NAMESPACE, labels_of, selector_of
from engine.model.kinds import ASKED_KINDS, CEL_GROUP, CLASSIC_GROUP, KINDS
from engine.vocabulary import RIGHTS_FOR

from . import rules
from .rules import READ, rule

if TYPE_CHECKING:
    from engine.model import Object

GROUP: Final = "rbac.authorization.k8s.io"
_WERE_ONE: Final = (Job.ADMISSION, Job.BACKGROUND)
"""Jobs of one part when upstream's rights were labelled `app: kyverno`, which are still published that way."""


def roles(namespace: str = NAMESPACE, *, with_people: bool = True) -> list[Object]:
    """Return service accounts, roles and bindings for controllers that run in `namespace`, and roles for people."""
    made = [_account(namespace, job) for job in Job]
    for part, job in CONTROLLERS.items():
        labels, permitted = labels_of(part), list(rules.CLUSTER[job])
        core = {**_head("ClusterRole", f"kyverno:{part}:core", labels), "rules": permitted}
        made += [_collected(part), core, _binding(part, job, namespace, "ClusterRole")]
        if own := rules.OWN_NAMESPACE.get(job, ()):
            role = {**_head("Role", f"kyverno:{part}", labels, namespace), "rules": list(own)}
            made += [role, _binding(part, job, namespace, "Role")]
    return [*made, *_for_people(), *people_roles()] if with_people else made


def _account(namespace: str, job: Job) -> Object:
    """Return the account of a job; only that of admission has Pods, which need to find its token."""
    made = SERVICE_ACCOUNTS.document(ACCOUNTS[job], namespace, labels=labels_of(job.controller))
    return made if job is Job.ADMISSION else {**made, "automountServiceAccountToken": False}


def _collected(part: str) -> Object:
    """Return the ClusterRole that collects the rights of a part by every set of labels in use for them.

    It names no rules: those are the cluster's to fill in, and naming them would make a second installation a conflict.
    """
    selectors = [
        {"matchLabels": {f"{RIGHTS_FOR}{part}": "true"}},
        {"matchLabels": labels_of(part)},
        {"matchLabels": {**selector_of(part), "app.kubernetes.io/name": f"kyverno-{part}"}},
    ]
    if CONTROLLERS[part] in _WERE_ONE:
        selectors.append({"matchLabels": {"app": "kyverno", **INSTANCE}})
    return {
        **_head("ClusterRole", f"kyverno:{part}", {**INSTANCE}),
        "aggregationRule": {"clusterRoleSelectors": selectors},
    }


def _binding(part: str, job: Job, namespace: str, kind: str) -> Object:
    """Return the binding of the role of a kind (`ClusterRole`, `Role`) that a part has."""
    within = "" if kind == "ClusterRole" else namespace
    return {
        **_head(f"{kind}Binding", f"kyverno:{part}", labels_of(part), within),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": f"kyverno:{part}"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNTS[job], "namespace": namespace}],
    }


def _for_people() -> list[Object]:
    """Return what Kubernetes' own roles for people gain, under upstream's names.

    Exceptions are for administrators of the cluster to hand out: who may write both Pods and exceptions has no policies.
    """
    parts = {
        "policies": [
            rule(CLASSIC_GROUP, rules.WRITTEN_BY_PEOPLE, rules.WRITE),
            rule(CEL_GROUP, rules.CEL_POLICIES, rules.WRITE),
        ],
        "policyreports": [
            rule(group, kinds, rules.WRITE) for group, kinds in rules.REPORT_KINDS.items()
        ],
        "reports": [rule("reports.kyverno.io", rules.EPHEMERAL_KINDS, rules.WRITE)],
        "updaterequests": [rule(CLASSIC_GROUP, ("updaterequests",), rules.WRITE)],
    }
    seen = {
        **{
            name: [{**one, "verbs": list(rules.READ)} for one in permitted]
            for name, permitted in parts.items()
        },
        "exceptions": [
            rule(CLASSIC_GROUP, ("policyexceptions",), rules.READ),
            rule(CEL_GROUP, ("policyexceptions",), rules.READ),
        ],
        "grants": [rule("kpolicy.io", ("grantpolicies", "grants"), rules.READ)],
    }
    return [
        _role(f"kyverno:rbac:{to}:{name}", permitted, to)
        for to, granted in (("admin", parts), ("view", seen))
        for name, permitted in granted.items()
    ]


def _head(kind: str, name: str, labels: dict[str, str], namespace: str = "") -> Object:
    place = {"namespace": namespace} if namespace else {}
    metadata = {"name": name, "labels": labels, **place}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


# Roles for people about our own kinds: ask, approve, issue codes, acknowledge with one, read the audit trail.
#
# Who counts as an approver, and what may be asked for, is for GrantPolicies to say; these roles only let people speak. What is
# dangerous to have by accident is collected by none of Kubernetes' own roles and has to be handed out.


_GROUP: Final = "kpolicy.io"
_WRITTEN: Final = (*(one.plural for one in KINDS), "globalcontextentries")
"""What is written by authors, who may do themselves what it does, except for those who may `bypass` that."""


def people_roles() -> list[Object]:
    """Return the ClusterRoles, to be bound by whoever owns the cluster or its namespaces."""
    limits = rule(_GROUP, ("grantpolicies",), READ)
    return [
        _role("kpolicy:grants:request", [rule(_GROUP, ("grants",), (*READ, "create", "patch")), limits], "edit"),
        _role("kpolicy:grants:approve", [rule(_GROUP, ("grants",), (*READ, "patch")), limits], "admin"),
        _role("kpolicy:codes:issue", [
            rule(_GROUP, ("onetimecodes",), (*READ, "create")),
            rule(_GROUP, ("onetimecodes/status",), ("patch",)),
            rule(_GROUP, ("codeuses",), READ),
        ]),
        _role("kpolicy:codes:redeem", [
            *(rule(group, [one.plural for one in ASKED_KINDS if one.group == group], ("redeem",))
              for group in (CLASSIC_GROUP, CEL_GROUP)),
            rule(_GROUP, ("codeclaims",), ("create",)),
        ]),
        _role("kpolicy:policies:bypass", [rule(_GROUP, _WRITTEN, ("bypass",))]),
        _role("kpolicy:audit", [
            rule(_GROUP, ("auditsegments", "codeuses", "grants", "onetimecodes"), READ),
            limits,
        ]),
    ]  # fmt: skip


def _role(name: str, rules: list[Object], collected_by: str = "") -> Object:
    labels = labels_of("rbac")
    if collected_by:
        labels[f"{GROUP}/aggregate-to-{collected_by}"] = "true"
    return {**_head("ClusterRole", name, labels), "rules": rules}
