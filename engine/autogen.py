"""Rules for pod controllers, computed from rules for Pods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.errors import LimitError
from engine.lang.lazy_regex import regex
from engine.match import parse_kind
from engine.parse import build_rule
from engine.record import record
from engine.vocabulary import AUTOGEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from engine.model import Block, Json, Policy, Rule


# Rules for Pods extended to the controllers that make Pods (rows G-01 to G-07).
#
# Generated rules are not written into stored policies; whoever evaluates, reports or shows a policy asks here.

CRON_KINDS = ("batch/v1/CronJob",)


def expand(policy: Policy, kinds: Collection[str] | None = None) -> tuple[Rule, ...]:
    """Return the policy's own rules, then the generated ones; with `kinds` those alone that may concern objects of them.

    Own rules that are named like generated ones give way to them where there are any. Raises LimitError for a rule that
    is nested too deeply.
    """
    if not any(True for _ in _extensions(policy)):
        return policy.rules
    return _own(policy) + generated_rules(policy, kinds)


def count(policy: Policy) -> int:
    """Return how many rules a policy has with the generated ones, which are not made for it."""
    generated = sum(1 for _ in _extensions(policy))
    return len(_own(policy)) + generated if generated else len(policy.rules)


def generated_rules(policy: Policy, kinds: Collection[str] | None = None) -> tuple[Rule, ...]:
    """Return the rules that a policy's Pod rules give for pod controllers; with `kinds` as `expand`."""
    return tuple(
        build_rule(raw)
        for rule, place, controllers in _extensions(policy)
        if kinds is None or _may_concern(rule, controllers, kinds)
        if (raw := rewrite(rule.raw, place, controllers)) is not None
    )


def _own(policy: Policy) -> tuple[Rule, ...]:
    return tuple(rule for rule in policy.rules if not rule.name.startswith(PREFIX))


def _extensions(policy: Policy) -> Iterator[tuple[Rule, Place, Sequence[str]]]:
    """Yield each rule that is extended, with where pods stand in the objects of the kinds that it is extended to."""
    controllers = wanted_controllers(policy.annotations.get(ANNOTATION))
    if not controllers or reason_against(policy.rules):
        return
    for rule in _own(policy):
        if concerns_pods(rule):
            for place, kinds in _places(controllers):
                if _body(rule.raw, place) is not None:
                    yield rule, place, kinds


def _may_concern(rule: Rule, controllers: Sequence[str], kinds: Collection[str]) -> bool:
    """Tell whether a rule extended to some controllers may concern objects of some kinds.

    Filters without Pods stay as they are, so only a rule of which every filter names Pods alone is for the controllers alone.
    """
    blocks = [rule.match[key] for key in ("any", "all", "resources") if rule.match.get(key)]
    if len(blocks) != 1:
        return True
    entries = blocks[0] if isinstance(blocks[0], list) else [rule.match]
    named = [((entry or {}).get("resources") or {}).get("kinds") for entry in entries]
    if not all(listed and all(kind in ("Pod", "v1/Pod") for kind in listed) for listed in named):
        return True
    known = {*TEMPLATED.values(), *CRON_KINDS}
    return any(one not in known or one.rpartition("/")[2] in kinds for one in controllers)


def _places(controllers: Sequence[str]) -> Iterator[tuple[Place, Sequence[str]]]:
    if kinds := templated_kinds(controllers):
        yield TEMPLATE, kinds
    if CRON_JOB in controllers:
        yield CRON_TEMPLATE, CRON_KINDS


# Which pod controllers a policy's rules are extended to, and when they are not (rows G-02 to G-04, O-11).
#
# Split from the rewriting because this is the part that people ask about: why has my rule no `autogen-` twin.

ANNOTATION = AUTOGEN
CRON_JOB = "CronJob"
TEMPLATED = {
    "DaemonSet": "apps/v1/DaemonSet",
    "Deployment": "apps/v1/Deployment",
    "Job": "batch/v1/Job",
    "ReplicaSet": "apps/v1/ReplicaSet",
    "ReplicationController": "v1/ReplicationController",
    "StatefulSet": "apps/v1/StatefulSet",
}
"""Kinds with `spec.template`, and how generated rules write them."""

PREFIX = "autogen-"


def wanted_controllers(annotation: str | None) -> tuple[str, ...]:
    """Read the annotation's value; absent means all seven kinds, `none` and the empty text none.

    Unknown names stay: alone they give rules that match kinds of that name, beside known ones they are passed over.
    """
    if annotation is None or annotation.strip() == "all":
        return (*TEMPLATED, CRON_JOB)
    names = tuple(name for part in annotation.split(",") if (name := part.strip()))
    return () if names == ("none",) else names


def templated_kinds(controllers: Sequence[str]) -> list[str]:
    """Return the kinds with `spec.template` among the wanted controllers, as generated rules write them."""
    others = [name for name in controllers if name != CRON_JOB]
    return [TEMPLATED[name] for name in others if name in TEMPLATED] or others


def reason_against(rules: Sequence[Rule]) -> str:
    """Say why no rule of a policy is extended, empty when nothing speaks against it (row G-03)."""
    for rule in rules:
        if rule.generate:
            return f"rule `{rule.name}` generates"
        if rule.mutate and _patches_json(rule.mutate):
            return f"rule `{rule.name}` uses patchesJson6902"
        for block in (rule.match, rule.exclude):
            for resources in resources_of(block):
                if why := _unsupported(resources):
                    return f"rule `{rule.name}` {why}"
    return ""


def concerns_pods(rule: Rule) -> bool:
    """Tell whether a rule is written for Pods by that very kind, and excludes no kinds but Pods (row G-04)."""
    excluded = kinds_of(rule.exclude)
    return "Pod" in kinds_of(rule.match) and (not excluded or "Pod" in excluded)


def resources_of(block: Block) -> Iterator[Block]:
    """Yield the resource filters of a match or exclude block: the legacy one and those of any and all."""
    entries = [block, *(block.get("any") or ()), *(block.get("all") or ())]
    for entry in entries:
        if resources := (entry or {}).get("resources"):
            yield resources


def kinds_of(block: Block) -> list[str]:
    """Return all kinds that a match or exclude block lists."""
    return [kind for resources in resources_of(block) for kind in resources.get("kinds") or ()]


def _patches_json(mutate: Block) -> bool:
    return bool(mutate.get("patchesJson6902")) or any(
        entry.get("patchesJson6902") for entry in mutate.get("foreach") or ()
    )


def _unsupported(resources: Block) -> str:
    if resources.get("name") or resources.get("names"):
        return "filters by name"
    if resources.get("selector") is not None or resources.get("annotations") is not None:
        return "filters by labels or annotations"
    kinds = resources.get("kinds") or ()
    if len(kinds) > 1 and any(parse_kind(kind).kind == "Pod" for kind in kinds):
        return "lists Pod beside other kinds"
    return ""


# Rewriting one Pod rule for the controllers of Pods: where the pod spec stands deeper (row G-05).
#
# Works on rule documents, not on compiled rules, so that a generated rule is an ordinary rule that can be shown and stored.

_LONGEST_NAME = 63
_REFERENCE = regex(r"\$\([^ ]*?\)")


@record
class Place:
    """Where a controller keeps its pod template: the prefix of rule names and the path from the object's root."""

    prefix: str
    path: tuple[str, ...]

    def wrap(self, pattern: Json) -> dict[str, Json]:
        """Put a pattern or patch of a Pod below the path of the pod template."""
        for part in reversed(self.path):
            pattern = {part: pattern}
        return dict(pattern)

    def name_of(self, rule: str) -> str:
        """Return the name of the rule that is made of the one of this name, which is cut where names end."""
        return (self.prefix + rule)[:_LONGEST_NAME]


TEMPLATE = Place(PREFIX, ("spec", "template"))
CRON_TEMPLATE = Place(f"{PREFIX}cronjob-", ("spec", "jobTemplate", "spec", "template"))


def names_of(rule: str) -> tuple[str, str, str]:
    """Return the name of a rule, and those of the rules made of it: for kinds with `spec.template` and for CronJobs (row G-01)."""
    return rule, TEMPLATE.name_of(rule), CRON_TEMPLATE.name_of(rule)


def place_of(name: str) -> Place | None:
    """Return where the rule of a name finds the pod template; None for one that is not named like a generated one."""
    return next((one for one in (CRON_TEMPLATE, TEMPLATE) if name.startswith(one.prefix)), None)


def rewrite(raw: Block, place: Place, kinds: Sequence[str]) -> dict[str, Json] | None:
    """Return the rule document for `kinds`, None when a rule of this sort is not extended.

    Raises LimitError for a document that is nested too deeply.
    """
    body = _body(raw, place)
    if body is None:
        return None
    changed: dict[str, Any] = {**raw, **body, "name": place.name_of(raw["name"])}
    changed["match"] = _with_kinds(raw.get("match") or {}, kinds, place, always=True)
    if raw.get("exclude") is not None:
        changed["exclude"] = _with_kinds(raw["exclude"], kinds, place, always=False)
    is_cel = bool((raw.get("validate") or {}).get("cel"))
    return _moved_paths(changed, place, "" if is_cel else "request.")


def _body(raw: Block, place: Place) -> dict[str, Json] | None:
    """Return the operation of the rule with its patterns wrapped."""
    if mutate := raw.get("mutate"):
        return _mutate(mutate, place)
    if validate := raw.get("validate"):
        return _validate(validate, place)
    return {} if raw.get("verifyImages") else None


def _mutate(mutate: Block, place: Place) -> dict[str, Json] | None:
    """Wrap the patches; a rule with targets is not extended, because its patches are not for the matched Pod.

    Upstream extends it without its targets, so that a patch meant for a Secret would hit Deployments.
    """
    if mutate.get("targets"):
        return None
    if (patch := mutate.get("patchStrategicMerge")) is not None:
        return {"mutate": {**mutate, "patchStrategicMerge": place.wrap(patch)}}
    if entries := mutate.get("foreach"):
        return {"mutate": {**mutate, "foreach": [_mutate_entry(item, place) for item in entries]}}
    return None


def _mutate_entry(entry: Block, place: Place) -> Block:
    if (patch := entry.get("patchStrategicMerge")) is not None:
        return {**entry, "patchStrategicMerge": place.wrap(patch)}
    if nested := entry.get("foreach"):
        return {**entry, "foreach": [_mutate_entry(item, place) for item in nested]}
    return entry


def _validate(validate: Block, place: Place) -> dict[str, Json] | None:
    changed = dict(validate)
    if validate.get("pattern") is not None:
        pivot = "pattern"
        changed["pattern"] = place.wrap(validate["pattern"])
    elif isinstance(patterns := validate.get("anyPattern"), list):
        pivot = "anyPattern"
        changed["anyPattern"] = [place.wrap(pattern) for pattern in patterns]
    elif any(validate.get(name) for name in ("deny", "podSecurity", "foreach", "cel")):
        return {}
    else:
        return None
    if isinstance(message := validate.get("message"), str):
        changed["message"] = _shifted_references(message, place, pivot)
    return {"validate": changed}


def _shifted_references(message: str, place: Place, pivot: str) -> str:
    """Let `$(…)` references of a message that point into the pattern follow it to its new place."""
    into = "/".join(place.path)
    entry = rf"({pivot}/[^/)]*)" if pivot == "anyPattern" else rf"({pivot})"
    return _REFERENCE.sub(lambda found: re.sub(entry, rf"\1/{into}", found[0]), message)


def _with_kinds(
    block: Block, kinds: Sequence[str], place: Place, *, always: bool
) -> dict[str, Json]:
    """Name the controllers instead of Pods; `always` also in a legacy block without kinds.

    For CronJobs every entry gets the kinds, also one without Pods (observed).
    """
    changed = dict(block)
    for joined_by in ("any", "all"):
        if entries := block.get(joined_by):
            changed[joined_by] = [_entry_with_kinds(entry, kinds, place) for entry in entries]
            return changed
    resources = block.get("resources") or {}
    if always or resources.get("kinds"):
        changed["resources"] = {**resources, "kinds": list(kinds)}
    return changed


def _entry_with_kinds(entry: Block, kinds: Sequence[str], place: Place) -> Block:
    resources = (entry or {}).get("resources") or {}
    if place is CRON_TEMPLATE or any(
        parse_kind(kind).kind == "Pod" for kind in resources.get("kinds") or ()
    ):
        return {**(entry or {}), "resources": {**resources, "kinds": list(kinds)}}
    return entry


def _moved_paths(rule: dict[str, Json], place: Place, root: str) -> dict[str, Json]:
    """Replace paths into the Pod's spec and metadata in every text of the rule, as upstream does in its JSON."""
    deeper = ".".join(place.path)
    try:
        if not _mentions(rule, f"{root}object.", f"{root}oldObject."):
            return rule
        import json  # here: most rules name no path of the object's

        text = json.dumps(rule)
        for part in ("spec", "metadata"):
            for name in ("object", "oldObject"):
                text = text.replace(f"{root}{name}.{part}", f"{root}{name}.{deeper}.{part}")
        found = json.loads(text)
    except RecursionError as error:
        raise LimitError(f"rule `{rule['name']}` is nested too deeply") from error
    return dict(found)


def _mentions(value: Json, *texts: str) -> bool:
    """Whether a text anywhere in a value, a key included, holds one of some texts."""
    if isinstance(value, str):
        return any(text in value for text in texts)
    if isinstance(value, dict):
        return any(
            _mentions(key, *texts) or _mentions(below, *texts) for key, below in value.items()
        )
    return isinstance(value, list) and any(_mentions(below, *texts) for below in value)
