"""Policies written in CEL as the API server is told of them: the requests they concern, and their status (rows L-01, W-04).

Apart from `policies`, whose kinds say in rules what these say in match constraints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .policies import CEL_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.model import Block, Policy

ANY: Final = "*"
_OPERATIONS: Final = frozenset({"CONNECT", "CREATE", "DELETE", "UPDATE"})
_NAMESPACED: Final = "Namespaced"


def is_of_cel(policy: Policy) -> bool:
    """Tell whether a policy is of the kinds written in CEL, which have no rules."""
    return policy.kind in CEL_KINDS


def webhook_rules(policy: Policy) -> Iterator[dict[str, Any]]:
    """Yield the rules of a webhook for what a policy and its autogen variants concern.

    They are in the one form that an API server accepts, whatever the policy says: a single refused rule would keep all
    webhooks from being configured. A policy for other documents than requests concerns none.
    """
    for block in resource_rules(policy):
        rule = {
            "apiGroups": _words(block.get("apiGroups"), may_be_empty=True),
            "apiVersions": _words(block.get("apiVersions")),
            "operations": _operations(block.get("operations")),
            "resources": _resources(block.get("resources") or ()),
            "scope": _scope(policy, block),
        }
        if rule["operations"] and rule["resources"] and rule["scope"]:
            yield rule


def resource_rules(policy: Policy) -> Iterator[Mapping[str, Any]]:
    """Yield the resource rules of a policy as written, and those that autogen adds."""
    from engine.evaluate.cel.autogen import variants

    spec = policy.raw["spec"]
    if ((spec.get("evaluation") or {}).get("mode") or "Kubernetes") != "Kubernetes":
        return
    for one in (spec, *(variant.spec for variant in variants(spec))):
        yield from (one.get("matchConstraints") or {}).get("resourceRules") or ()


def _words(listed: Iterable[str] | None, *, may_be_empty: bool = False) -> list[str]:
    """Return the words of a list in order; `*` stands alone, and nothing at all means it."""
    found = {str(word) for word in listed or (ANY,) if word or may_be_empty}
    return [ANY] if ANY in found or not found else sorted(found)


def _operations(listed: Iterable[str] | None) -> list[str]:
    words = _words(listed)
    return words if words == [ANY] else [word for word in words if word in _OPERATIONS]


def _resources(listed: Iterable[str]) -> list[str]:
    """Return resources without those that a wider one among them includes."""
    found = {str(word) for word in listed if word}
    if "*/*" in found:
        return ["*/*"]
    kept = (word for word in found if not any(_includes(other, word) for other in found - {word}))
    return sorted(kept)


def _includes(wider: str, word: str) -> bool:
    wide, slash, below = wider.partition("/")
    head, has_below, tail = word.partition("/")
    if not slash:
        return wide == ANY and not has_below
    return wide in (ANY, head) and below in (ANY, tail) and bool(has_below)


def _scope(policy: Policy, block: Mapping[str, Any]) -> str:
    """Return the scope of a rule; of a policy of one namespace nothing outside of namespaces is concerned."""
    scope = str(block.get("scope") or ANY)
    if not policy.namespace:
        return scope
    return _NAMESPACED if scope in (ANY, _NAMESPACED) else ""


def cel_status(policy: Policy | None, error: str, now: str) -> dict[str, Any]:
    """Return the status of a policy that is in force, or (with `error`) of one that is not."""
    is_ready = not error
    conditions = [
        {
            "type": name,
            "status": "True" if is_ready else "False",
            "reason": "Succeeded" if is_ready else "Failed",
            "message": text if is_ready else error,
            "lastTransitionTime": now,
        }
        for name, text in (
            ("WebhookConfigured", "Webhook configured."),
            ("PolicyCached", "Policy is ready for reporting."),
        )
    ]
    return {
        "conditionStatus": {"ready": is_ready, "message": error, "conditions": conditions},
        "autogen": {"configs": _configs(policy) if policy and is_ready else {}},
        "generated": False,
    }


def since(status: dict[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return a status whose conditions keep the time at which they began to say what they say."""
    shown = status["conditionStatus"]
    known = {
        (one.get("type"), one.get("status")): one.get("lastTransitionTime")
        for one in (old.get("conditionStatus") or {}).get("conditions") or ()
    }
    conditions = [
        {
            **one,
            "lastTransitionTime": known.get((one["type"], one["status"]))
            or one["lastTransitionTime"],
        }
        for one in shown["conditions"]
    ]
    return {**status, "conditionStatus": {**shown, "conditions": conditions}}


def _configs(policy: Policy) -> dict[str, Block]:
    """Return what autogen makes of a policy, by the name of the variant."""
    from engine.evaluate.cel.autogen import variants

    shown = ("matchConstraints", "matchConditions", "validations", "variables", "auditAnnotations")
    return {
        variant.name: {
            "targets": [{"resource": name} for name in variant.resources],
            "spec": {key: variant.spec[key] for key in shown if variant.spec.get(key)},
        }
        for variant in variants(policy.raw["spec"])
    }
