"""Checks of DeletingPolicy and NamespacedDeletingPolicy (rows CP-31, CP-35), of both alike: upstream looks at the first only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.cleanup.schedule import parse_schedule
from engine.errors import EngineError
from engine.model.kinds import rules_of
from engine.model.resources import CLUSTER_SCOPED, resource_of
from engine.reach import Effect, Target, out_of_reach
from engine.vocabulary import PROPAGATIONS

from .cel_expressions import OF_POLICIES, check_named, check_variables
from .cel_scopes import scope_of
from .celpolicies import check_calls_out, check_concern
from .findings import Finding, error, gathered, invalid, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.model import Block, Policy


@gathered
def lint_deleting(policy: Policy) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about a deleting policy."""
    spec = policy.raw["spec"]
    names, scope = OF_POLICIES, scope_of(policy.kind, spec)
    yield from _check_schedule(str(spec.get("schedule") or ""))
    yield from check_concern(spec)
    for index, rule in enumerate(rules_of(spec)):
        yield from _check_rule(policy, rule, f"spec.matchConstraints.resourceRules[{index}]")
    yield from check_variables(spec.get("variables") or (), "spec.variables", names, scope)
    conditions = spec.get("conditions") or ()
    yield from check_named(conditions, "spec.conditions", names, scope, wanted=("bool",))
    yield from check_calls_out(policy)
    how = spec.get("deletionPropagationPolicy")
    if how and how not in PROPAGATIONS:
        supported = ", ".join(f'"{one}"' for one in PROPAGATIONS)
        text = f'Unsupported value: "{how}": supported values: {supported}'
        yield error("spec.deletionPropagationPolicy", text)


def _check_schedule(schedule: str) -> Iterator[Finding]:
    if not schedule:
        yield error("spec.schedule", "Required value: schedule is required")
        return
    try:
        parse_schedule(schedule)
    except EngineError as problem:
        text = (
            f"schedule spec in the deletingPolicy is not in proper cron format: {problem.message}"
        )
        yield invalid("spec.schedule", schedule, text)


def _check_rule(policy: Policy, rule: Block, path: str) -> Iterator[Finding]:
    """Refuse what is out of a policy's reach, and doubt what names no kind: nothing is deleted by a wildcard."""
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    for name in ("apiGroups", "apiVersions", "resources"):
        if not rule.get(name) or "*" in rule[name]:
            text = "a deleting policy names what it deletes: nothing matches"
            yield warning(f"{path}.{name}", text)
    for text in resources:
        if "/" in str(text):
            yield warning(f"{path}.resources", f"`{text}` is no object that can be deleted")
    for group in groups:
        for kind in _kinds_named(str(group), resources):
            if reason := out_of_reach(Effect.CLEAN_UP, Target(str(group), kind), policy.namespace):
                yield error(f"{path}.resources", f"Forbidden: {reason}")


def _kinds_named(group: str, resources: Iterable[object]) -> Iterator[str]:
    """Yield the kinds of a group that resources name and about which something is known without a cluster, else none by name."""
    known = {resource_of(kind): kind for kind, of in CLUSTER_SCOPED.items() if of == group}
    known["updaterequests"] = "UpdateRequest"
    for text in resources:
        yield known.get(str(text), "")
