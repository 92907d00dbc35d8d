"""The resources that rows are made of: by which kinds they are read, and what it means when one is missing.

A resource may have several sources (reports of two API groups); each is read by itself, because each may be forbidden or
missing by itself.
"""

from __future__ import annotations

from typing import Final

from controllers.kube import errors, kinds
from controllers.kube.kinds import Kind
from engine.record import record
from kubectl_kpolicy.session.cluster import install_hint

from .cache import Problem, Trouble

NATIVE: Final = "kpolicy.io"
GRANT_POLICIES: Final = Kind(NATIVE, "v1alpha1", "grantpolicies", "GrantPolicy", False)
GRANTS: Final = Kind(NATIVE, "v1alpha1", "grants", "Grant")
CODES: Final = Kind(NATIVE, "v1alpha1", "onetimecodes", "OneTimeCode")
CODE_USES: Final = Kind(NATIVE, "v1alpha1", "codeuses", "CodeUse")
AUDIT_SEGMENTS: Final = Kind(NATIVE, "v1alpha1", "auditsegments", "AuditSegment")


@record
class Resource:
    """One list of objects: `optional` ones may be missing without a word, `fields` is a field selector of the server."""

    name: str
    kind: Kind
    what: str
    optional: bool = False
    fields: str = ""
    labels: str = ""


RESOURCES: Final = {
    one.name: one
    for one in (
        Resource("reports", kinds.POLICY_REPORTS, "results of policies in namespaces"),
        Resource("clusterreports", kinds.CLUSTER_POLICY_REPORTS, "results for cluster-wide objects"),
        Resource("openreports", kinds.OPEN_REPORTS, "results in the successor of policy reports", optional=True),
        Resource("clusteropenreports", kinds.CLUSTER_OPEN_REPORTS, "results in the successor of policy reports", optional=True),
        Resource("clusterpolicies", kinds.CLUSTER_POLICIES, "policies of the cluster"),
        Resource("policies", kinds.POLICIES, "policies of namespaces"),
        Resource("exceptions", kinds.POLICY_EXCEPTIONS, "exceptions"),
        Resource("cleanuppolicies", kinds.CLEANUP_POLICIES, "cleanup policies of namespaces"),
        Resource("clustercleanuppolicies", kinds.CLUSTER_CLEANUP_POLICIES, "cleanup policies of the cluster"),
        Resource("grantpolicies", GRANT_POLICIES, "who may ask for what", optional=True),
        Resource("grants", GRANTS, "grants"),
        Resource("codes", CODES, "one-time codes"),
        Resource("codeuses", CODE_USES, "uses of codes", optional=True),
        Resource("auditsegments", AUDIT_SEGMENTS, "audit records"),
        Resource("events", kinds.EVENTS, "denials at admission", fields="reason=PolicyViolation"),
        Resource("uses", kinds.EVENTS, "uses of exceptions", optional=True, fields="reason=PolicySkipped"),
        Resource("ends", kinds.EVENTS, "which replicas have heard of ends of grants", optional=True, fields="reason=GrantEndTaken"),
        Resource("validatingwebhooks", kinds.VALIDATING_WEBHOOKS, "validating webhooks", optional=True),
        Resource("mutatingwebhooks", kinds.MUTATING_WEBHOOKS, "mutating webhooks", optional=True),
        Resource("leases", kinds.LEASES, "who leads", optional=True),
        Resource("crds", kinds.CRDS, "which kinds are installed", optional=True),
    )
}  # fmt: skip
TTL_OBJECTS: Final = "ttl"
"""Objects of any kind with a TTL label; read by asking for metadata of every kind that can be deleted."""

JOURNAL: Final = "journal"
"""The ConfigMap that keeps codes of the `random()` kind, where one is configured."""


_OTHERS: Final = {TTL_OBJECTS: "objects with a TTL label", JOURNAL: "codes of `random()`"}


def called(name: str) -> str:
    """Return what a resource is called in sentences."""
    return RESOURCES[name].what if name in RESOURCES else _OTHERS.get(name, name)


# What an error of the API server means for somebody who wants to look: kind missing, not known, forbidden, silent.


def problem_of(error: errors.KubeError, kind: Kind) -> Problem:
    """Return the problem with its remedy, in terms of the kind that could not be read."""
    match error:
        case errors.NotFound():
            return Problem(Trouble.MISSING, f"the server has no {kind}", install_hint(kind.group))
        case errors.Forbidden():
            return Problem(Trouble.FORBIDDEN, f"you may not list {kind}",
                           f"ask who may give it; `kubectl auth can-i list {kind}` tells when you have it")  # fmt: skip
        case errors.Unauthorized() | errors.AccessError():
            return Problem(Trouble.UNAUTHORIZED, error.message,
                           "log in again, or check the user of the kubeconfig's context")  # fmt: skip
        case errors.Unreachable():
            return Problem(Trouble.UNREACHABLE, error.message, "check the network and `kubectl cluster-info`")  # fmt: skip
    return Problem(Trouble.FAILED, error.message, error.help)
