"""The words that objects carry for us: annotations, labels and API versions, each written here once.

Guards, webhooks, loops and the command line have to mean the same word, so none of them spells it out itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KPOLICY: Final = "kpolicy.io/v1alpha1"
"""API version of our own kinds, and of what commands print as data."""
KYVERNO_V2: Final = "kyverno.io/v2"
"""API version of exceptions, cleanup policies and UpdateRequests."""

OWNER: Final = "kpolicy.io/owner"
"""Annotation of everything that an installation of ours brings; its value is `kpolicy`."""
KIND: Final = "kpolicy.io/kind"
"""Label of Leases that hold something other than leadership."""
CALLERS: Final = "kpolicy.io/callers"
"""Annotation of webhook configurations: how callers prove themselves."""

EXPIRES_AT: Final = "kpolicy.io/expires-at"
"""Annotation with the RFC 3339 instant from which an exception covers nothing."""
GRANT: Final = "kpolicy.io/grant"
"""Annotation of an exception that a grant causes: the grant's name."""
USES: Final = "kpolicy.io/uses"
"""Annotation of an exception: how often it may be used."""
REQUESTER: Final = "kpolicy.io/requester"
REASON: Final = "kpolicy.io/reason"
TICKET: Final = "kpolicy.io/ticket"

LABELS_SOURCES: Final = "kpolicy.io/labels-clone-sources"
"""Annotation of a policy whose author may update what its rules copy, so that the sources are labelled as such."""

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Label of what a program makes, here and elsewhere."""
BY_KPOLICY: Final = {MANAGED_BY: "kpolicy"}
BY_KYVERNO: Final = {MANAGED_BY: "kyverno"}
"""The same of what is ours alone, and of what upstream's tools look for, too."""
RIGHTS_FOR: Final = "rbac.kyverno.io/aggregate-to-"
"""What the label of a ClusterRole begins with that adds its rules to those of one of the controllers, whose name follows."""
SERVICE_ACCOUNT: Final = "system:serviceaccount:"
"""What names of service accounts begin with where they are users; namespace and name follow, with a colon between them."""

CATEGORY: Final = "policies.kyverno.io/category"
DESCRIPTION: Final = "policies.kyverno.io/description"
SCORED: Final = "policies.kyverno.io/scored"
SEVERITY: Final = "policies.kyverno.io/severity"
SEVERITIES: Final = ("critical", "high", "medium", "low", "info")
"""What reports may call the severity of a result, the worst first."""
UNREPORTED: Final = "reports.kyverno.io/disabled"
"""Label of a policy whose results stay out of reports."""
AUTOGEN: Final = "pod-policies.kyverno.io/autogen-controllers"
"""Annotation of a policy: for which controllers of Pods its rules are repeated."""
TRIGGER_UID: Final = "generate.kyverno.io/trigger-uid"
TRIGGER_KIND: Final = "generate.kyverno.io/trigger-kind"
"""Labels of what a rule made; a clean-up policy that has them deletes the one object that it was made for."""
DECIDING: Final = (AUTOGEN, LABELS_SOURCES, TRIGGER_UID, TRIGGER_KIND)
"""Annotations and labels of a policy that decide what it does, beside its spec."""

PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")
"""What may be said to happen to the dependents of what is deleted."""
TTL_LABEL: Final = "cleanup.kyverno.io/ttl"
CLEANUP_AFTER: Final = "kpolicy.io/cleanup-after"
CLEANUP_SKIP: Final = "kpolicy.io/cleanup-skip"
CLEANUP_PAUSE: Final = "kpolicy.io/cleanup-pause"
CLEANUP_RUN: Final = "kpolicy.io/cleanup-run"
CLEANUP_REASON: Final = "kpolicy.io/cleanup-reason"
CLEANUP_CHANGED_BY: Final = "kpolicy.io/cleanup-changed-by"

USER: Final = "kpolicy.io/user"
REQUEST_UID: Final = "kpolicy.io/request-uid"
BLOCK: Final = "kpolicy.io/block"
"""Annotation of the Event of a denial: the id by which an exception is asked for."""


def decides(text: str) -> bool:
    """Tell whether a text names metadata that decides what a policy does, also as an anchor."""
    return any(name in text for name in DECIDING)


def severity_of(annotations: Mapping[str, object]) -> str:
    """Return the severity that a policy's annotations give its results; empty for none and for what no report may say."""
    given = str(annotations.get(SEVERITY) or "").lower()
    return given if given in SEVERITIES else ""
