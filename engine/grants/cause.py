"""The PolicyException that an active grant causes: what the engine, and stock Kyverno beside it, then honours.

It covers the granted rules for the granted objects in the grant's namespace and nothing else. It carries its end twice: as
our annotation, which counts at the instant of every decision, and as upstream's TTL label, by which Kyverno deletes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.ttl import TTL_LABEL
from engine.exceptions.cover import EXPIRES_AT
from engine.reach import GRANT_ANNOTATION

if TYPE_CHECKING:
    from datetime import datetime

    from engine.model import Object

    from .model import Grant

USES_ANNOTATION = "kpolicy.io/uses"
"""How many requests the exception may let through; without it, any number."""
_CONTROLLERS = (
    "DaemonSet",
    "Deployment",
    "Job",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
)


def exception_of(grant: Grant, expires_at: datetime) -> Object:
    """Return the exception of a grant that ends at `expires_at` (UTC), owned by the Grant object."""
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {
            "name": f"grant-{grant.name}",
            "namespace": grant.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "kpolicy",
                TTL_LABEL: expires_at.strftime("%Y-%m-%dT%H%M%SZ"),
            },
            "annotations": {
                EXPIRES_AT: expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
                GRANT_ANNOTATION: f"{grant.namespace}/{grant.name}",
                "kpolicy.io/requester": grant.requester,
                "kpolicy.io/reason": grant.reason,
                **({"kpolicy.io/ticket": grant.ticket} if grant.ticket else {}),
                **({USES_ANNOTATION: str(grant.uses)} if grant.uses else {}),
            },
            "ownerReferences": [
                {
                    "apiVersion": "kpolicy.io/v1alpha1",
                    "kind": "Grant",
                    "name": grant.name,
                    "uid": grant.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "exceptions": [{"policyName": grant.policy, "ruleNames": _rule_names(grant)}],
            "match": {"any": [{"resources": _resources(grant)}]},
        },
    }


def _rule_names(grant: Grant) -> list[str]:
    """Return the granted rules, with those that autogen makes of them for a controller of Pods."""
    rules = list(grant.rules) or ["*"]
    if grant.kind in _CONTROLLERS:
        return [*rules, *(f"autogen-{rule}" for rule in rules if rule != "*")]
    if grant.kind == "CronJob":
        return [*rules, *(f"autogen-cronjob-{rule}" for rule in rules if rule != "*")]
    return rules


def _resources(grant: Grant) -> Object:
    found: Object = {"kinds": [grant.kind], "namespaces": [grant.namespace]}
    if grant.target:
        found["names"] = [grant.target]
    if grant.selector:
        found["selector"] = dict(grant.selector)
    return found
