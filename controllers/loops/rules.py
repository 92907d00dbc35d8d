"""Questions about rules that several loops ask: what they synchronise, which kinds they concern, one rule alone.

The answers stand in the rule as its author wrote it, with the deprecated places of the policy (row A-23) behind the rule's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from controllers.runtime.webhook_routes import is_mutate_existing, is_trigger
from controllers.store.cel_policies import is_of_cel, webhook_rules
from engine.cleanup.timed import is_deleting
from engine.evaluate import CompiledPolicy, PolicySet
from engine.fields import part
from engine.match import KindFilter, parse_kind
from engine.model.kinds import NATIVE, is_enabled
from engine.reach import Effect, Target, out_of_reach
from engine.requester import WHO_ASKS, asks_of_expressions, asks_of_request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controllers.kube import Discovery, Kind
    from controllers.runtime.policy_cache import Snapshot
    from engine.evaluate.rules import CompiledRule
    from engine.model import Block, CleanupPolicy, Object


def find_rule(snapshot: Snapshot, policy: str, rule: str) -> CompiledRule | None:
    """Return a rule in force by the identity of its policy and its name.

    Of a policy written in CEL it is the one whose work is done by loops.
    """
    compiled = snapshot.compiled.get(policy)
    if compiled is None:
        return None
    if is_of_cel(compiled.policy):
        return next(filter(is_trigger, compiled.rules), None)
    return next((one for one in compiled.rules if one.rule.name == rule), None)


def alone(rule: CompiledRule) -> PolicySet:
    """Return a set that holds one rule."""
    return PolicySet((CompiledPolicy(rule.policy, (rule,)),))


def synchronizes(rule: CompiledRule) -> bool:
    """Tell whether what a generate rule made is kept as the rule says (row U-04)."""
    if is_of_cel(rule.policy):
        return is_enabled(_spec(rule), "synchronize")
    return (rule.rule.generate or {}).get("synchronize") is True


def outlives_policy(rule: CompiledRule) -> bool:
    """Tell whether what a rule made stays when the rule is deleted."""
    if is_of_cel(rule.policy):
        return is_enabled(_spec(rule), "orphanDownstreamOnPolicyDelete")
    return (rule.rule.generate or {}).get("orphanDownstreamOnPolicyDelete") is True


def generates_existing(rule: CompiledRule) -> bool:
    """Tell whether a generate rule also acts for objects that are there already (row U-07)."""
    if is_of_cel(rule.policy):
        return is_enabled(_spec(rule), "generateExisting")
    own = (rule.rule.generate or {}).get("generateExisting")
    return bool(_spec(rule).get("generateExisting") if own is None else own)


def mutates_on_update(rule: CompiledRule) -> bool:
    """Tell whether a mutate-existing rule acts for all its triggers when the policy is written (row A-23).

    A rule whose targets are others than its triggers, and known without them, acts only where it is about objects that were
    made: nobody changed or deleted anything.
    """
    if is_of_cel(rule.policy):
        names_targets = bool(_spec(rule).get("targetMatchConstraints"))
        return not (names_targets and needs_no_trigger(rule)) or is_about_new(rule)
    own = (rule.rule.mutate or {}).get("mutateExistingOnPolicyUpdate")
    return bool(_spec(rule).get("mutateExistingOnPolicyUpdate") if own is None else own)


def needs_no_trigger(rule: CompiledRule) -> bool:
    """Tell whether a mutate-existing rule knows its targets without a trigger: no expression over one gives them."""
    block = _spec(rule).get("targetMatchConstraints") or {}
    return is_of_cel(rule.policy) and is_mutate_existing(rule) and not block.get("expression")


def goes_by_who_asks(rule: CompiledRule) -> bool:
    """Tell whether a rule wants to know who asks, which only a request tells."""
    if is_of_cel(rule.policy):
        return asks_of_expressions(_spec(rule)) == WHO_ASKS
    return asks_of_request(rule.rule) == WHO_ASKS


def uses_apply(rule: CompiledRule) -> bool:
    """Tell whether what a rule generates is written by server-side apply (row A-22)."""
    return _spec(rule).get("useServerSideApply") is True


def names_delete(rule: CompiledRule) -> bool:
    """Tell whether a rule is written for the deletion of its triggers, by naming the operation."""
    return any("DELETE" in one for one in _operations(rule))


def standing_operation(rule: CompiledRule) -> str:
    """Return the operation that an object counts as which a rule is asked about without a request.

    That it was made; that it was changed for a rule which is about nothing but changes.
    """
    is_about_changes = any("UPDATE" in one for one in _operations(rule))
    return "UPDATE" if is_about_changes and not is_about_new(rule) else "CREATE"


def is_about_new(rule: CompiledRule) -> bool:
    """Tell whether a rule is about objects that are made, among other things."""
    listed = [one for one in _operations(rule) if one]
    return not listed or any({"CREATE", "*"} & {*one} for one in listed)


def _operations(rule: CompiledRule) -> list[list[str]]:
    """Return the operations that each part of a rule's match names."""
    parts = constrained(rule) if is_of_cel(rule.policy) else _resources(rule.rule.match)
    return [list(one.get("operations") or ()) for one in parts]


def constrained(rule: CompiledRule) -> list[Block]:
    """Return the resource rules of a policy written in CEL."""
    constraints = _spec(rule).get("matchConstraints") or {}
    return list(constraints.get("resourceRules") or ())


def trigger_kinds(discovery: Discovery, rule: CompiledRule, *verbs: str) -> list[Kind]:
    """Return the kinds of the server that a rule's triggers can be of, those that have some verbs."""
    return concerned(discovery, CompiledPolicy(rule.policy, (rule,)), *verbs)


def kinds_in(match: Block) -> list[KindFilter]:
    """Return the kinds that a match block names, subresources left out."""
    texts = [str(kind) for one in _resources(match) for kind in one.get("kinds") or ()]
    found = (parse_kind(text) for text in dict.fromkeys(texts))
    return [one for one in found if one.subresource in ("", "*")]


def served(discovery: Discovery, filters: Iterable[KindFilter], *verbs: str) -> list[Kind]:
    """Return the kinds of the server that are meant, one version of each; those that lack a verb are left out."""
    found: dict[tuple[str, str], Kind] = {}
    for one in filters:
        for kind in discovery.matching(one.group, one.version, one.kind, preferred=True):
            if all(verb in kind.verbs for verb in verbs):
                found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


def concerned(discovery: Discovery, compiled: CompiledPolicy, *verbs: str) -> list[Kind]:
    """Return the kinds of the server that the rules of a policy concern, one version of each, with these verbs."""
    is_native = compiled.policy.kind in NATIVE
    if not (is_native or is_of_cel(compiled.policy)):
        named = (one for rule in compiled.rules for one in kinds_in(rule.rule.match))
        return served(discovery, named, *verbs)
    found: dict[tuple[str, str], Kind] = {}
    for rule in webhook_rules(compiled.policy, is_native=is_native) if compiled.rules else ():
        for kind in discovery:
            if _is_asked(rule, kind) and all(verb in kind.verbs for verb in verbs):
                found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


def _is_asked(rule: Mapping[str, Any], kind: Kind) -> bool:
    """Tell whether a rule of match constraints names a kind itself, and not only something below it."""
    return (
        _has(rule["apiGroups"], kind.group)
        and _has(rule["apiVersions"], kind.version)
        and any(word in ("*", "*/*", kind.plural, f"{kind.plural}/*") for word in rule["resources"])
        and rule["scope"] in ("*", "Namespaced" if kind.namespaced else "Cluster")
    )


def _has(words: list[str], word: str) -> bool:
    return "*" in words or word in words


def kinds_made(rule: CompiledRule) -> list[tuple[str, str]]:
    """Return (apiVersion, kind) of what a generate rule makes, as far as no variable decides it."""
    return [one for one in _kinds_written(rule) if "{{" not in "".join(one)]


def kinds_are_open(rule: CompiledRule) -> bool:
    """Tell whether an evaluation decides of what kind an object is that a generate rule makes."""
    if is_of_cel(rule.policy):
        return True
    return len(kinds_made(rule)) < len(_kinds_written(rule))


def _kinds_written(rule: CompiledRule) -> list[tuple[str, str]]:
    block = rule.rule.generate or {}
    found: dict[tuple[str, str], None] = {}
    for one in (block, *(block.get("foreach") or ())):
        found |= dict.fromkeys([(str(one.get("apiVersion") or ""), str(one.get("kind") or ""))])
        found |= dict.fromkeys(_cloned(one))
    return [one for one in found if one[1]]


def kinds_cloned(rule: CompiledRule) -> list[tuple[str, str]]:
    """Return (apiVersion, kind) of the sources that a generate rule copies."""
    block = rule.rule.generate or {}
    found: list[tuple[str, str]] = []
    for one in (block, *(block.get("foreach") or ())):
        if one.get("clone"):
            found.append((str(one.get("apiVersion") or ""), str(one.get("kind") or "")))
        found += _cloned(one)
    return [one for one in dict.fromkeys(found) if one[1] and "{{" not in "".join(one)]


def is_unaffected(one: Object | None, other: Object | None) -> bool:
    """Tell whether two states of an object differ in bookkeeping only."""
    return one is not None and other is not None and _meaning(one) == _meaning(other)


def _meaning(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    kept = {key: metadata.get(key) for key in ("uid", "labels", "annotations", "deletionTimestamp")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": kept}


def _cloned(block: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = []
    for text in (block.get("cloneList") or {}).get("kinds") or ():
        api_version, _, kind = str(text).rpartition("/")
        found.append((api_version or "v1", kind))
    return found


def _resources(match: Block) -> Iterator[Block]:
    entries = [*(match.get("any") or ()), *(match.get("all") or ()), match]
    for entry in entries:
        resources = (entry or {}).get("resources")
        if isinstance(resources, dict):
            yield resources


def _spec(rule: CompiledRule) -> Block:
    return part(rule.policy.raw, "spec")


def candidates(discovery: Discovery, policy: CleanupPolicy) -> Iterator[Kind]:
    """Yield the kinds of the server that a policy names, can be listed and deleted, and are within its reach."""
    within = policy.namespace
    if is_deleting(policy.raw):
        kinds = _named(discovery, (policy.raw["spec"].get("matchConstraints") or {}))
    else:
        kinds = served(discovery, kinds_in(policy.match), "list", "delete")
    for kind in kinds:
        place = Target(kind.group, kind.kind, kind.namespaced, within or None)
        if not out_of_reach(Effect.CLEAN_UP, place, within):
            yield kind


def _named(discovery: Discovery, constraints: Block) -> list[Kind]:
    """Return the kinds that resource rules name by group, version and resource; a wildcard names none (row DP-02)."""
    found: dict[tuple[str, str], Kind] = {}
    for rule in constraints.get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        for kind in discovery:
            is_named = kind.plural in (rule.get("resources") or ())
            can_go = "list" in kind.verbs and "delete" in kind.verbs
            if is_named and can_go and kind.group in groups and kind.version in versions:
                found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())
