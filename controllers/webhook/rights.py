"""Whether we may do what a policy asks of us, before the policy is accepted (rows A-93, C-03).

For the admission of policies. The API server is asked about ourselves with SelfSubjectAccessReviews, so the answer is about the
rights this process really has. Nobody is asked about names that only a request can fill in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Discovery, KubeError
from controllers.kube.kinds import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, SELF_SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Block, Policy, Rule

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
    probe = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"generateName": "kpolicy-probe-", **place},
        "roleRef": {"apiGroup": kind.group, "kind": need.kind, "name": need.name},
    }
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
    data = block.get("data") or {}
    reference = data.get("roleRef") if isinstance(data, dict) else None
    if block.get("kind") not in ("RoleBinding", "ClusterRoleBinding") or not isinstance(
        reference, dict
    ):
        return
    name = _fixed(reference.get("name"))
    if reference.get("kind") == "ClusterRole" and name:
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
