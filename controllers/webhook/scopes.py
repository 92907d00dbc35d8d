"""Checks of policies that need the cluster: unknown kinds, targets in no or too many namespaces, our own rights (A-93, A-94b, C-03).

A policy and what the server has in, findings of `engine.lint` out. Whether we may do what a policy asks of us is asked of the API server
with SelfSubjectAccessReviews, so the answer is about the rights this process really has. Nobody is asked about names that only a
request can fill in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Discovery, KubeError
from controllers.kube.kinds import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SELF_SUBJECT_ACCESS_REVIEWS
from controllers.store.cel_policies import resource_rules, webhook_rules
from engine.fields import part
from engine.lang import wildcard
from engine.lint import Finding
from engine.match import parse_kind
from engine.reach import Effect, Target, out_of_reach

from .admission_rules import kinds_in, unknown_kinds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from controllers.kube import Kind
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
            if any(
                wildcard.match(named, group)
                for group in groups_by_plural.get(plural, ())
                for named in rule["apiGroups"]
            )
        }
        unknown |= {name: None for name, plural in plurals.items() if plural not in known}
    if unknown:
        shown = ", ".join(unknown)
        text = f"the cluster does not have the resources {shown}; the policy concerns them once it does"
        yield Finding("warning", text, "spec.matchConstraints.resourceRules")


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


_KEPT: Final = ("get", "create", "update", "delete")
_ONCE: Final = ("get", "create")


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on one resource that a policy needs us to have; `at` is where in the document it says so.

    `binding` is the kind of binding that gives the named role away.
    """

    at: str
    group: str
    resource: str
    verbs: tuple[str, ...]
    kind: str = ""
    namespace: str = ""
    name: str = ""
    binding: str = ""


async def missing_verbs(client: Client, need: Need) -> tuple[str, ...]:
    """Return the verbs of a need that we do not have; raises KubeError when the server does not say."""
    answers = await asyncio.gather(*(_may(client, need, verb) for verb in need.verbs))
    return tuple(verb for verb, allowed in zip(need.verbs, answers, strict=True) if not allowed)


async def _may(client: Client, need: Need, verb: str) -> bool:
    resource, _, subresource = need.resource.partition("/")
    asked = {
        "group": need.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": "" if need.binding else need.namespace,
        "name": need.name,
    }
    attributes = {key: value for key, value in asked.items() if value}
    status = await client.review(SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": attributes})
    return status.get("allowed") is True


async def may_give(client: Client, need: Need) -> bool:
    """Tell whether we may bind a role because we hold all that it gives; the API server judges, in a dry run."""
    kind = CLUSTER_ROLE_BINDINGS if need.binding == "ClusterRoleBinding" else ROLE_BINDINGS
    place = {"namespace": need.namespace or "default"} if kind.namespaced else {}
    role = {"apiGroup": kind.group, "kind": need.kind, "name": need.name}
    probe = kind.typed({"metadata": {"generateName": "kpolicy-probe-", **place}, "roleRef": role})
    try:
        await client.create(kind, probe, dry_run=True)
    except KubeError:
        return False
    return True


def needs_of_policy(policy: Policy, discovery: Discovery) -> Iterator[Need]:
    """Yield what generate and mutate-existing rules need us to be allowed."""
    for index, rule in enumerate(policy.rules):
        at = f"spec.rules[{index}]"
        yield from _needs_of_generate(rule, f"{at}.generate", discovery)
        for number, target in enumerate((rule.mutate or {}).get("targets") or ()):
            place = f"{at}.mutate.targets[{number}]"
            yield from _on(target, place, ("get", "update"), discovery)


def target_kinds(policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield apiVersion and kind of what a policy makes, copies or changes, as far as no variable decides it."""
    for rule in policy.rules:
        block = rule.generate or {}
        blocks = [block, *(block.get("foreach") or ()), *((rule.mutate or {}).get("targets") or ())]
        for one in blocks:
            texts = (one.get("cloneList") or {}).get("kinds") or ()
            pairs = [(one.get("apiVersion"), one.get("kind")), *_pairs(texts)]
            for version, kind in pairs:
                if _fixed(version) and _fixed(kind):
                    yield str(version), str(kind).partition("/")[0]


def _pairs(texts: Iterable[object]) -> Iterator[tuple[str, str]]:
    for text in texts:
        version, _, kind = str(text).rpartition("/")
        yield version, kind


def _needs_of_generate(rule: Rule, at: str, discovery: Discovery) -> Iterator[Need]:
    block = rule.generate
    if not block:
        return
    verbs = _KEPT if block.get("synchronize") else _ONCE
    for one in block.get("foreach") or (block,):
        # what is made is an object, whatever part of it the kind names
        whole = {**one, "kind": str(one.get("kind") or "").partition("/")[0]}
        yield from _on(whole, at, verbs, discovery)
        clone_list = one.get("cloneList") or {}
        for version, kind in _pairs(clone_list.get("kinds") or ()):
            target = {"apiVersion": version, "kind": kind, "namespace": one.get("namespace")}
            yield from _on(target, at, verbs, discovery)
            source = {**target, "namespace": clone_list.get("namespace")}
            yield from _on(source, f"{at}.cloneList", ("list", "get"), discovery)
        if clone := one.get("clone"):
            source = {**one, "name": clone.get("name"), "namespace": clone.get("namespace")}
            yield from _on(source, f"{at}.clone", ("get",), discovery)
        yield from _needs_of_binding(one, at)


def _needs_of_binding(block: Block, at: str) -> Iterator[Need]:
    """Yield the right to bind the ClusterRole that a generated binding names."""
    reference = part(block, "data", "roleRef")
    name = _fixed(reference.get("name"))
    is_binding = block.get("kind") in ("RoleBinding", "ClusterRoleBinding")
    if is_binding and reference.get("kind") == "ClusterRole" and name:
        yield Need(
            f"{at}.data.roleRef",
            "rbac.authorization.k8s.io",
            "clusterroles",
            ("bind",),
            "ClusterRole",
            namespace=_fixed(block.get("namespace")),
            name=name,
            binding=str(block["kind"]),
        )


def _on(block: Block, at: str, verbs: tuple[str, ...], discovery: Discovery) -> Iterator[Need]:
    """Yield the need on an object's kind; of one that the server does not have, or that a request names, none."""
    kind, version = _fixed(block.get("kind")), _fixed(block.get("apiVersion"))
    parent, _, subresource = kind.partition("/")
    found = discovery.find(version, parent) if kind and version else None
    if found is None:
        return
    yield Need(
        at,
        found.group,
        f"{found.plural}/{subresource}" if subresource else found.plural,
        verbs,
        kind,
        namespace=_fixed(block.get("namespace")) if found.namespaced else "",
        name="" if "create" in verbs or "list" in verbs else _fixed(block.get("name")),
    )


def needs_of_cleanup(
    kinds: Iterable[str], discovery: Discovery, namespace: str = ""
) -> Iterator[Need]:
    """Yield what deleting objects of some kinds, as written, needs."""
    from engine.match import parse_kind

    for text in kinds:
        wanted = parse_kind(str(text))
        for kind in discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True):
            if wanted.kind == "*" and "delete" not in kind.verbs:
                continue
            yield Need(
                "spec.match", kind.group, kind.plural, ("list", "delete"), kind.kind, namespace
            )


def _fixed(value: object) -> str:
    """Return a text that no request changes, empty otherwise."""
    text = value if isinstance(value, str) else ""
    return "" if "{{" in text or "*" in text or "?" in text else text
