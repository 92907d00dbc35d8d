"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy: the API server's own kinds of policy, one rule for each binding.

Rules of `k8s.io/apiserver/pkg/admission/plugin/policy`: a policy as bound concerns what both match, its params are found
for each object, and every parameter has to be met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.state import NO_ANSWER, Answers, RuleAnswer, State, answered, errored
from engine.model import Block, Json, Object, Outcome, Policy, Review, RuleType, Status
from engine.mutate.handler import mutated_message
from engine.record import record, replace

from .bindings import NAMES, Bindings
from .checks import compile_checks
from .constraints import Constraints, all_of, compile_constraints
from .expressions import Named, compile_conditions, compile_variables, unmet
from .expressions import errored as errored_at
from .mutations import Mutation, compile_mutations
from .params import params_of
from .policy_rule import cel_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.lang.cel import Program
    from engine.model.policy import Binding

    Ask = Callable[[Bindings], Answers]

_PASSED = answered(Status.PASS, "")
_AFTER_FAULTS = {Status.PASS: 1, Status.SKIP: 2}
_LEFT_OUT = answered(Status.SKIP, "match conditions aren't met")


@record
class Prepared:
    """What native policies of both kinds have in common, compiled."""

    conditions: tuple[Named, ...]
    variables: Mapping[str, Program]
    param_kind: Block
    ignores_errors: bool

    def bindings(self, state: State, params: Json, review: Review | None = None) -> Bindings:
        """Return the variables of one parameter, for the review at hand or another one in its place."""
        return Bindings(
            review or state.review,
            state.inputs,
            self.variables,
            params=params,
            trace=state.trace,
            as_api_server=True,
        )

    def leaves_out(self, bindings: Bindings) -> bool:
        """Tell whether match conditions leave the object out; raises EvaluationError unless errors are ignored."""
        try:
            return bool(self.conditions) and unmet(self.conditions, bindings) is not None
        except EvaluationError:
            if self.ignores_errors:
                return True
            raise


def prepare(policy: Policy) -> Prepared:
    """Compile the common part of a native policy; raises PolicyError for an expression that cannot work."""
    spec = policy.raw["spec"]
    return Prepared(
        conditions=compile_conditions(spec, NAMES),
        variables=compile_variables(spec, NAMES),
        param_kind=spec.get("paramKind") or {},
        ignores_errors=policy.failure_policy == "Ignore",
    )


def constraints_of(policy: Policy, binding: Binding | None) -> Constraints:
    """Return what a policy concerns as bound."""
    own = compile_constraints(policy.raw["spec"].get("matchConstraints") or {})
    if binding is None or not binding.match_resources:
        return own
    return all_of([own, compile_constraints(binding.match_resources, open_without_rules=True)])


def found_params(prepared: Prepared, binding: Binding | None, state: State) -> tuple[Json, ...]:
    """Return the parameters of one object, a single null where the policy takes none.

    Raises EvaluationError where they cannot be read, or are missing and must not be.
    """
    reference = binding.param_reference if binding is not None else None
    if not prepared.param_kind or reference is None:
        return (None,)
    return params_of(prepared.param_kind, reference, state.review, state.inputs)


def compile_admission(policy: Policy, bindings: Sequence[Binding]) -> Iterable[CompiledRule]:
    """Compile a policy as each binding binds it; raises PolicyError for an expression that cannot work."""
    prepared = prepare(policy)
    checks = compile_checks(policy.raw["spec"], NAMES, passed=_PASSED)
    on_error = Status.ERROR if prepared.ignores_errors else Status.FAIL

    def ask(bound: Bindings) -> Answers:
        if prepared.leaves_out(bound):
            return _LEFT_OUT
        return checks.answer(bound, error=on_error)

    for binding in bindings or (None,):
        actions = (binding.actions if binding else ()) or ("Deny",)
        yield cel_rule(
            policy,
            policy.name,
            constraints_of(policy, binding),
            _validating(prepared, binding, ask),
            enforce="Deny" in actions,
        )


def said_by(binding: Binding | None, name: str, answers: Answers) -> Answers:
    """Return answers that say in a property by which binding they are given (row NG-13)."""
    if binding is None:
        return answers
    return tuple(
        replace(
            one,
            outcome=replace(one.outcome, properties={**one.outcome.properties, name: binding.name}),
        )
        for one in answers
    )


def _validating(
    prepared: Prepared, binding: Binding | None, ask: Ask
) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        try:
            params = found_params(prepared, binding, state)
            answers = [ask(prepared.bindings(state, one)) for one in params]
        except EvaluationError as error:
            return errored("failed to evaluate", error)
        return said_by(binding, "binding", _together(answers))

    return handle


def _together(answers: Sequence[Answers]) -> Answers:
    """Return one answer for all parameters: what is wrong with one, else that one is met, else that none was asked."""
    given = [answer for answer in answers if answer]
    return min(
        given, key=lambda one: _AFTER_FAULTS.get(one[0].outcome.status, 0), default=NO_ANSWER
    )


# MutatingAdmissionPolicy: its mutations in their order.


def compile_mutating(policy: Policy, bindings: Sequence[Binding]) -> Iterable[CompiledRule]:
    """Compile a policy as each binding binds it; raises PolicyError for an expression that cannot work."""
    prepared = prepare(policy)
    mutations = compile_mutations(policy.raw["spec"].get("mutations") or (), NAMES)
    for binding in bindings or (None,):
        yield cel_rule(
            policy,
            policy.name,
            constraints_of(policy, binding),
            _mutating(prepared, binding, mutations),
            type=RuleType.MUTATION,
            enforce=not prepared.ignores_errors,
        )


def _mutating(
    prepared: Prepared, binding: Binding | None, mutations: Sequence[Mutation]
) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        if state.review.object is None:
            return NO_ANSWER
        patched, is_concerned = state.review.object, False
        try:
            for params in _listed(found_params(prepared, binding, state), binding):
                bound = _bound(prepared, state, params, patched)
                if prepared.leaves_out(bound):
                    continue
                is_concerned = True
                patched = _mutated(mutations, prepared, state, params, patched)
        except EvaluationError as error:
            return errored("failed to mutate", error)
        if not is_concerned:
            return NO_ANSWER
        answer = RuleAnswer(Outcome(Status.PASS, mutated_message(patched)), patched=patched)
        return said_by(binding, "mapBinding", (answer,))

    return handle


def _bound(prepared: Prepared, state: State, params: Json, obj: Object) -> Bindings:
    """Return the variables as they are after earlier mutations."""
    return prepared.bindings(state, params, replace(state.review, object=obj))


def _mutated(
    mutations: Sequence[Mutation], prepared: Prepared, state: State, params: Json, obj: Object
) -> Object:
    for mutation in mutations:
        bound = _bound(prepared, state, params, obj)
        try:
            obj = mutation.applied(bound, obj)
        except EvaluationError as error:
            raise errored_at(mutation.program.source, error) from error
    return obj


def _listed(found: Sequence[Json], binding: Binding | None) -> list[Json]:
    """Return the parameters, those of a selector each with all of them as `items`.

    The API server evaluates a policy once for each selected parameter, Kyverno once with the list of them; so both ways of
    writing a policy work.
    """
    reference = (binding.param_reference if binding is not None else None) or {}
    if not reference.get("selector"):
        return list(found)
    items = list(found)
    return [{"items": items, **one} for one in items]
