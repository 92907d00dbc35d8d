"""Compiled policies sorted by when the webhook asks them: one route for each webhook path.

A route is what one path serves: the classic policies of one failure policy, those written in CEL, or a single policy with
match conditions of its own (row W-03). Within it rules are told apart once, here, so that nothing is sorted while a request waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controllers.store.policies import fine_grained
from engine.evaluate import CompiledPolicy, PolicySet
from engine.model import Policy, RuleType
from engine.model.kinds import BY_NAME, PolicyKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.evaluate.rules import CompiledRule

    from .sink import Stage

FAIL, IGNORE = "Fail", "Ignore"
_ENFORCE = "enforce"
_MOST_NAMED = 256


@dataclass(frozen=True, slots=True)
class WebhookRoute:
    """The policies of one path.

    `mutate` changes the object (images included), `blocking` may deny or warn, `audit` is asked after the answer,
    `triggers` are rules whose work is done by loops.
    """

    failure_policy: str
    mutate: PolicySet = field(default_factory=PolicySet)
    blocking: PolicySet = field(default_factory=PolicySet)
    audit: PolicySet = field(default_factory=PolicySet)
    triggers: PolicySet = field(default_factory=PolicySet)

    def concerns(self, stage: Stage, kind: str) -> bool:
        """Tell whether any policy can concern a kind at a stage: most requests end here."""
        if stage == "mutate":
            return bool(self.mutate.for_kind(kind))
        return bool(
            self.blocking.for_kind(kind)
            or self.audit.for_kind(kind)
            or self.triggers.for_kind(kind)
        )


def route_path(policy: Policy, failure_policy: str = "") -> str:
    """Return the end of the path that serves a policy: `fail`, `ignore`, `…/vpol` (the route of its kind) or `…/finegrained/name`."""
    plain = (failure_policy or policy.failure_policy).lower()
    if route := BY_NAME[policy.kind].route:
        return f"{plain}/{route}"
    return f"{plain}/finegrained/{policy.key}" if fine_grained(policy) else plain


class WebhookRoutes(dict[str, WebhookRoute]):
    """The routes by the end of their path; those of paths that name policies written in CEL are made when they are asked for first.

    A name stands for whatever policy has it now: configurations follow policies by some moments, and what they name in the
    meantime is judged as it is. `of_cel` are the policies by the route of their kind and then by name.
    """

    def __init__(self, compiled: Iterable[CompiledPolicy], *, force_ignore: bool) -> None:
        super().__init__()
        self._forces_ignore = force_ignore
        self.of_cel: dict[str, dict[str, list[CompiledPolicy]]] = {}
        self._named: dict[str, WebhookRoute] = {}
        for one in compiled:
            if route := BY_NAME[one.policy.kind].route:
                by_name = self.of_cel.setdefault(route, {})
                by_name.setdefault(one.policy.name, []).append(one)

    def failure_policy(self, policy: Policy) -> str:
        """Return what becomes of a request when a policy cannot be asked."""
        return IGNORE if self._forces_ignore else policy.failure_policy

    def find(self, path: str) -> WebhookRoute | None:
        """Return the route of a path, None where nothing is served."""
        found = self.get(path) or self._named.get(path)
        route, _, names = path.partition("/")
        if found is not None or route not in self.of_cel:
            return found
        by_name = self.of_cel[route]
        policies = [
            one for name in dict.fromkeys(names.split("/")) for one in by_name.get(name, ())
        ]
        fails = any(self.failure_policy(one.policy) == FAIL for one in policies)
        if len(self._named) >= _MOST_NAMED:
            self._named.clear()
        found = self._named[path] = build_route(FAIL if fails else IGNORE, map(_sorted, policies))
        return found


@dataclass(frozen=True, slots=True)
class Sorted:
    """One policy by when it is asked: narrowed to the rules of each set of a route, None where it has none of them."""

    compiled: CompiledPolicy
    mutate: CompiledPolicy | None
    blocking: CompiledPolicy | None
    audit: CompiledPolicy | None
    triggers: CompiledPolicy | None


class Sorting:
    """Sorts policies, each once: a change of one policy leaves the others as they were sorted."""

    def __init__(self) -> None:
        self._known: dict[int, Sorted] = {}
        self._routes: Mapping[str, WebhookRoute] = {}

    def succeed(self, routes: Mapping[str, WebhookRoute]) -> None:
        """Let routes know what those before them had worked out, as far as it still holds."""
        for name, route in routes.items():
            if (before := self._routes.get(name)) is not None:
                route.mutate.carry_over(before.mutate)
                route.blocking.carry_over(before.blocking)
                route.audit.carry_over(before.audit)
                route.triggers.carry_over(before.triggers)
        self._routes = routes

    def sort(self, policies: Iterable[CompiledPolicy]) -> list[Sorted]:
        """Return policies sorted, and forget all that are not among them."""
        known = self._known
        found = [known.get(id(one)) or _sorted(one) for one in policies]
        # what is kept holds its policy, so that no other one can have its id
        self._known = {id(one.compiled): one for one in found}
        return found


def _sorted(compiled: CompiledPolicy) -> Sorted:
    verdicts = _narrowed(compiled, is_verdict)
    is_blocking = verdicts is not None and answers_at_once(compiled)
    return Sorted(
        compiled,
        mutate=_narrowed(_with_preparations(compiled), changes_object),
        blocking=verdicts if is_blocking else None,
        audit=None if is_blocking else verdicts,
        triggers=_narrowed(compiled, is_trigger),
    )


def build_routes(
    compiled: Iterable[CompiledPolicy],
    *,
    force_ignore: bool = False,
    sorting: Sorting | None = None,
) -> WebhookRoutes:
    """Sort policies into routes by path; policies that are not for admission are left out (row A-17).

    The routes `fail`, `ignore` and `all` (of the plain path, which fails) are always there. Order is by policy key, which
    upstream leaves to chance (row W-13). `sorting` remembers what the routes before came to.
    """
    sorted_in: dict[str, list[Sorted]] = {"fail": [], "ignore": [], "all": []}
    by_identity = sorted(compiled, key=lambda item: item.policy.identity)
    admitting = [one for one in by_identity if one.policy.admission]
    routes = WebhookRoutes(admitting, force_ignore=force_ignore)
    sorting = sorting or Sorting()
    for one in sorting.sort(admitting):
        policy = one.compiled.policy
        path = route_path(policy, routes.failure_policy(policy))
        sorted_in.setdefault(path, []).append(one)
        sorted_in["all"].append(one)
    for name, policies in sorted_in.items():
        routes[name] = build_route(failure_policy_of(name), policies)
    sorting.succeed(routes)
    return routes


def build_route(failure_policy: str, policies: Iterable[Sorted]) -> WebhookRoute:
    """Make the route of some policies."""
    listed = list(policies)
    return WebhookRoute(
        failure_policy,
        mutate=_set(one.mutate for one in listed),
        blocking=_set(one.blocking for one in listed),
        audit=_set(one.audit for one in listed),
        triggers=_set(one.triggers for one in listed),
    )


def _set(policies: Iterable[CompiledPolicy | None]) -> PolicySet:
    return PolicySet(tuple(one for one in policies if one is not None))


def is_mutate_existing(rule: CompiledRule) -> bool:
    """Tell whether a rule changes other objects than the one under review."""
    return rule.type is RuleType.MUTATION and bool((rule.rule.mutate or {}).get("targets"))


def is_trigger(rule: CompiledRule) -> bool:
    """Tell whether a rule's work is done by loops, after the request is through."""
    return rule.type is RuleType.GENERATION or is_mutate_existing(rule)


def changes_object(rule: CompiledRule) -> bool:
    """Tell whether a rule belongs to the mutating webhook."""
    if rule.type is RuleType.MUTATION:
        return not is_mutate_existing(rule)
    return rule.type is RuleType.IMAGE_VERIFY


def is_verdict(rule: CompiledRule) -> bool:
    """Tell whether a rule belongs to the validating webhook; images are judged in their final state too."""
    return rule.type in (RuleType.VALIDATION, RuleType.IMAGE_VERIFY)


def answers_at_once(compiled: CompiledPolicy) -> bool:
    """Tell whether the answer to the request can depend on a policy: it may block, or it warns (row W-12).

    Policies on images are asked together: what one of them verifies counts for the others (row IP-06).
    """
    return (
        compiled.policy.emit_warning
        or BY_NAME[compiled.policy.kind].family.shares_evidence
        or any(action.lower() == _ENFORCE for action in _actions(compiled))
    )


def _with_preparations(compiled: CompiledPolicy) -> CompiledPolicy:
    """Return a policy with the rules that prepare requests."""
    if not compiled.for_requests:
        return compiled
    return CompiledPolicy(compiled.policy, (*compiled.rules, *compiled.for_requests))


def _actions(compiled: CompiledPolicy) -> Iterator[str]:
    policy = compiled.policy
    yield policy.failure_action
    yield from (override.action for override in policy.failure_action_overrides)
    for rule in policy.rules:
        validate = rule.validate or {}
        yield str(validate.get("failureAction") or "")
        for override in validate.get("failureActionOverrides") or ():
            yield str((override or {}).get("action") or "")
        for entry in rule.verify_images:
            yield str((entry or {}).get("failureAction") or "")


def _narrowed(
    compiled: CompiledPolicy, wanted: Callable[[CompiledRule], bool]
) -> CompiledPolicy | None:
    """Return a policy with some of its rules only, None where it has none of them."""
    rules = tuple(rule for rule in compiled.rules if wanted(rule))
    if not rules:
        return None
    is_whole = len(rules) == len(compiled.rules) and not compiled.for_requests
    return compiled if is_whole else CompiledPolicy(compiled.policy, rules)


def cel_path(kind: PolicyKind, stage: str, names: Iterable[str]) -> str:
    """Return the path at which policies of a kind written in CEL are asked at a stage."""
    said = (stage,) if len(kind.family.stages) > 1 else ()
    return "/" + "/".join((kind.route, *said, *names))


def stage_at(kind: PolicyKind, rest: str) -> tuple[Stage, str]:
    """Return the stage and the names of what stands behind the first part of such a path."""
    stages = kind.family.stages
    if len(stages) == 1:
        return ("mutate" if stages == ("mutate",) else "validate"), rest
    stage, _, names = rest.partition("/")
    return ("mutate" if stage == "mutate" else "validate"), names


def failure_policy_of(route: str) -> str:
    """Return the failure policy of what a path serves; the plain path fails."""
    return IGNORE if route.partition("/")[0] == "ignore" else FAIL
