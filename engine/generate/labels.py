"""Labels that mark a generated object and lead back to its policy and trigger (row U-02).

They are how synchronisation, reports and people find out why an object exists.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.vocabulary import LABELS_SOURCES, MANAGED_BY

if TYPE_CHECKING:
    from engine.model import Object, Policy, Review

PREFIX = "generate.kyverno.io/"
POLICY_NAME = f"{PREFIX}policy-name"
SOURCE_UID = f"{PREFIX}source-uid"
SOURCE_NAMESPACE = f"{PREFIX}source-namespace"
MAX_LABEL = 63
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
"""What a server takes as the value of a label."""


_PLACES = ("group", "version", "kind", "namespace", "uid")
ORIGIN = (
    MANAGED_BY, POLICY_NAME, f"{PREFIX}policy-namespace", f"{PREFIX}rule-name",
    *(f"{PREFIX}{whose}-{part}" for whose in ("trigger", "source") for part in _PLACES),
)  # fmt: skip
"""Labels that decide what becomes of a generated object."""


def downstream_labels(policy: Policy, rule: str, review: Review) -> dict[str, str]:
    """Return the labels of an object that `rule` generates for the object under review."""
    return {
        **_of_trigger(policy, review),
        f"{PREFIX}policy-namespace": policy.namespace,
        f"{PREFIX}rule-name": rule[:MAX_LABEL],
    }


def labelled(obj: Object, policy: Policy, review: Review) -> Object:
    """Return an object that a policy written in CEL generates, with the labels of such (row GP-11): it has no rules to name.

    Upstream does not label the namespace of the policy, and so loses what policies of namespaces made (row T-11).
    """
    metadata = obj["metadata"]
    own = {f"{PREFIX}policy-namespace": policy.namespace} if policy.namespace else {}
    name = review.name[:MAX_LABEL]
    labels = {
        **(metadata.get("labels") or {}),
        **_of_trigger(policy, review),
        f"{PREFIX}trigger-name": name if _VALUE.fullmatch(name) else "",
        **own,
    }
    return {**obj, "metadata": {**metadata, "labels": labels}}


def _of_trigger(policy: Policy, review: Review) -> dict[str, str]:
    """Return the labels that name the trigger: of a request for a subresource its own body, an Eviction and not its Pod."""
    group, version, kind = review.group, review.version, review.kind
    body = review.object if review.subresource else None
    if body and body.get("kind"):
        kind = str(body["kind"])
        group, _, version = str(body.get("apiVersion", "")).rpartition("/")
    return {
        MANAGED_BY: "kyverno",
        POLICY_NAME: policy.name[:MAX_LABEL],
        f"{PREFIX}trigger-group": group,
        f"{PREFIX}trigger-kind": kind,
        f"{PREFIX}trigger-namespace": review.namespace,
        f"{PREFIX}trigger-uid": str(review.metadata.get("uid") or ""),
        f"{PREFIX}trigger-version": version,
    }


def source_labels(source: Object) -> dict[str, str]:
    """Return the labels that name the object a clone was copied from."""
    metadata = source.get("metadata") or {}
    group, _, version = str(source.get("apiVersion", "")).rpartition("/")
    return {
        f"{PREFIX}source-group": group,
        f"{PREFIX}source-kind": str(source.get("kind", "")),
        SOURCE_NAMESPACE: str(metadata.get("namespace") or ""),
        SOURCE_UID: str(metadata.get("uid") or ""),
        f"{PREFIX}source-version": version,
    }


def labels_sources(policy: Policy) -> bool:
    """Tell whether a policy says that its author may update what its rules copy, so that sources are labelled, too."""
    return policy.annotations.get(LABELS_SOURCES, "false") != "false"
