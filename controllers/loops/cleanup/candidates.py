"""Which kinds a cleanup policy can delete anything of: for the loop that does and for previews of people (row C-02)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.loops.rules import kinds_in, served
from engine.cleanup.timed import is_deleting
from engine.reach import Effect, Target, out_of_reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Discovery, Kind
    from engine.model import Block, CleanupPolicy


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
