"""Policies against one object: the one entry for webhook, background scan, command line and tests.

Mutate rules run first, each on what the one before left; then image verification, validation and generation on the
patched object. Rules that need an answer from outside are left out of the results and named in `missing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.fields import word
from engine.lang.chance import Chance
from engine.lang.jmes.values import Env
from engine.lang.variables import Scope
from engine.model import Json, Object, Policy, Review, RuleResult, RuleType, Status
from engine.record import replace
from engine.vocabulary import SERVICE_ACCOUNT

from .inputs import Inputs, dotted_path
from .lookups import HostLookup, Lookup, LookupNeeded
from .plans import CHANGING, Marked, Part, Step
from .policy_set import IN_ORDER, PolicySet
from .rules import CompiledPolicy, CompiledRule, run_rule
from .state import LOST, State, Trace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from engine.lang.imagetext import RegistryDefaults


_APPLIED = frozenset({Status.PASS, Status.FAIL, Status.ERROR})


class Evaluation:
    """What all rules said.

    `patched` is the object after mutation; `missing` are questions to answer before evaluating again; `traces` are the
    steps, when they were asked for.
    """

    __slots__ = ("missing", "patched", "results", "traces")

    def __init__(self, patched: Object) -> None:
        self.results: list[RuleResult] = []
        self.patched = patched
        self.missing: list[Lookup] = []
        self.traces: list[Trace] = []


def evaluate(
    policies: PolicySet,
    review: Review,
    inputs: Inputs,
    *,
    types: Collection[RuleType] = IN_ORDER,
    trace: bool = False,
) -> Evaluation:
    """Evaluate the rules of `types` on `review` and return every answer.

    Results stand in the order mutate, image verification, validate, generate, and within each in the order of the
    policies. Nothing is raised for what a policy or an object holds.
    """
    run = _Run(review, inputs, trace)
    if trace:
        for group in policies.for_kind(review.kind):
            if group.type in types:
                for policy in group.policies:
                    run.policy(policy)
    else:
        for part in policies.plan(review):
            if types is IN_ORDER or part.type in types:
                run.part(part)
    return run.finished()


class _Run:
    """One evaluation under way: the object as patched so far, and what was found."""

    __slots__ = ("_base", "_chance", "_inputs", "_is_as_usual", "_review", "evaluation")

    def __init__(self, review: Review, inputs: Inputs, trace: bool) -> None:
        self._review = review
        self._inputs = inputs
        self._chance: Chance | None = None
        self._is_as_usual = not (trace or inputs.rule_values)
        self._base: Scope | None = None
        self.evaluation = Evaluation(review.target)

    def part(self, part: Part) -> None:
        """Ask the rules of one part of a plan."""
        is_changing, is_as_usual = part.type in CHANGING, self._is_as_usual
        failed: Policy | None = None
        for stops_early, steps in part.stretches:
            asked = steps if isinstance(steps, tuple) else self._found(steps, is_changing)
            for step in asked:
                if failed is not None and step.rule.policy is failed:
                    continue
                if step.applies is not None and not step.applies(self._review):
                    continue
                quick, results = step.quick, None
                if quick is not None and is_as_usual:
                    # what most objects get; where something goes wrong, the rule itself is asked to say what
                    try:
                        results = quick(self._review, self._inputs)
                    except LookupNeeded as needed:
                        self.evaluation.missing.extend(needed.lookups)
                        continue
                    except (EngineError, RecursionError):
                        results = None
                if results is None:
                    results = self._rule(step.rule, None)
                self.evaluation.results.extend(results)
                if is_changing and self._take_over(results):
                    failed = step.rule.policy
                if stops_early and any(result.status in _APPLIED for result in results):
                    break

    def _found(self, steps: Marked, is_changing: bool) -> Iterable[Step]:
        """Return the steps that can concern the object, found anew after each change of it."""
        return steps.as_it_changes(lambda: self._review) if is_changing else steps.of(self._review)

    def finished(self) -> Evaluation:
        """Return the evaluation, with what the policies of a request settle among them."""
        for result in self.evaluation.results:
            if result.images:
                self.evaluation.results = settled(self.evaluation.results)
                break
        return self.evaluation

    def policy(self, compiled: CompiledPolicy) -> None:
        """Ask the rules of one policy, and keep the steps of each."""
        for rule in compiled.rules:
            trace = self._traced(rule)
            if not rule.matcher.applies(self._review):
                continue
            results = self._rule(rule, trace)
            self.evaluation.results.extend(results)
            if rule.type in CHANGING and self._take_over(results):
                break
            if compiled.stops_early and any(result.status in _APPLIED for result in results):
                break

    def _traced(self, rule: CompiledRule) -> Trace:
        trace = Trace(rule.policy.identity, rule.rule.name)
        refusal = rule.matcher.refusal(self._review)
        trace.add("match", refusal or "matches", refusal is None)
        self.evaluation.traces.append(trace)
        return trace

    def _rule(self, rule: CompiledRule, trace: Trace | None) -> tuple[RuleResult, ...]:
        # what policies of a namespace ask is confined to it
        within = rule.policy.namespace
        state = State(
            rule.policy,
            rule.rule,
            self._review,
            replace(self._inputs, within=within) if within else self._inputs,
            lambda: self._scope(rule, trace),
            rule.matcher.applies,
            rule.enforces,
            trace,
        )
        try:
            return run_rule(rule, state)
        except LookupNeeded as needed:
            self.evaluation.missing.extend(needed.lookups)
            return ()

    def _scope(self, rule: CompiledRule, trace: Trace | None) -> Scope:
        if self._base is None:
            if self._chance is None:
                self._chance = Chance(self._inputs.seed)
            self._base = scope_of(self._review, self._inputs, self._chance)
        scope = self._base.child()
        if extractors := rule.rule.image_extractors:
            target, registry = self._review.target, self._inputs.registry
            scope.defer("images", lambda _: images_in(target, extractors, registry))
        if trace is not None:
            scope.watch = lambda text, value: trace.add("variable", text, None, value)
        return scope

    def _take_over(self, results: tuple[RuleResult, ...]) -> bool:
        """Let later rules see what a rule changed; targets of mutate-existing are other objects.

        Tell whether a mutation failed, after which upstream asks no other mutate rule of the policy.
        """
        is_lost = False
        for result in results:
            if result.patched is LOST:
                is_lost = True
            elif result.status is Status.PASS and result.patched is not None and not result.targets:
                self._review = replace(self._review, object=result.patched)
                self._base = None
                self.evaluation.patched = result.patched
        return is_lost


# The data under `request`, `images` and the service account names, as policies see one review (row V-08).


def images_in(
    obj: Object, extractors: Json = None, registry: RegistryDefaults | None = None
) -> Json:
    """Return the variable `images` of an object; what reads references is loaded with the first rule that asks."""
    from engine.images import DOCKER_HUB, extract_images

    return extract_images(obj, extractors or None, registry or DOCKER_HUB)


def scope_of(review: Review, inputs: Inputs, chance: Chance) -> Scope:
    """Make the scope from which each rule evaluated on `review` gets a child of its own."""

    def is_external(host: str) -> bool:
        return bool(inputs.ask(HostLookup(host)).value)

    env = Env(inputs.now, chance, is_external, registry=inputs.registry)
    data: dict[str, Json] = {"request": request_of(review)}
    if not review.user.is_empty:
        name = review.user.username
        account = name.removeprefix(SERVICE_ACCOUNT) if name.startswith(SERVICE_ACCOUNT) else ""
        namespace, colon, own_name = account.partition(":")
        data["serviceAccountName"] = own_name
        data["serviceAccountNamespace"] = namespace if colon else ""
    scope = Scope(data, env, is_delete=review.operation == "DELETE", rereads=inputs.resolve_values)
    scope.defer("images", lambda _: images_in(review.target, registry=inputs.registry))
    for key, value in inputs.variables.items():
        scope.set_path(dotted_path(key), value)
    if inputs.variables:
        scope.is_delete = scope.data["request"].get("operation") == "DELETE"
    return scope


def request_of(review: Review) -> dict[str, Json]:
    """Return the AdmissionRequest of `review` with roles beside it; what is not known is left out, not null."""
    made = dict(review.request)
    if review.operation:
        made.setdefault("operation", review.operation)
    if review.object is not None:
        made["object"] = review.object
    if review.old_object is not None:
        made["oldObject"] = review.old_object
    made.setdefault("namespace", word(review.object or {}, "metadata", "namespace"))
    if not review.user.is_empty:
        made.setdefault("userInfo", review.user.info)
        if review.user.roles:
            made["roles"] = list(review.user.roles)
        if review.user.cluster_roles:
            made["clusterRoles"] = list(review.user.cluster_roles)
    return made


def settled(results: list[RuleResult]) -> list[RuleResult]:
    """Return results in which a pass is a failure where a required image was verified by no policy of them."""
    judged = [one for one in results if one.type is RuleType.VALIDATION]
    found = [image for one in judged for image in one.images]
    if not any(image.is_wanted for image in found):
        return results
    verified = {image.image for image in found if image.is_verified}
    tried = {image.image for image in found if image.is_tried}
    return [_settled(one, verified, tried) for one in results]


def _settled(result: RuleResult, verified: set[str], tried: set[str]) -> RuleResult:
    lacking = (one for one in result.images if one.is_wanted and one.image not in verified)
    missing = next(lacking, None)
    if result.status is not Status.PASS or missing is None:
        return result
    text = f"image {missing.image} is not verified: no policy performed a signature or attestation check on it"
    if missing.image in tried:
        text = f"image {missing.image} failed signature or attestation verification"
    return replace(result, status=Status.FAIL, message=text)
