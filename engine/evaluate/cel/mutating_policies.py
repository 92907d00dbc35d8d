"""MutatingPolicy and NamespacedMutatingPolicy: the object under review changed, and objects that are there already.

Order of what is asked: match constraints, exceptions, match conditions, mutations, audit annotations, which see the changed
object. A policy changes an object by all its mutations or by none. One that names targets never touches the object under review.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.evaluate.rules import NOTHING, CompiledRule
from engine.evaluate.state import NO_ANSWER, Answers, Asked, RuleAnswer, State, answered
from engine.model import Block, Object, Outcome, Policy, Rule, RuleType, Status, Target
from engine.model.kinds import is_enabled, rules_of, skips_background
from engine.model.result import VERBS, Power, ResourceEffect
from engine.reach import GUARDED_GROUPS, Effect, out_of_reach, target_of
from engine.record import record, replace

from . import existing_objects, expressions
from .autogen import every_spec, variants
from .bindings import POLICY_NAMES, Bindings, request_of
from .constraints import Constraints, compile_constraints
from .exceptions import CompiledCelException, covering, excepted, naming
from .labelling import is_about_metadata, may_label
from .mutations import Mutation, compile_mutations, mutated
from .policy_rule import cel_rule, with_variants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.lang.cel import Program


_OPERATOR: Final = re.compile(r"no such overload: _[^\s_]+_")
"""What an error says of an operator; upstream does not name it."""

SUCCESS = "success"
_SKIPPED = answered(Status.SKIP, "skip")
_PASSED = answered(Status.PASS, SUCCESS)


@record
class Compiled:
    """One spec: the policy's own, or that of autogen."""

    constraints: Constraints
    conditions: tuple[expressions.Named, ...]
    variables: Mapping[str, Program]
    mutations: tuple[Mutation, ...]
    annotations: tuple[expressions.Named, ...]

    def answer(
        self,
        asked: Asked,
        exceptions: Sequence[CompiledCelException],
        *,
        conditions: tuple[expressions.Named, ...] | None = None,
        effect: Effect = Effect.MUTATE,
        fixed: Mapping[str, Any] = NOTHING,
    ) -> Answers:
        """Return the answer for the object of a review.

        `conditions` stand in for the policy's own match conditions, `fixed` for variables that are not of this object.
        """
        bindings = Bindings(asked.review, asked.inputs, self.variables, trace=asked.trace)
        bindings.update(fixed)
        if exceptions and (found := covering(exceptions, bindings)):
            return excepted(found)
        obj = asked.review.object
        if obj is None:
            return NO_ANSWER
        try:
            wanted = self.conditions if conditions is None else conditions
            if wanted and expressions.unmet(wanted, bindings, is_native=False) is not None:
                return _SKIPPED
            patched = mutated(
                self.mutations, lambda left: self._bound(asked, bindings, left, fixed), obj
            )
        except EvaluationError as error:
            return errored(error)
        if patched is not obj and (reason := _refused(asked, effect, obj, patched)):
            return (RuleAnswer(Outcome(Status.SKIP, f"rule is skipped: {reason}")),)
        if patched is obj and not self.annotations:
            return _PASSED
        noted = expressions.annotations_of(
            self.annotations, self._bound(asked, bindings, patched, fixed)
        )
        outcome = Outcome(Status.PASS, SUCCESS, properties=noted)
        return (RuleAnswer(outcome, patched=None if patched is obj else patched),)

    def _bound(
        self, asked: Asked, first: Bindings, left: Object, fixed: Mapping[str, Any]
    ) -> Bindings:
        """Return the variables after earlier mutations: `object` moves on, `request.object` does not."""
        if first["object"] is left:
            return first
        bound = Bindings(asked.review, asked.inputs, self.variables, trace=asked.trace)
        bound.update(fixed)
        bound["object"] = left
        bound["exceptions"] = first["exceptions"]
        return bound


def _refused(asked: Asked, effect: Effect, obj: Object, patched: Object) -> str | None:
    """Return why an object must not be changed, or not into this; most groups hold nothing that is out of reach."""
    review = asked.review
    if review.group not in GUARDED_GROUPS and effect is Effect.MUTATE:
        return None
    states = [one for one in (review.old_object, obj, patched) if one is not None]
    return out_of_reach(effect, target_of(*states), asked.policy.namespace)


def compile_mutating_policy(
    policy: Policy, exceptions: Sequence[CompiledCelException]
) -> Iterable[CompiledRule]:
    """Compile a policy into its rules; raises PolicyError for an expression that cannot work."""
    spec = policy.raw["spec"]
    compiled, others, constraints = with_variants(
        spec, variants(spec), lambda _, one: compile_spec(policy, one)
    )
    own = naming(exceptions, policy)

    def handle(asked: Asked) -> Answers:
        return others.get(asked.review.resource, compiled).answer(asked, own)

    skips = skips_background(spec)
    if not names_targets(spec):
        yield cel_rule(
            policy, "", constraints, handle, type=RuleType.MUTATION,
            enforce=policy.failure_policy != "Ignore", rule=Rule("", skip_background_requests=skips),
            usual=_PASSED, at_once=handle,
        )  # fmt: skip
    if is_enabled(spec, "mutateExisting"):
        targets = existing_objects.compile_targets(policy, spec, POLICY_NAMES)
        marked = Rule("", mutate={"targets": [spec]}, skip_background_requests=skips)
        yield cel_rule(
            policy, "", existing_objects.set_off_by(constraints), _mutate_existing(compiled, others, targets, own),
            type=RuleType.MUTATION, enforce=False, rule=marked,
        )  # fmt: skip


def _mutate_existing(
    compiled: Compiled,
    others: Mapping[str, Compiled],
    targets: existing_objects.Targets,
    exceptions: Sequence[CompiledCelException],
) -> Callable[[State], Answers]:
    """Return the handler that answers for each target; a trigger that the match conditions leave out changes nothing."""

    def handle(state: State) -> Answers:
        trigger = others.get(state.review.resource, compiled)
        bindings = Bindings(state.review, state.inputs, trigger.variables, trace=state.trace)
        triggered = existing_objects.is_triggered(state.review)
        if triggered and _leaves_out(trigger, bindings):
            return NO_ANSWER
        # expressions about a target read the request of its trigger
        fixed = {"request": request_of(bindings)} if triggered else {}
        answers: Answers = NO_ANSWER
        try:
            found = list(targets.of(state, bindings))
        except EvaluationError as error:
            text = f"failed to evaluate policy: {error.message}"
            return answered(Status.ERROR, text, rule="evaluation")
        for obj, resource, part in found:
            review = existing_objects.review_of_target(state.review, obj, resource, {})
            one = others.get(resource, compiled) if targets.expression is None else compiled
            made = one.answer(
                state.reviewing(review), exceptions, conditions=targets.conditions,
                effect=Effect.MUTATE_EXISTING, fixed=fixed,
            )  # fmt: skip
            answers += tuple(_about(answer, obj, part) for answer in made)
        return answers

    return handle


def _leaves_out(trigger: Compiled, bindings: Bindings) -> bool:
    """Tell whether match conditions keep a trigger out; one that they cannot judge sets nothing off."""
    try:
        return expressions.unmet(trigger.conditions, bindings, is_native=False) is not None
    except EvaluationError:
        return True


def _about(answer: RuleAnswer, obj: Object, part: str) -> RuleAnswer:
    after = obj if answer.patched is None else answer.patched
    return replace(answer, patched=None, targets=(Target(obj, after, part),))


def effects(policy: Policy) -> Iterable[ResourceEffect]:
    """Yield what a policy does: changes that whoever asks did not think of, and existing objects changed."""
    spec = policy.raw["spec"]
    if not names_targets(spec):
        for one in every_spec(spec):
            yield from _changing(one)
    if not is_enabled(spec, "mutateExisting"):
        return
    target = spec.get("targetMatchConstraints") or {}
    if target.get("expression"):
        yield ResourceEffect("spec.targetMatchConstraints.expression", ("*",))
        return
    at = "spec.targetMatchConstraints" if target.get("resourceRules") else "spec.matchConstraints"
    for rule in target.get("resourceRules") or rules_of(spec) or (None,):
        yield from _rewriting(at, spec, rule)
    for one in every_spec(spec) if target.get("resourceRules") else ():
        for rule in rules_of(one):
            yield ResourceEffect("spec.matchConstraints", ("get",), rule)


def _changing(spec: Block) -> Iterator[ResourceEffect]:
    """Yield what one spec, the policy's own or that of autogen, changes of what others write."""
    for rule in rules_of(spec) or (None,):
        operations = set((rule or {}).get("operations") or ("*",))
        verbs = dict.fromkeys(verb for name, verb in VERBS.items() if operations & {name, "*"})
        power = Power.OF_METADATA if is_about_metadata(spec) else Power.OF_ALL
        yield ResourceEffect(
            "spec.matchConstraints", (*verbs, *_labelling(spec)), rule, power=power
        )


def _rewriting(at: str, spec: Block, rule: Block | None) -> Iterator[ResourceEffect]:
    """Yield what is done to targets: they are found and read as a whole, and written by the part that a rule names."""
    labelling, read = _labelling(spec), existing_objects.whole(rule) if rule else None
    if read != rule:
        yield ResourceEffect(at, ("get", "list", *labelling), read)
        yield ResourceEffect(at, ("update",), rule)
        return
    yield ResourceEffect(at, ("get", "list", "update", *labelling), rule, power=Power.OF_ALL)


def _labelling(spec: Block) -> tuple[str, ...]:
    return ("delete",) if may_label(spec) else ()


def names_targets(spec: Block) -> bool:
    """Tell whether a policy says which existing objects it changes, and so leaves those under review alone."""
    target = spec.get("targetMatchConstraints") or {}
    return bool(target.get("resourceRules") or target.get("expression"))


def compile_spec(policy: Policy, spec: Block) -> Compiled:
    """Compile one spec; raises PolicyError."""
    return Compiled(
        compile_constraints(
            spec.get("matchConstraints") or {}, namespace=policy.namespace, open_without_rules=True
        ),
        expressions.compile_conditions(spec, POLICY_NAMES),
        expressions.compile_variables(spec, POLICY_NAMES),
        compile_mutations(
            spec.get("mutations") or (),
            POLICY_NAMES,
            may_replace=(spec.get("evaluation") or {}).get("useServerSideApply") is True,
        ),
        expressions.compile_annotations(spec, POLICY_NAMES),
    )


def errored(error: EvaluationError) -> Answers:
    """Return the answer of a policy that cannot be evaluated."""
    text = _OPERATOR.sub("no such overload", error.message)
    return answered(Status.ERROR, f"failed to evaluate policy: {text}", rule="evaluation")
