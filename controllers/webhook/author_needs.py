"""What the rules of a policy would have us do, as requests that its author must be allowed to make himself.

Pure: a policy and the kinds a server has in, needs out. What only a trigger decides (a variable, a wildcard, a kind that the
server does not have yet) is asked for widely. A policy that a rule generates acts for whoever wrote that rule, so what it would
do is needed as well.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from engine.autogen import expand
from engine.cleanup.ttl import has_deleted
from engine.errors import EngineError
from engine.evaluate import patch_texts
from engine.fields import part
from engine.generate.labels import labels_sources
from engine.lang import wildcard
from engine.lang.pattern.anchors import parse_key
from engine.match import parse_kind
from engine.model import Block, CleanupPolicy, Json, Policy, Rule
from engine.model.kinds import BY_NAME, CLASSIC_GROUP, KINDS, loaded
from engine.model.resources import resource_of
from engine.model.result import VERBS, Power
from engine.native import asks_for_native, names_of
from engine.reach import ADMISSION_GROUP
from engine.requestinfo import ANY, RequestInfo

from .admission_rules import resource_blocks
from .author_lookups import EVERYTHING, Need, fixed, looks_into, lookups_in, needs_of_entry, unique
from .author_powers import BINDINGS, RBAC_GROUP, ROLES, binding, escalating, power_of, power_over

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from controllers.kube import Discovery

_POLICY_KINDS: Final = frozenset(
    {*((one.group, one.kind) for one in KINDS), (CLASSIC_GROUP, "GlobalContextEntry")}
)
"""Kinds whose objects have us do or read something."""

_USUAL: Final = ("CREATE", "UPDATE")
"""The operations at which a rule changes objects that names none."""
_DEEPEST: Final = 3
_WHOLE: Final = frozenset({"data", "labels", "metadata", "patchStrategicMerge"})
"""Parts in which a variable in place of the whole may bring any label."""


def needs_of_author(policy: Policy, discovery: Discovery, depth: int = 0) -> list[Need]:
    """Return what a policy's author must be allowed to do himself; `depth` counts the policies that generate this one."""
    needs: Iterable[Need]
    if BY_NAME[policy.kind].is_cel:
        needs = chain(
            lookups_in(policy.raw.get("spec"), "spec", policy.namespace, discovery),
            _of_effects(policy, discovery, depth),
        )
    else:
        needs = _OfPolicy(policy, discovery, depth).needs()
    return list(_kept_to(policy.namespace, unique(chain(needs, _of_native(policy)))))


def _of_native(policy: Policy) -> Iterator[Need]:
    """Yield the rights to keep the native policy that a policy asks for: the API server judges by it without asking us."""
    if not asks_for_native(policy):
        return
    at = "spec.rules[0].validate.cel.generate" if policy.rules else "spec.autogen"
    for kind, name in names_of(policy):
        plural = resource_of(kind)
        for verb in ("create", "update", "delete"):
            yield Need(at, RequestInfo(verb, ADMISSION_GROUP, plural, name=name))


def needs_of_cleanup_author(policy: CleanupPolicy, discovery: Discovery) -> list[Need]:
    """Return what a clean-up policy's author must be allowed to do himself."""
    looked_up = lookups_in(policy.raw.get("spec"), "spec", policy.namespace, discovery)
    deleted = (
        Need("spec.match", replace(place, verb=verb))
        for block in resource_blocks(policy.match)
        for place in _matched(block, policy.namespace, discovery)
        for verb in ("list", "delete")
    )
    return list(_kept_to(policy.namespace, unique(chain(looked_up, deleted))))


def _of_effects(policy: Policy, discovery: Discovery, depth: int) -> Iterator[Need]:
    """Yield the rights to do what a policy written in CEL does to objects, and to read the Secrets that it looks into."""
    spec = policy.raw.get("spec") or {}
    matched = (spec.get("matchConstraints") or {}).get("resourceRules") or ()
    if any(map(_concerns_secrets, matched)) and looks_into(spec):
        request = RequestInfo("get", "", "secrets", "", policy.namespace)
        yield Need("spec.matchConstraints", request)
    reference = BY_NAME[policy.kind].family.effects
    for effect in loaded(reference)(policy) if reference else ():
        if effect.made is not None:
            yield from _OfPolicy(policy, discovery, depth).of_made(
                effect.made, effect.at, effect.verbs
            )
            continue
        if effect.rule is None:
            yield Need(effect.at, EVERYTHING)
            continue
        for place in _ruled(effect.rule, policy.namespace, discovery):
            yield from (Need(effect.at, replace(place, verb=verb)) for verb in effect.verbs)
            if power := power_over(place, effect.power):
                yield Need(effect.at, power)


def _ruled(rule: Block, within: str, discovery: Discovery) -> Iterator[RequestInfo]:
    """Yield where the objects of a resource rule are kept."""
    for group in rule.get("apiGroups") or (ANY,):
        for text in rule.get("resources") or (ANY,):
            plural, _, subresource = str(text).partition("/")
            known = discovery.of_resource(str(group), plural)
            namespace = within if known is None or known.namespaced else ""
            for name in rule.get("resourceNames") or ("",):
                yield RequestInfo("", str(group), plural, subresource, namespace, str(name))


def _concerns_secrets(rule: Block) -> bool:
    groups, resources = (rule.get(name) or (ANY,) for name in ("apiGroups", "resources"))
    return not ({"", ANY}.isdisjoint(groups) or {"secrets", ANY, "*/*"}.isdisjoint(resources))


def _kept_to(within: str, needs: Iterable[Need]) -> Iterator[Need]:
    """Yield needs, of those for everything only what there is in a policy's namespace: it reaches nothing else."""
    for need in needs:
        is_wide = within and need.request == EVERYTHING
        yield replace(need, request=replace(EVERYTHING, namespace=within)) if is_wide else need


class _OfPolicy:
    """Collects the needs of one classic policy."""

    def __init__(self, policy: Policy, discovery: Discovery, depth: int) -> None:
        self._policy = policy
        self._within = policy.namespace
        self._discovery = discovery
        self._depth = depth
        self._labels_sources = labels_sources(policy)
        self._spec: Block = part(policy.raw, "spec")

    def needs(self) -> Iterator[Need]:
        for index, rule in enumerate(self._policy.rules):
            at = f"spec.rules[{index}]"
            yield from lookups_in(rule.raw, at, self._within, self._discovery)
            if looks_into(rule.raw):
                yield from self._of_secrets(rule, at)
            if rule.mutate is not None and rule.mutate.get("targets"):
                yield from self._of_triggers(rule, at, "mutateExistingOnPolicyUpdate", rule.mutate)
                yield from self._of_targets(rule.mutate, f"{at}.mutate")
            if rule.generate is not None:
                yield from self._of_triggers(rule, at, "generateExisting", rule.generate)
                yield from self._of_generate(rule.generate, f"{at}.generate")
        for rule in expand(self._policy):
            if rule.mutate and not rule.mutate.get("targets"):
                yield from self._of_changes(rule, power_of(rule.mutate), labels=_may_label(rule.mutate))  # fmt: skip
            if rule.pins_images:
                # an extractor may name any place of an object, labels too
                power = Power.OF_ALL if rule.image_extractors else Power.NONE
                yield from self._of_changes(rule, power, labels=bool(rule.image_extractors))

    def _of_secrets(self, rule: Rule, at: str) -> Iterator[Need]:
        """Yield the right to read the Secrets that a rule matches and looks into."""
        for block in resource_blocks(rule.match):
            kinds = [str(one) for one in block.get("kinds") or (ANY,)]
            if any("{{" in one or parse_kind(one).matches("", "v1", "Secret") for one in kinds):
                for place in _matched(
                    {**block, "kinds": ["v1/Secret"]}, self._within, self._discovery
                ):
                    yield Need(f"{at}.match", replace(place, verb="get"))

    def of_made(self, block: Block, at: str, verbs: tuple[str, ...]) -> Iterator[Need]:
        """Yield what is needed to make objects as a block of a generate rule says it; a copy may name its resource."""
        if "resource" in block:
            group, _, version = str(block["apiVersion"]).rpartition("/")
            found = self._discovery.of_resource(group, str(block["resource"]), version)
            block = {**block, "kind": found.kind if found is not None else "{{ }}"}
        wanted = (*verbs, "delete") if _may_label({"data": block.get("data")}) else verbs
        yield from self._of_one(block, at, dict.fromkeys(wanted))

    def _of_changes(self, rule: Rule, power: Power, *, labels: bool) -> Iterator[Need]:
        """Yield the right to make what a rule changes: whoever asks for it then is not who wrote the rule.

        `power` is how far the changes may give somebody power, `labels` whether they may have the object deleted.
        """
        for block in resource_blocks(rule.match):
            operations = block.get("operations") or _USUAL
            verbs = [*dict.fromkeys(VERBS[one] for one in operations if one in VERBS)]
            if labels:
                verbs.append("delete")
            for place in _matched(block, self._within, self._discovery):
                at = f"rule `{rule.name}`"
                yield from (Need(at, replace(place, verb=one)) for one in verbs)
                if verbs and (needed := power_over(place, power)):
                    yield Need(at, needed)

    def _of_triggers(self, rule: Rule, at: str, existing: str, block: Block) -> Iterator[Need]:
        """Yield the right to read what a rule carries into other objects."""
        looks = block.get(existing)
        is_looking = self._spec.get(existing) if looks is None else looks
        verbs = ("get", "list") if is_looking else ("get",)
        for resources in resource_blocks(rule.match):
            for place in _matched(resources, self._within, self._discovery):
                whole = replace(place, subresource="")
                yield from (Need(f"{at}.match", replace(whole, verb=verb)) for verb in verbs)

    def _of_targets(self, block: Block, at: str) -> Iterator[Need]:
        for number, target in enumerate(block.get("targets") or ()):
            place = f"{at}.targets[{number}]"
            found = self._at(target)
            verbs = ["get", "update"] if found.name else ["get", "list", "update"]
            verbs += ["delete"] if _may_label(block) else []
            yield from (Need(place, replace(found, verb=verb)) for verb in verbs)
            if power := power_over(found, power_of(block)):
                yield Need(place, power)

    def _of_generate(self, block: Block, at: str) -> Iterator[Need]:
        verbs = ["get", "create"]
        verbs += ["update", "delete"] if block.get("synchronize") is True else []
        verbs += ["patch"] if self._spec.get("useServerSideApply") is True else []
        loops = block.get("foreach")
        for one in loops if isinstance(loops, list) and loops else (block,):
            if not isinstance(one, dict):
                yield Need(at, EVERYTHING)
                continue
            wanted = [*verbs, "delete"] if _may_label({"data": one.get("data")}) else verbs
            yield from self._of_one(one, at, dict.fromkeys(wanted))

    def _of_one(self, block: Block, at: str, verbs: Collection[str]) -> Iterator[Need]:
        clone_list = block.get("cloneList")
        if clone_list is not None:
            yield from self._of_clone_list(block, clone_list, at, verbs)
            return
        yield from self._made(block, at, verbs)
        clone = block.get("clone")
        if isinstance(clone, dict):
            source = {**block, "name": clone.get("name"), "namespace": clone.get("namespace")}
            place = self._at(source)
            yield from (Need(f"{at}.clone", replace(place, verb=one)) for one in self._of_source(verbs))  # fmt: skip
        data = block.get("data")
        yield from self._of_power(block, at, data if isinstance(data, dict) and clone is None else None)  # fmt: skip

    def _of_source(self, verbs: Collection[str]) -> tuple[str, ...]:
        """Return what is done to a source: it is read, and labelled where copies are kept in step."""
        return ("get", "update") if self._labels_sources and "update" in verbs else ("get",)

    def _of_clone_list(
        self, block: Block, clone_list: Json, at: str, verbs: Collection[str]
    ) -> Iterator[Need]:
        if not isinstance(clone_list, dict) or not isinstance(clone_list.get("kinds"), list):
            yield Need(at, EVERYTHING)
            return
        for text in clone_list["kinds"]:
            version, _, kind = str(text).rpartition("/")
            copied = {"apiVersion": version, "kind": kind, "namespace": block.get("namespace")}
            source = self._at({**copied, "namespace": clone_list.get("namespace")})
            yield from (Need(f"{at}.cloneList", replace(source, verb=one)) for one in ("list", *self._of_source(verbs)))  # fmt: skip
            yield from self._made(copied, at, verbs)
            yield from self._of_power(copied, at, None)

    def _made(self, block: Block, at: str, verbs: Iterable[str]) -> Iterator[Need]:
        """Yield the verbs on what is made: an object, whatever part of it the kind names."""
        place = replace(self._at(block), subresource="")
        for verb in verbs:
            yield Need(at, replace(place, verb=verb, name="" if verb == "create" else place.name))

    def _of_power(self, block: Block, at: str, data: Mapping[str, Any] | None) -> Iterator[Need]:
        """Yield what is needed beside to make objects that give power: roles, bindings, policies.

        `data` is what is written into them, None where nobody knows that yet.
        """
        version = fixed(block.get("apiVersion"))
        kind = (fixed(block.get("kind"))).partition("/")[0]
        group = version.rpartition("/")[0] if version else ""
        place = self._at(block)
        if group == RBAC_GROUP and kind in ROLES:
            yield escalating(at, place, data)
        elif group == RBAC_GROUP and kind in BINDINGS:
            yield binding(at, place, data)
        elif (group, kind) in _POLICY_KINDS:
            yield from self._of_policy(block, kind, version, at, data)
        elif not (version and kind):
            # A kind that a variable decides may be one of these.
            yield Need(at, EVERYTHING)

    def _of_policy(
        self, block: Block, kind: str, version: str, at: str, data: Mapping[str, Any] | None
    ) -> Iterator[Need]:
        metadata = (data or {}).get("metadata") or {}
        is_open = not isinstance(metadata, dict) or _has_open_keys(data)
        if data is None or self._depth >= _DEEPEST or is_open:
            yield Need(at, EVERYTHING)
            return
        named = {"name": block.get("name") or "x", "namespace": block.get("namespace") or ""}
        document = {**data, "apiVersion": version, "kind": kind, "metadata": {**metadata, **named}}
        try:
            needs = _of_document(document, self._discovery, self._depth + 1)
        except EngineError:
            needs = [Need(at, EVERYTHING)]
        yield from (replace(need, at=f"{at}.data: {need.at}") for need in needs)

    def _at(self, block: Json) -> RequestInfo:
        """Return where objects that a block names are kept, open where it does not say."""
        where: Block = part(block)
        version, text = fixed(where.get("apiVersion")), fixed(where.get("kind"))
        kind, _, subresource = text.partition("/")
        found = self._discovery.find(version, kind) if version and kind else None
        group = version.rpartition("/")[0] if version else ANY
        namespace = fixed(where.get("namespace")) or self._within
        if found is None:
            return RequestInfo("", group, ANY, "", namespace, "")
        return RequestInfo(
            "", found.group, found.plural, subresource,
            namespace if found.namespaced else "", fixed(where.get("name")),
        )  # fmt: skip


def _of_document(document: dict[str, Any], discovery: Discovery, depth: int) -> list[Need]:
    """Return the needs of a policy of any kind as it would be made; raises EngineError."""
    kind = document["kind"]
    if kind == "GlobalContextEntry":
        spec = document.get("spec")
        return [*needs_of_entry(spec, "spec")] if isinstance(spec, dict) else [Need("spec", EVERYTHING)]  # fmt: skip
    policy = loaded(BY_NAME[kind].family.parser)(document, strict=False)
    if isinstance(policy, CleanupPolicy):
        return needs_of_cleanup_author(policy, discovery)
    return needs_of_author(policy, discovery, depth)


def _matched(block: Mapping[str, Any], within: str, discovery: Discovery) -> Iterator[RequestInfo]:
    """Yield where the objects of one part of a match are kept."""
    listed = [str(one) for one in block.get("namespaces") or ()]
    named = listed if listed and all(map(fixed, listed)) else [""]
    for text in block.get("kinds") or (ANY,):
        for group, resource, subresource, is_namespaced in _resources(str(text), discovery):
            for namespace in [within] if within else named:
                yield RequestInfo("", group, resource, subresource, namespace if is_namespaced else "")  # fmt: skip


def _resources(text: str, discovery: Discovery) -> Iterator[tuple[str, str, str, bool]]:
    wanted = parse_kind(text)
    is_open = "{{" in text or wildcard.has_wildcard(wanted.kind)
    group = ANY if "{{" in text or wildcard.has_wildcard(wanted.group) else wanted.group
    found = () if is_open else discovery.matching(wanted.group, wanted.version, wanted.kind, preferred=True)  # fmt: skip
    # `*` is the object and all its parts
    parts = ("", ANY) if wanted.subresource == ANY else (wanted.subresource,)
    for kind in found:
        yield from ((kind.group, kind.plural, part, kind.namespaced) for part in parts)
    if not found:
        yield group, ANY, "", True


def _may_label(value: Json) -> bool:
    """Tell whether what is written may hold a label that has an object deleted, also as an anchor."""
    if isinstance(value, dict):
        return any(
            has_deleted(key)
            or "{{" in key
            or (parse_key(key)[1] in _WHOLE and isinstance(inner, str))
            or _part_may_label(key, inner)
            for key, inner in value.items()
        )
    if isinstance(value, list):
        return any(map(_may_label, value))
    return isinstance(value, str) and has_deleted(value)


def _part_may_label(key: str, value: Json) -> bool:
    is_patch = key == "patchesJson6902" and isinstance(value, str)
    return patch_texts.may_label(value) if is_patch else _may_label(value)


def _has_open_keys(value: Json) -> bool:
    """Tell whether a variable stands where the form of a document is decided: in a key, or for a whole part."""
    if isinstance(value, dict):
        return any("{{" in key or _has_open_keys(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_open_keys, value))
