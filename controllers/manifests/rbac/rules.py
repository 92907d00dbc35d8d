"""The rules of the shipped roles, each kind by name.

Reading is broad, because policies and reports concern the kinds that people work with; writing is narrow. What policies of a
cluster need beyond this is added by ClusterRoles with the labels that the roles collect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.accounts import ACCOUNTS, Job
from controllers.manifests.webhooks import WEBHOOKS
from engine.model.kinds import CEL_GROUP, CEL_KINDS, CLASSIC_GROUP, plurals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.model import Object

READ: Final = ("get", "list", "watch")
CHANGE: Final = ("create", "update", "patch", "delete")
WRITE: Final = (*READ, *CHANGE)

WRITTEN_BY_PEOPLE: Final = plurals(CLASSIC_GROUP)
POLICIES: Final = (*WRITTEN_BY_PEOPLE, "globalcontextentries", "policyexceptions")
CEL_POLICIES: Final = plurals(CEL_GROUP)
_CEL_KINDS: Final = (*CEL_POLICIES, "policyexceptions")
EPHEMERAL_KINDS: Final = ("clusterephemeralreports", "ephemeralreports")
REPORT_KINDS: Final[Mapping[str, Sequence[str]]] = {
    "wgpolicyk8s.io": ("policyreports", "clusterpolicyreports"),
    "openreports.io": ("reports", "clusterreports"),
}
"""The kinds of reports by their group; which of them are written, a flag says."""
NATIVE_KINDS: Final = (
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)
WEBHOOK_KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
CODE_KEYS: Final = "kpolicy-code-keys"
NOTIFY: Final = "kpolicy-notify"
SCAN: Final = "kpolicy-scan"
_CORE_KINDS: Final = (
    "configmaps",
    "endpoints",
    "limitranges",
    "namespaces",
    "persistentvolumeclaims",
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


_VIEWED: Final = (
    rule("", _CORE_KINDS, READ),
    rule("apps", ("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
         READ),
    rule("batch", ("cronjobs", "jobs"), READ),
    rule("autoscaling", ("horizontalpodautoscalers",), READ),
    rule("networking.k8s.io", ("ingresses", "networkpolicies"), READ),
    rule("policy", ("poddisruptionbudgets",), READ),
)  # fmt: skip
"""What the role `view` of Kubernetes shows: no Secrets, no rights, nothing that is the cluster's own but namespaces."""

_WORKLOADS: Final = (
    *_VIEWED,
    rule("", ("nodes", "persistentvolumes"), READ),
    rule("networking.k8s.io", ("ingressclasses",), READ),
    rule("storage.k8s.io", ("storageclasses",), READ),
    rule("scheduling.k8s.io", ("priorityclasses",), READ),
    rule("rbac.authorization.k8s.io", _RBAC_KINDS, READ),
    rule("apiextensions.k8s.io", ("customresourcedefinitions",), READ),
)

_POLICIES_READ: Final = (rule(CLASSIC_GROUP, POLICIES, READ), rule(CEL_GROUP, _CEL_KINDS, READ))

ADMISSION: Final = (
    *_POLICIES_READ,
    rule(CLASSIC_GROUP, ("clusterpolicies/status", "policies/status"), ("patch",)),
    rule(CEL_GROUP, [f"{name}/status" for name in CEL_POLICIES], ("patch",)),
    rule("kpolicy.io", ("grantpolicies", "grants", "codeclaims"), READ),
    rule("", ("events",), (*READ, "create", "patch")),
    rule("admissionregistration.k8s.io", WEBHOOK_KINDS, (*READ, "create")),
    *(
        rule("admissionregistration.k8s.io", (f"{kind.lower()}s",), ("update",), *names)
        for kind, names in WEBHOOKS.items()
    ),
    rule("admissionregistration.k8s.io", NATIVE_KINDS, (*READ, "create", "update", "delete")),
    rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    *_WORKLOADS,
)
"""What answering requests needs: policies and what their context entries commonly read, our own webhook configurations, and native policies.

Native policies are named after people's, so that no role can name them; which of them are ours to write is decided by
`engine.native.is_made_from` alone, because nothing else can guard these kinds: the API server puts them before no policy and no webhook.
"""

BACKGROUND: Final = (
    *_POLICIES_READ,
    rule("", ("events",), READ),
    rule("", ("configmaps", "limitranges", "resourcequotas"), CHANGE),
    rule("networking.k8s.io", ("ingresses", "ingressclasses", "networkpolicies"), CHANGE),
    rule("rbac.authorization.k8s.io", ("roles", "rolebindings"), CHANGE),
    *_WORKLOADS,
)
"""What is generated and mutated without further rights, as upstream; Kubernetes still refuses rights that we lack."""

REPORTS: Final = (
    *(
        rule(group, kinds, (*READ, "create", "update", "delete"))
        for group, kinds in REPORT_KINDS.items()
    ),
    rule("admissionregistration.k8s.io", NATIVE_KINDS, READ),
    *_POLICIES_READ,
    *_VIEWED,
)
"""What is reported on without further rights, as upstream; each further kind is given by who may read it himself."""

CLEANUP: Final = (
    *_POLICIES_READ,
    rule(CLASSIC_GROUP, ("cleanuppolicies/status", "clustercleanuppolicies/status"), ("patch",)),
    rule(CEL_GROUP, [f"{one.plural}/status" for one in CEL_KINDS if one.family.is_timed], ("patch",)),
    rule(CLASSIC_GROUP, ("policyexceptions",), ("delete",)),
    rule(CEL_GROUP, ("policyexceptions",), ("delete",)),
    *_WORKLOADS,
)  # fmt: skip
"""Deleting anything but exceptions that are over needs rights that the owner of the cluster gives."""

GRANTS: Final = (
    *_POLICIES_READ,
    rule("kpolicy.io", ("grantpolicies", "grants"), READ),
    rule("kpolicy.io", ("grants/status",), ("patch",)),
    rule("kpolicy.io", ("codeclaims",), (*READ, "delete")),
    rule(CLASSIC_GROUP, ("policyexceptions",), ("create", "delete")),
    rule(CEL_GROUP, ("policyexceptions",), ("create", "delete")),
    *_WORKLOADS,
)
"""What keeping grants, codes and the audit trail needs: exceptions that carry a grant are made here and nowhere else."""

CLUSTER: Final[Mapping[Job, Sequence[Object]]] = {
    Job.ADMISSION: ADMISSION,
    Job.BACKGROUND: BACKGROUND,
    Job.CLEANUP: CLEANUP,
    Job.REPORTS: REPORTS,
    Job.GRANTS: GRANTS,
}
"""What each job may do on the whole cluster."""

_SPOKEN_AS: Final = tuple(name for job, name in ACCOUNTS.items() if job is not Job.ADMISSION)

OWN_NAMESPACE: Final[Mapping[Job, Sequence[Object]]] = {
    Job.ADMISSION: (
        rule("", ("serviceaccounts/token",), ("create",), *_SPOKEN_AS),
        rule(CLASSIC_GROUP, ("updaterequests",), ("create",)),
        rule("kpolicy.io", ("auditnotes",), ("create",)),
        rule("kpolicy.io", ("codeuses",), ("get", "list", "create")),
        rule("kpolicy.io", ("onetimecodes",), READ),
        rule("", ("secrets",), (*READ, "create", "update")),
        rule("coordination.k8s.io", ("leases",), ("get", "create", "update")),
    ),
    Job.BACKGROUND: (
        rule(CLASSIC_GROUP, ("updaterequests",), (*READ, "create", "delete")),
        rule(CLASSIC_GROUP, ("updaterequests/status",), ("patch",)),
    ),
    Job.REPORTS: (
        rule("", ("configmaps",), ("create",)),
        rule("", ("configmaps",), ("patch",), SCAN),
    ),
    Job.GRANTS: (
        rule("kpolicy.io", ("auditsegments",), ("get", "list", "create", "update")),
        rule("kpolicy.io", ("auditnotes",), (*READ, "delete")),
        rule("kpolicy.io", ("codeuses",), (*READ, "delete")),
        rule("kpolicy.io", ("onetimecodes",), READ),
        rule("kpolicy.io", ("codeuses/status", "onetimecodes/status"), ("patch",)),
        rule("", ("secrets",), ("get",), CODE_KEYS, NOTIFY),
        rule("", ("secrets",), ("update",), CODE_KEYS),
        rule("", ("secrets",), ("create",)),
    ),
}
"""What each job may do in the namespace of the controllers; the others have nothing to do there."""
