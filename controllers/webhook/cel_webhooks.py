"""The webhooks of policies written in CEL: which share one, under which name and path, and what the API server tests first.

Pure: routes and settings in, values out, of which `configurations` makes documents. Names and paths are upstream's (row WH-04). A policy has a webhook of its own where conditions are tested before we are asked, or where it asks for something of its own;
the others share one for each failure policy and pair of selectors.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import orjson

from controllers.runtime import webhook_routes
from controllers.store.policies import timeout_of
from engine.errors import PolicyError
from engine.evaluate.cel.autogen import concerns_pods, variants
from engine.evaluate.cel.expressions import compile_expression
from engine.match import key_error
from engine.model.kinds import CEL_KINDS, PolicyKind, is_enabled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controllers.runtime.configuration import Configuration
    from controllers.runtime.webhook_routes import WebhookRoutes
    from engine.evaluate import CompiledPolicy
    from engine.evaluate.rules import CompiledRule
    from engine.model import Block, Policy

_TESTED: Final = frozenset({"object", "oldObject", "request", "authorizer"})
"""What match conditions of webhooks may read; `namespaceObject` is not among it (row WH-05)."""

_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
_DIGEST: Final = 8
_POD: Final = ({"group": "", "version": "v1", "kind": "Pod"},)


@dataclass(frozen=True, slots=True)
class CelWebhook:
    """One webhook, as far as policies say it; `rules` are those that it serves."""

    name: str
    path: str
    failure_policy: str
    rules: tuple[CompiledRule, ...]
    selectors: Mapping[str, Any]
    conditions: tuple[Mapping[str, str], ...] = ()
    match_policy: str = "Equivalent"
    seconds: int | None = None
    is_reinvoked: bool = False


def cel_webhooks(
    stage: str, routes: WebhookRoutes, settings: Configuration, *, forwards: bool = True
) -> Iterator[CelWebhook]:
    """Yield the webhooks of a stage; without `forwards` no match condition is tested before we are asked."""
    for kind in CEL_KINDS:
        if kind.route in routes.of_cel and stage in kind.family.stages:
            yield from _OfKind(kind, stage, routes, settings, forwards).webhooks()


class _OfKind:
    """Makes the webhooks of one kind at one stage."""

    def __init__(
        self,
        kind: PolicyKind,
        stage: str,
        routes: WebhookRoutes,
        settings: Configuration,
        forwards: bool,
    ) -> None:
        self._kind, self._stage, self._routes = kind, stage, routes
        self._settings, self._forwards = settings, forwards
        # upstream's name for the webhooks of mutating policies says `validate`, too
        word = stage if len(kind.family.stages) > 1 else "validate"
        self._base = f"{kind.route}.{word}.kyverno.svc"

    def webhooks(self) -> Iterator[CelWebhook]:
        every = (one for named in self._routes.of_cel[self._kind.route].values() for one in named)
        policies = sorted(filter(self._rules, every), key=lambda one: one.policy.key)
        # each policy is asked once, and by itself: whether two are equal is a question about all that they hold
        sorts: dict[bool, list[CompiledPolicy]] = {True: [], False: []}
        for one in policies:
            sorts[is_fine_grained(one.policy)].append(one)
        yield from map(self._of_one, sorts[True])
        yield from self._shared(sorts[False])

    def _rules(self, compiled: CompiledPolicy) -> tuple[CompiledRule, ...]:
        if self._stage == "mutate":
            # upstream asks here about what only has other objects changed; we have it done once nothing can refuse the request
            every = (*compiled.rules, *compiled.for_requests)
            return tuple(
                rule
                for rule in every
                if webhook_routes.changes_object(rule) or webhook_routes.is_mutate_existing(rule)
            )
        return tuple(
            rule
            for rule in compiled.rules
            if webhook_routes.is_verdict(rule) or webhook_routes.is_trigger(rule)
        )

    def _of_one(self, compiled: CompiledPolicy) -> CelWebhook:
        policy = compiled.policy
        key = policy.key.replace("/", "-")
        constraints = policy.raw["spec"].get("matchConstraints") or {}
        is_exact = self._stage == "validate" and constraints.get("matchPolicy") == "Exact"
        return CelWebhook(
            name=f"{self._base}-{self._word(policy)}-finegrained-{key}",
            path=webhook_routes.cel_path(self._kind, self._stage, [policy.name]),
            failure_policy=self._routes.failure_policy(policy),
            rules=self._rules(compiled),
            selectors=_selectors(policy, self._settings),
            # for one name that it refuses the API server refuses the webhooks of all policies
            conditions=tuple(one for one in forwarded(policy) if not key_error(one["name"]))
            if self._forwards
            else (),
            match_policy="Exact" if is_exact else "Equivalent",
            seconds=timeout_of(policy),
            is_reinvoked=_is_reinvoked(policy),
        )

    def _word(self, policy: Policy) -> str:
        return "ignore" if self._routes.failure_policy(policy) == webhook_routes.IGNORE else "fail"

    def _shared(self, policies: Sequence[CompiledPolicy]) -> Iterator[CelWebhook]:
        """Yield a webhook for each failure policy and pair of selectors."""
        places = {
            one.policy.key: _digest(_selectors(one.policy, self._settings)) for one in policies
        }
        has_several = len(set(places.values())) > 1

        def place(one: CompiledPolicy) -> tuple[str, str]:
            return self._word(one.policy), places[one.policy.key]

        for (word, digest), found in groupby(sorted(policies, key=place), key=place):
            group = list(found)
            first = group[0].policy
            names = sorted({one.policy.name for one in group})
            yield CelWebhook(
                name=f"{self._base}-{word}" + (f"-{digest}" if has_several else ""),
                path=webhook_routes.cel_path(self._kind, self._stage, names),
                failure_policy=self._routes.failure_policy(first),
                rules=tuple(rule for one in group for rule in self._rules(one)),
                selectors=_selectors(first, self._settings),
                is_reinvoked=any(_is_reinvoked(one.policy) for one in group),
            )


def is_fine_grained(policy: Policy) -> bool:
    """Tell whether a policy written in CEL has a webhook of its own (row WH-04)."""
    spec = policy.raw["spec"]
    if (
        timeout_of(policy) is not None
        or (spec.get("matchConstraints") or {}).get("matchPolicy") == "Exact"
    ):
        return True
    conditions = spec.get("matchConditions") or ()
    return bool(conditions) and all(map(_compiles_there, conditions))


def forwarded(policy: Policy) -> Iterator[dict[str, str]]:
    """Yield the match conditions that the API server tests before it asks us, which does not make them superfluous here.

    Those of a policy about Pods are guarded by the kinds that they are written for (row WH-06); where it hears of deletions there
    is no object to guard by, and nothing is tested before.
    """
    spec = policy.raw["spec"]
    constraints = spec.get("matchConstraints") or {}
    written = [one for one in spec.get("matchConditions") or () if _compiles_there(one)]
    if not concerns_pods(constraints):
        form = "request.operation != 'CREATE' || ({})" if is_enabled(spec, "synchronize") else "{}"
        for one in written:
            yield {"name": str(one["name"]), "expression": form.format(one["expression"])}
        return
    operations = set(constraints["resourceRules"][0].get("operations") or ("*",))
    if not operations <= {"CREATE", "UPDATE"}:
        return
    yield from _guarded("autogen", written, _POD)
    for variant in sorted(variants(spec), key=lambda one: one.name):
        rewritten = variant.spec.get("matchConditions") or ()
        yield from _guarded(f"autogen-{variant.name}", rewritten, variant.targets)


def _guarded(
    prefix: str, conditions: Iterable[Block], targets: Iterable[Block]
) -> Iterator[dict[str, str]]:
    """Yield conditions that hold for every object but those of some kinds, of which they are tested."""
    kinds = " || ".join(
        f"(object.apiVersion == '{_api_version(one)}' && object.kind =='{one['kind']}')"
        for one in targets
    )
    for one in conditions:
        yield {
            "name": f"{prefix}-{one['name']}",
            "expression": f"!({kinds}) || ({one['expression']})",
        }


def _api_version(target: Block) -> str:
    return f"{target['group']}/{target['version']}" if target["group"] else str(target["version"])


def _compiles_there(condition: Block) -> bool:
    """Tell whether the API server can test a condition by itself."""
    try:
        compile_expression(condition.get("expression"), _TESTED, is_of_kubernetes=True)
    except PolicyError:
        return False
    return True


def _is_reinvoked(policy: Policy) -> bool:
    return bool(policy.raw["spec"].get("reinvocationPolicy") == "IfNeeded")


def _selectors(policy: Policy, settings: Configuration) -> dict[str, Any]:
    """Return the selectors of a policy with those of the settings (row WH-09)."""
    constraints = policy.raw["spec"].get("matchConstraints") or {}
    spaces = constraints.get("namespaceSelector")
    return {
        "namespaceSelector": selector_within(policy.namespace, settings)
        if policy.namespace
        else _united(spaces, settings.namespace_selector),
        "objectSelector": _united(constraints.get("objectSelector"), settings.object_selector),
    }


def selector_within(namespace: str, settings: Configuration) -> dict[str, Any]:
    """Return the namespace selector of a webhook that serves policies of one namespace and no others.

    INVARIANT: such a webhook is never asked for another namespace: its conditions and its failure policy are a tenant's, and the API
    server refuses a request of which a condition cannot be evaluated.
    """
    own = {"key": _NAMESPACE_NAME, "operator": "In", "values": [namespace]}
    return _united({"matchExpressions": [own]}, settings.namespace_selector)


def _united(one: Block | None, other: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a selector of what both select."""
    first, second = one or {}, other or {}
    own, labels = first.get("matchLabels") or {}, dict(second.get("matchLabels") or {})
    other_values = [key for key in own if labels.setdefault(key, own[key]) != own[key]]
    expressions = [
        *(first.get("matchExpressions") or ()),
        *({"key": key, "operator": "In", "values": [own[key]]} for key in other_values),
        *(second.get("matchExpressions") or ()),
    ]
    made = {"matchLabels": labels, "matchExpressions": expressions}
    return {key: value for key, value in made.items() if value}


def _digest(selectors: Mapping[str, Any]) -> str:
    text = orjson.dumps(selectors, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:_DIGEST]
