"""Checks of CleanupPolicy and ClusterCleanupPolicy (row C-01)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.schedule import parse_schedule
from engine.errors import EngineError
from engine.lang.wildcard import has_wildcard
from engine.match import parse_kind
from engine.reach import Effect, Target, out_of_reach

from .conditions import OPERATORS, check_conditions
from .context import check_context
from .findings import Finding, error, invalid
from .matching import check_block, check_no_users, check_presence, check_scope, entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import CleanupPolicy


def lint_cleanup(policy: CleanupPolicy) -> tuple[Finding, ...]:
    """Return everything that is wrong or doubtful about a cleanup policy."""
    return tuple(_findings(policy))


def _findings(policy: CleanupPolicy) -> Iterator[Finding]:
    try:
        parse_schedule(policy.schedule)
    except EngineError as problem:
        yield invalid("spec.schedule", policy.schedule, problem.message)
    yield from check_presence(policy.match, "spec.match")
    for name, block in (("match", policy.match), ("exclude", policy.exclude)):
        yield from check_block(block, f"spec.{name}")
        yield from check_no_users(block, f"spec.{name}")
        if policy.kind == "CleanupPolicy":
            for entry in entries(block, f"spec.{name}"):
                yield from check_scope(entry)
    yield from _check_reach(policy)
    yield from check_context(
        policy.context,
        "spec.context",
        own_namespace=policy.namespace,
        forbidden=("configMap", "imageRegistry"),
    )
    yield from check_conditions(policy.conditions, "spec.conditions", allowed=OPERATORS)


def _check_reach(policy: CleanupPolicy) -> Iterator[Finding]:
    """Refuse kinds of which nothing is ever cleaned up."""
    for entry in entries(policy.match, "spec.match"):
        for text in entry.resources.get("kinds") or ():
            wanted = parse_kind(text)
            is_named = not has_wildcard(wanted.group) and not has_wildcard(wanted.kind)
            target = Target(wanted.group if is_named else None, wanted.kind)
            if reason := out_of_reach(Effect.CLEAN_UP, target, policy.namespace):
                yield error(f"{entry.path}.kinds", f"Forbidden: {reason}")
