"""The PolicyException that an active grant causes: what the engine, and stock Kyverno beside it, then honours.

It covers the granted rules for the granted objects in the grant's namespace and nothing else; from a policy written in CEL it is
one of policies.kyverno.io, whose conditions say which objects. It carries its end twice: as our annotation, which counts at the
instant of every decision, and as upstream's TTL label, by which Kyverno deletes it; one of policies.kyverno.io in its spec, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.ttl import TTL_LABEL
from engine.exceptions.cover import EXPIRES_AT
from engine.model.kinds import BY_NAME, CEL_GROUP, CLASSIC_GROUP, is_of_cel
from engine.reach import EXCEPTION_KIND, GRANT_ANNOTATION

from .conditions import conditions_of
from .subjects import reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from engine.model import Object

    from .model import Grant

USES_ANNOTATION = "kpolicy.io/uses"
"""How many requests the exception may let through; without it, any number."""
_DEFAULTS = {"background": True, "reportResult": "skip"}
"""What the server may add to the spec of an exception."""
_CONTROLLERS = (
    "DaemonSet",
    "Deployment",
    "Job",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
)


def group_of(grant: Grant) -> str:
    """Return the API group of the exception that a grant causes: that of the policy."""
    return CEL_GROUP if is_of_cel(grant.policy) else CLASSIC_GROUP


def exception_name(grant: str) -> str:
    """Return the name of the exception that the grant of a name causes, in the grant's namespace."""
    return f"grant-{grant}"


def exception_of(grant: Grant, expires_at: datetime) -> Object:
    """Return the exception of a grant that ends at `expires_at` (UTC), owned by the Grant object.

    Raises PolicyError for a grant that names no policy of any kind.
    """
    is_cel = is_of_cel(grant.policy)
    return {
        "apiVersion": f"{CEL_GROUP}/v1" if is_cel else f"{CLASSIC_GROUP}/v2",
        "kind": EXCEPTION_KIND,
        "metadata": {
            "name": exception_name(grant.name),
            "namespace": grant.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "kpolicy",
                TTL_LABEL: expires_at.strftime("%Y-%m-%dT%H%M%SZ"),
            },
            "annotations": {
                EXPIRES_AT: _text(expires_at),
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
        "spec": _of_cel(grant, expires_at) if is_cel else _classic(grant),
    }


def says_same(spec: Mapping[str, object], expected: Mapping[str, object]) -> bool:
    """Tell whether two specs of exceptions say the same, whatever the server has added to one of them."""
    return {**_DEFAULTS, **spec} == {**_DEFAULTS, **expected}


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _classic(grant: Grant) -> Object:
    return {
        "exceptions": [{"policyName": grant.policy, "ruleNames": _rule_names(grant)}],
        "match": {"any": [{"resources": _resources(grant)}]},
    }


def _of_cel(grant: Grant, expires_at: datetime) -> Object:
    name, kind = reference_of(grant.policy)
    return {
        "policyRefs": [{"name": name, "kind": kind}],
        "matchConditions": conditions_of(grant, is_asked=not BY_NAME[kind].family.is_timed),
        "expiresAt": _text(expires_at),
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
