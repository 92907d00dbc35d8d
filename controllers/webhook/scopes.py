"""Checks of policies that need the kinds of the cluster: unknown kinds, and targets in no or too many namespaces (A-94b).

Pure: a policy and what the server has in, findings of `engine.lint` out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.store.cel_policies import resource_rules, webhook_rules
from engine.lang import wildcard
from engine.lint import Finding
from engine.match import parse_kind
from engine.reach import Effect, Target, out_of_reach

from .admission_rules import kinds_in, unknown_kinds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from controllers.kube import Discovery, Kind
    from engine.model import Block, CleanupPolicy, Policy, Rule

_UNSET = "Forbidden: target namespace must be set for a namespaced resource"
_SET = "Forbidden: target namespace must not be set for a cluster-wide resource"
_OUTSIDE = "Forbidden: a namespaced policy cannot generate cluster-wide resources"
_MIXED = "Forbidden: the kinds of a cloneList must have the same scope"
_NO_SOURCE = "Forbidden: the namespace of the source must be set for namespaced resources"
_SOURCE = "Forbidden: the namespace of the source must not be set for cluster-wide resources"


MOST_NAMED: Final = 2000
"""Words in the resource rules of one policy: all policies share the webhook configurations, whose size is bounded."""


def cluster_findings(policy: Policy, discovery: Discovery) -> Iterator[Finding]:
    """Yield what is wrong or doubtful about a policy in this cluster."""
    for index, rule in enumerate(policy.rules):
        path = f"spec.rules[{index}]"
        yield from _check_kinds(rule, path, discovery)
        for number, target in enumerate((rule.mutate or {}).get("targets") or ()):
            at = f"{path}.mutate.targets[{number}]"
            yield from _check_reach(policy, Effect.MUTATE_EXISTING, target, at, discovery)
        for block in _generated(rule):
            yield from _check_target(policy, block, path, discovery)
            yield from _check_clone_list(policy, block, path, discovery)
            yield from _check_reach(policy, Effect.GENERATE, block, f"{path}.generate", discovery)


def resource_findings(policy: Policy, discovery: Discovery) -> Iterator[Finding]:
    """Yield what is wrong or doubtful about the resources that a policy written in CEL names."""
    words = (one for rule in resource_rules(policy) for one in rule.values())
    named = sum(len(one) for one in words if isinstance(one, list))
    if named > MOST_NAMED:
        text = f"{named} groups, versions, resources and names are more than a webhook is told of ({MOST_NAMED}); use a wildcard"
        yield Finding("error", text, "spec.matchConstraints.resourceRules")
        return
    yield from unknown_resources(policy, discovery)


def unknown_resources(policy: Policy, discovery: Discovery) -> Iterator[Finding]:
    """Yield warnings of resources that a policy written in CEL names and the server does not have."""
    groups_by_plural: dict[str, set[str]] = {}
    for kind in discovery:
        for plural in (kind.plural, "*"):
            groups_by_plural.setdefault(plural, set()).add(kind.group)
    unknown: dict[str, None] = {}
    for rule in webhook_rules(policy):
        plurals = {resource: resource.partition("/")[0] for resource in rule["resources"]}
        known = {
            plural
            for plural in set(plurals.values())
            if _has_any(groups_by_plural.get(plural, ()), rule["apiGroups"])
        }
        unknown |= {name: None for name, plural in plurals.items() if plural not in known}
    if unknown:
        shown = ", ".join(unknown)
        text = f"the cluster does not have the resources {shown}; the policy concerns them once it does"
        yield Finding("warning", text, "spec.matchConstraints.resourceRules")


def _has_any(groups: Collection[str], named: list[str]) -> bool:
    return any(wildcard.match(one, group) for group in groups for one in named)


def _check_kinds(rule: Rule, path: str, discovery: Discovery) -> Iterator[Finding]:
    """Refuse a rule none of whose kinds the server has; of some that may still come, warn."""
    named = kinds_in(rule.match)
    unknown = unknown_kinds(named, discovery)
    if not unknown:
        return
    shown = ", ".join(unknown)
    if len(unknown) == len(named) and not discovery.missing:
        yield Finding("error", f"unable to convert GVK to GVR for kinds {shown}", path)
    else:
        text = f"the cluster does not have the kinds {shown}; the rule concerns them once it does"
        yield Finding("warning", text, path)


def _generated(rule: Rule) -> tuple[Block, ...]:
    block = rule.generate or {}
    return tuple(block.get("foreach") or ((block,) if block else ()))


def _check_target(
    policy: Policy, block: Block, path: str, discovery: Discovery
) -> Iterator[Finding]:
    kind = _found(block.get("apiVersion"), block.get("kind"), discovery)
    if kind is None:
        return
    if kind.namespaced and not block.get("namespace"):
        yield Finding("error", _UNSET, f"{path}.namespace")
    elif not kind.namespaced and policy.namespace:
        yield Finding("error", _OUTSIDE, f"{path}.kind")
    elif not kind.namespaced and block.get("namespace"):
        yield Finding("error", _SET, f"{path}.namespace")


def _check_reach(
    policy: Policy, effect: Effect, block: Block, path: str, discovery: Discovery
) -> Iterator[Finding]:
    """Refuse a kind that is out of reach here: only the cluster knows which of its own have no namespace."""
    kind = _found(block.get("apiVersion"), str(block.get("kind")).partition("/")[0], discovery)
    if kind is None:
        return
    target = Target(kind.group, kind.kind, kind.namespaced)
    if reason := out_of_reach(effect, target, policy.namespace):
        yield Finding("error", f"Forbidden: {reason}", f"{path}.kind")


def cleanup_findings(policy: CleanupPolicy, discovery: Discovery) -> Iterator[Finding]:
    """Yield kinds, named as such, of which a clean-up policy will never delete anything in this cluster."""
    for text in kinds_in(policy.match):
        wanted = parse_kind(text)
        if wildcard.has_wildcard(wanted.kind):
            continue
        found = discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True)
        targets = [Target(kind.group, kind.kind, kind.namespaced) for kind in found]
        reasons = [out_of_reach(Effect.CLEAN_UP, one, policy.namespace) for one in targets]
        if reasons and all(reasons):
            yield Finding("error", f"Forbidden: {reasons[0]}", "spec.match")


def _check_clone_list(
    policy: Policy, block: Block, path: str, discovery: Discovery
) -> Iterator[Finding]:
    clone_list = block.get("cloneList") or {}
    parts = (str(text).rpartition("/") for text in clone_list.get("kinds") or ())
    kinds = [_found(version, kind, discovery) for version, _, kind in parts]
    scopes = {kind.namespaced for kind in kinds if kind is not None}
    at = f"{path}.generate.cloneList"
    if len(scopes) > 1:
        yield Finding("error", _MIXED, f"{at}.kinds")
    elif scopes == {True} and not clone_list.get("namespace"):
        yield Finding("error", _NO_SOURCE, f"{at}.namespace")
    elif scopes == {True} and not block.get("namespace"):
        yield Finding("error", _UNSET, f"{path}.namespace")
    elif scopes == {False} and policy.namespace:
        yield Finding("error", _OUTSIDE, f"{at}.kinds")
    elif scopes == {False} and clone_list.get("namespace"):
        yield Finding("error", _SOURCE, f"{at}.namespace")


def _found(version: object, kind: object, discovery: Discovery) -> Kind | None:
    if not isinstance(version, str) or not isinstance(kind, str):
        return None
    return discovery.find(version, kind)
