"""MutatingAdmissionPolicy: its mutations in their order, one rule for each binding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.answers import NO_ANSWER, Answers, RuleAnswer, errored
from engine.model import Json, Object, Outcome, Policy, RuleType, Status
from engine.mutate.handler import mutated_message
from engine.record import replace

from .admission import Prepared, constraints_of, found_params, prepare, said_by
from .bindings import NAMES, Bindings
from .expressions import errored as located
from .mutations import Mutation, compile_mutations
from .policy_rule import cel_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.evaluate.state import State
    from engine.model.policy import Binding


def compile_mutating(policy: Policy, bindings: Sequence[Binding]) -> Iterable[CompiledRule]:
    """Compile a policy as each binding binds it; raises PolicyError for an expression that cannot work."""
    prepared = prepare(policy)
    blocks = policy.raw["spec"].get("mutations") or ()
    mutations = compile_mutations(blocks, NAMES)
    for binding in bindings or (None,):
        yield cel_rule(
            policy,
            policy.name,
            constraints_of(policy, binding),
            _handler(prepared, binding, mutations),
            type=RuleType.MUTATION,
            enforce=not prepared.ignores_errors,
        )


def _handler(
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
            raise located(mutation.program.source, error) from error
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
