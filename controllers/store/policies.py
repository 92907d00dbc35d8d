"""Policies as stored, classic ones and those written in CEL, and the status of classic ones (row A-04).

For the policy cache and for the loop that writes status. Documents that an API server holds went through its schema, so
fields that we do not know are passed over instead of refused.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.autogen import generated_rules
from engine.fields import part
from engine.model.kinds import CEL_GROUP, NAMESPACED, identity, kind_of
from engine.model.policy import CEL_KEY, CelException
from engine.native import NATIVE_KINDS
from engine.parse import parse_exception, parse_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.model import Json, Object, Policy, PolicyException, RuleResult

_COUNTED = ("validate", "generate", "mutate", "verifyImages")


def read_policy(obj: Object) -> Policy:
    """Return the policy in a stored object; raises PolicyError."""
    if not is_cel(obj):
        return parse_policy(obj, strict=False)
    from engine.parse.celpolicies import parse_cel_policy

    return parse_cel_policy(obj, strict=False)


def is_cel(obj: Object) -> bool:
    """Tell whether an object is of policies.kyverno.io, where everything is written in CEL."""
    return str(obj.get("apiVersion", "")).partition("/")[0] == CEL_GROUP


def is_policy(obj: Object) -> bool:
    """Tell whether an object is a policy that rules are evaluated of, of whichever kind."""
    kind = kind_of(obj)
    return kind is not None and not kind.family.is_timed


def policy_key(obj: Object) -> str:
    """Return what tells a policy from all others (`engine.model.kinds.identity`)."""
    metadata = obj.get("metadata") or {}
    name = str(metadata.get("name") or "")
    if obj.get("kind") in NAMESPACED:
        name = f"{metadata.get('namespace') or 'default'}/{name}"
    return identity(str(obj.get("kind")), name)


def key_of_exception(result: RuleResult, name: str) -> str:
    """Return the key of the exception `name` that excused a result: exceptions are of the group of their policies."""
    return f"{CEL_KEY}{name}" if result.is_of_cel else name


def content_hash(obj: Object) -> str:
    """Return a digest of everything that decides what an object means; status and bookkeeping do not count."""
    metadata = obj.get("metadata") or {}
    meaning = {
        "apiVersion": obj.get("apiVersion"),
        "kind": obj.get("kind"),
        "spec": obj.get("spec"),
        **{
            name: metadata.get(name)
            for name in ("name", "namespace", "labels", "annotations", "creationTimestamp")
        },
    }
    return hashlib.sha256(orjson.dumps(meaning, option=orjson.OPT_SORT_KEYS)).hexdigest()


def has_native(obj: Object) -> bool:
    """Tell whether the API server judges by a native policy that stands for a stored one, as its status says (row NG-05)."""
    return obj.get("kind") in NATIVE_KINDS and native_state(obj).generated


def fine_grained(policy: Policy) -> bool:
    """Tell whether a policy gets a webhook of its own, because it has match conditions (row W-03)."""
    return bool(match_conditions(policy))


def match_conditions(policy: Policy) -> Sequence[Mapping[str, Json]]:
    """Return the conditions that the API server tests before it asks us (row A-21)."""
    return tuple(part(policy.raw, "spec", "webhookConfiguration").get("matchConditions") or ())


def timeout_of(policy: Policy) -> int | None:
    """Return the webhook time-out a policy asks for, in seconds (rows A-20, A-21)."""
    spec = part(policy.raw, "spec")
    configured = part(spec, "webhookConfiguration").get("timeoutSeconds")
    value = configured or spec.get("webhookTimeoutSeconds")
    return int(value) if isinstance(value, int | float) else None


@dataclass(frozen=True, slots=True)
class NativeState:
    """Whether the API server judges by a native policy in place of one of ours, and why not if it does not."""

    generated: bool = False
    message: str = ""


NO_NATIVE: Final = NativeState()


def native_state(obj: Object) -> NativeState:
    """Return what the status of a stored policy says of a native one."""
    status = obj.get("status") or {}
    if is_cel(obj):
        message = (status.get("conditionStatus") or {}).get("message")
        return NativeState(status.get("generated") is True, str(message or ""))
    told = status.get("validatingadmissionpolicy") or {}
    return NativeState(told.get("generated") is True, str(told.get("message") or ""))


def status_of(
    policy: Policy, error: str, now: str, native: NativeState = NO_NATIVE
) -> dict[str, Any]:
    """Return the status of a policy that is in force, or (with `error`) of one that is not."""
    rules = [] if error else [_stored(rule.raw) for rule in generated_rules(policy)]
    return {
        "ready": not error,
        "conditions": [condition("Ready", error or "Ready", now, holds=not error)],
        "autogen": {"rules": rules} if rules else {},
        "rulecount": _rule_counts(policy),
        "validatingadmissionpolicy": {"generated": native.generated, "message": native.message},
    }


def condition(name: str, text: str, now: str, *, holds: bool) -> dict[str, str]:
    """Return a condition of a policy's status."""
    return {
        "type": name,
        "status": "True" if holds else "False",
        "reason": "Succeeded" if holds else "Failed",
        "message": text,
        "lastTransitionTime": now,
    }


def lasting(
    conditions: Iterable[Mapping[str, Json]], before: Iterable[Mapping[str, Json]] | None
) -> list[dict[str, Json]]:
    """Return conditions that keep the time at which they began to say what they say; `before` are those of the status so far."""
    changed = "lastTransitionTime"
    known = {(one.get("type"), one.get("status")): one.get(changed) for one in before or ()}
    return [
        {**one, changed: known.get((one["type"], one["status"])) or one[changed]}
        for one in conditions
    ]


def same_status(one: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Tell whether two statuses say the same, whenever they began to."""
    return _timeless(one) == _timeless(other)


def _timeless(status: Mapping[str, Json]) -> dict[str, Json]:
    made = dict(status)
    made["conditions"] = [
        {key: value for key, value in (one or {}).items() if key != "lastTransitionTime"}
        for one in status.get("conditions") or ()
    ]
    return made


def _rule_counts(policy: Policy) -> dict[str, int]:
    return {
        name.lower(): sum(1 for rule in policy.rules if (rule.raw or {}).get(name))
        for name in _COUNTED
    }


def _stored(rule: Mapping[str, Json]) -> dict[str, Json]:
    """Return a rule with the default that upstream's kinds give every rule, and without what it leaves open."""
    stated = {"skipBackgroundRequests": True, **rule}
    return {key: value for key, value in stated.items() if value is not None}


NOT_ENABLED = "PolicyException resources would not be processed until it is enabled."
NO_NAMESPACE = "The exceptionNamespace flag is not set"
WRONG_NAMESPACE = "PolicyException resource namespace must match the defined namespace."


@dataclass(frozen=True, slots=True)
class ExceptionRules:
    """Whether exceptions count and from which namespace: `*` is every one, empty is none."""

    enabled: bool = True
    namespace: str = "*"

    def counts(self, namespace: str) -> bool:
        """Tell whether an exception in `namespace` is honoured."""
        return not self.warning(namespace)

    def warning(self, namespace: str) -> str:
        """Return upstream's words about an exception in `namespace`, empty when it counts."""
        if not self.enabled:
            return NOT_ENABLED
        if not self.namespace:
            return NO_NAMESPACE
        if self.namespace not in ("*", namespace):
            return WRONG_NAMESPACE
        return ""


def read_exception(obj: Object) -> PolicyException:
    """Return the classic exception in a stored object; raises PolicyError."""
    return parse_exception(obj, strict=False)


def read_cel_exception(obj: Object) -> CelException:
    """Return the exception of policies.kyverno.io in a stored object; raises PolicyError."""
    from engine.parse.celpolicies import parse_cel_exception

    return parse_cel_exception(obj, strict=False)


def exception_hash(obj: Object) -> str:
    """Return a digest of everything that decides what an exception means: its content, and whose it is."""
    owners = (obj.get("metadata") or {}).get("ownerReferences")
    uids = [str(one.get("uid")) for one in owners or () if isinstance(one, dict)]
    return "/".join((content_hash(obj), *uids))


def exception_key(obj: Object) -> str:
    """Return `namespace/name`, with CEL_KEY before that of an exception of policies.kyverno.io."""
    metadata = obj.get("metadata") or {}
    name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"
    return f"{CEL_KEY}{name}" if is_cel(obj) else name
