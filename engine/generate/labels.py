"""Labels that mark a generated object and lead back to its policy and trigger (row U-02).

They are how synchronisation, reports and people find out why an object exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Object, Policy, Review

MANAGED_BY = "app.kubernetes.io/managed-by"
PREFIX = "generate.kyverno.io/"
POLICY_NAME = f"{PREFIX}policy-name"
MAX_LABEL = 63


_PLACES = ("group", "version", "kind", "namespace", "uid")
ORIGIN = (
    MANAGED_BY, POLICY_NAME, f"{PREFIX}policy-namespace", f"{PREFIX}rule-name",
    *(f"{PREFIX}{whose}-{part}" for whose in ("trigger", "source") for part in _PLACES),
)  # fmt: skip
"""Labels that decide what becomes of a generated object."""


def downstream_labels(policy: Policy, rule: str, review: Review) -> dict[str, str]:
    """Return the labels of an object that `rule` generates for the object under review."""
    metadata = review.metadata
    return {
        MANAGED_BY: "kyverno",
        f"{PREFIX}policy-name": policy.name[:MAX_LABEL],
        f"{PREFIX}policy-namespace": policy.namespace,
        f"{PREFIX}rule-name": rule[:MAX_LABEL],
        f"{PREFIX}trigger-group": review.group,
        f"{PREFIX}trigger-kind": review.kind,
        f"{PREFIX}trigger-namespace": review.namespace,
        f"{PREFIX}trigger-uid": str(metadata.get("uid") or ""),
        f"{PREFIX}trigger-version": review.version,
    }


def source_labels(source: Object) -> dict[str, str]:
    """Return the labels that name the object a clone was copied from."""
    metadata = source.get("metadata") or {}
    group, _, version = str(source.get("apiVersion", "")).rpartition("/")
    return {
        f"{PREFIX}source-group": group,
        f"{PREFIX}source-kind": str(source.get("kind", "")),
        f"{PREFIX}source-namespace": str(metadata.get("namespace") or ""),
        f"{PREFIX}source-uid": str(metadata.get("uid") or ""),
        f"{PREFIX}source-version": version,
    }


def without_generate_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return `labels` without those that generation adds, for comparing objects by content."""
    return {
        key: value
        for key, value in labels.items()
        if not key.startswith(PREFIX) and (key, value) != (MANAGED_BY, "kyverno")
    }
