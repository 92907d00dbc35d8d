"""Which pod controllers a policy's rules are extended to, and when they are not (rows G-02 to G-04, O-11).

Split from the rewriting because this is the part that people ask about: why has my rule no `autogen-` twin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.match import parse_kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Block, Rule

ANNOTATION = "pod-policies.kyverno.io/autogen-controllers"
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
