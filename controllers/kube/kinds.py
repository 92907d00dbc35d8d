"""Kinds of objects: where an API server keeps them, and which ones it has.

A `Kind` is all that a `Client` needs to form addresses. `Discovery` asks the server which kinds exist, for policies and
rules that name kinds by group, version and wildcard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engine.model.kinds import CEL_KINDS

from .errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind in one version. Two are the same when group, version and plural are."""

    group: str
    version: str
    plural: str
    kind: str = field(compare=False)
    namespaced: bool = field(default=True, compare=False)
    verbs: tuple[str, ...] = field(default=(), compare=False)
    subresources: tuple[str, ...] = field(default=(), compare=False)
    singular: str = field(default="", compare=False)
    short_names: tuple[str, ...] = field(default=(), compare=False)
    categories: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """What objects of this kind state as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """Path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def typed(self, obj: Object) -> Object:
        """Return an object as one that says of which kind it is, which items of lists need not."""
        if obj.get("kind") and obj.get("apiVersion"):
            return obj
        return {"apiVersion": self.api_version, "kind": self.kind, **obj}

    def document(
        self,
        name: str,
        namespace: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Object:
        """Return an object of this kind to be created; `fields` stand beside its metadata."""
        said = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
        metadata = {key: value for key, value in said.items() if value}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, **fields}

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of a collection, an object or a subresource; raises Invalid for names that are no path segment."""
        parts = [self.root]
        if self.namespaced and namespace:
            parts += ["namespaces", segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(segment(name))
        if subresource:
            parts.append(segment(subresource))
        return "/".join(parts)


def object_reference(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return the reference to an object: apiVersion, kind, namespace, name and uid, as far as it has them."""
    metadata = obj.get("metadata") or {}
    named = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind")}
    named |= {key: metadata.get(key) for key in ("namespace", "name", "uid")}
    return {key: str(value) for key, value in named.items() if value}


def segment(text: str) -> str:
    """Return a name as one path segment; raises Invalid for what the API server takes for a way elsewhere."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise Invalid(f"`{text}` is not a name")
    return quote(text, safe=":@!$&'()*+,;=~")


NAMESPACES = Kind("", "v1", "namespaces", "Namespace", False)
PODS = Kind("", "v1", "pods", "Pod")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
SECRETS = Kind("", "v1", "secrets", "Secret")
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount")
EVENTS = Kind("", "v1", "events", "Event")
SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False)  # fmt: skip
SELF_SUBJECT_ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False)  # fmt: skip
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CRDS = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)  # fmt: skip
ROLES = Kind("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
CLUSTER_ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False)  # fmt: skip
VALIDATING_WEBHOOKS = Kind("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)  # fmt: skip
MUTATING_WEBHOOKS = Kind("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False)  # fmt: skip
CLUSTER_POLICIES = Kind("kyverno.io", "v1", "clusterpolicies", "ClusterPolicy", False)
POLICIES = Kind("kyverno.io", "v1", "policies", "Policy")
POLICY_EXCEPTIONS = Kind("kyverno.io", "v2", "policyexceptions", "PolicyException")
CLEANUP_POLICIES = Kind("kyverno.io", "v2", "cleanuppolicies", "CleanupPolicy")
CLUSTER_CLEANUP_POLICIES = Kind("kyverno.io", "v2", "clustercleanuppolicies", "ClusterCleanupPolicy", False)  # fmt: skip
UPDATE_REQUESTS = Kind("kyverno.io", "v2", "updaterequests", "UpdateRequest")
GLOBAL_CONTEXT_ENTRIES = Kind("kyverno.io", "v2beta1", "globalcontextentries", "GlobalContextEntry", False)  # fmt: skip
CEL_POLICIES = tuple(
    Kind(one.group, "v1", one.plural, one.kind, one.is_namespaced)
    for one in CEL_KINDS
    if not one.family.is_timed
)
"""The kinds of policies written in CEL that requests and scans ask; all are served as v1."""

DELETING_POLICIES = tuple(
    Kind(one.group, one.versions[0], one.plural, one.kind, one.is_namespaced)
    for one in CEL_KINDS
    if one.family.is_timed
)
"""The kinds of policies written in CEL that work by a schedule, in the version that Events name them by."""

CEL_EXCEPTIONS = Kind("policies.kyverno.io", "v1", "policyexceptions", "PolicyException")
EXCEPTIONS = {one.group: one for one in (POLICY_EXCEPTIONS, CEL_EXCEPTIONS)}
"""The kinds of exceptions, by the group of the policies that they are from."""
POLICY_REPORTS = Kind("wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport")
CLUSTER_POLICY_REPORTS = Kind("wgpolicyk8s.io", "v1alpha2", "clusterpolicyreports", "ClusterPolicyReport", False)  # fmt: skip
OPEN_REPORTS = Kind("openreports.io", "v1alpha1", "reports", "Report")
CLUSTER_OPEN_REPORTS = Kind("openreports.io", "v1alpha1", "clusterreports", "ClusterReport", False)
GRANT_POLICIES = Kind("kpolicy.io", "v1alpha1", "grantpolicies", "GrantPolicy", False)
GRANTS = Kind("kpolicy.io", "v1alpha1", "grants", "Grant")
ONE_TIME_CODES = Kind("kpolicy.io", "v1alpha1", "onetimecodes", "OneTimeCode")
CODE_USES = Kind("kpolicy.io", "v1alpha1", "codeuses", "CodeUse")
AUDIT_SEGMENTS = Kind("kpolicy.io", "v1alpha1", "auditsegments", "AuditSegment")
CODE_CLAIMS = Kind("kpolicy.io", "v1alpha1", "codeclaims", "CodeClaim")
AUDIT_NOTES = Kind("kpolicy.io", "v1alpha1", "auditnotes", "AuditNote")


@dataclass(frozen=True, slots=True)
class ReportKinds:
    """The kinds of one API of reports: about objects in namespaces and about all others; `source` where a report as a whole has one."""

    namespaced: Kind
    cluster_wide: Kind
    source: str = ""

    def of(self, obj: Mapping[str, Any]) -> Kind:
        """Return the kind of the report about an object."""
        return self.namespaced if obj["metadata"].get("namespace") else self.cluster_wide


CLASSIC_REPORTS = ReportKinds(POLICY_REPORTS, CLUSTER_POLICY_REPORTS)
OPENREPORTS = ReportKinds(OPEN_REPORTS, CLUSTER_OPEN_REPORTS, "kyverno")
