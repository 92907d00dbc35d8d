"""`apply --generate-exceptions`: a PolicyException for every object that fails, with a TTL (row X-10).

Unlike Kyverno's CLI, results of namespaced policies are taken too, and one exception names all failing rules of a policy
on an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .names import reference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rows import Row

TTL_LABEL = "cleanup.kyverno.io/ttl"
_POD_MAKERS = {
    "CronJob": ["CronJob", "Job", "Pod"],
    "Deployment": ["Deployment", "ReplicaSet", "Pod"],
    "Job": ["Job", "Pod"],
    "DaemonSet": ["DaemonSet", "Pod"],
    "StatefulSet": ["StatefulSet", "Pod"],
    "ReplicaSet": ["ReplicaSet", "Pod"],
    "ReplicationController": ["ReplicationController", "Pod"],
}


def exceptions_for(rows: Iterable[Row], ttl: str) -> list[dict[str, Any]]:
    """Return one exception for each policy and object with failing rules."""
    failed: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "fail":
            failed.setdefault((row.policy.key, row.resource), []).append(row)
    return [_exception(below, ttl) for below in failed.values()]


def _exception(rows: list[Row], ttl: str) -> dict[str, Any]:
    place = reference(rows[0].object)
    kind, name = place.get("kind", ""), place.get("name", "")
    rules = list(dict.fromkeys(rule for row in rows for rule in _rules(row.result.rule)))
    resources: dict[str, Any] = {"kinds": [kind], "names": [name]}
    if any(row.result.rule.startswith("autogen-") for row in rows):
        resources = {"kinds": _POD_MAKERS.get(kind, [kind]), "names": [name, f"{name}-*"]}
    if place.get("namespace"):
        resources["namespaces"] = [place["namespace"]]
    parts = [rows[0].policy.key.replace("/", "-"), place.get("namespace", ""), kind.lower(), name]
    return {
        "apiVersion": "kyverno.io/v2",
        "kind": "PolicyException",
        "metadata": {
            "name": "-".join(part for part in parts if part)[:253],
            "labels": {TTL_LABEL: ttl},
        },
        "spec": {
            "exceptions": [{"policyName": rows[0].policy.key, "ruleNames": rules}],
            "match": {"any": [{"resources": resources}]},
        },
    }


def _rules(rule: str) -> list[str]:
    """Return a rule and, for one of autogen, those that concern the objects its object makes (row G-07)."""
    if rule.startswith("autogen-cronjob-"):
        own = rule.removeprefix("autogen-cronjob-")
        return [rule, f"autogen-{own}", own]
    return [rule, rule.removeprefix("autogen-")] if rule.startswith("autogen-") else [rule]
