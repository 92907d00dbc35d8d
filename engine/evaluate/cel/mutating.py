"""MutatingAdmissionPolicy: mutations in their order, each on what the one before left, one rule for each binding.

A mutation's expression gives an apply configuration (`Object{…}`) or a list of JSON patches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError, PolicyError
from engine.evaluate.answers import NO_ANSWER, RuleAnswer, errored
from engine.lang.cel.functions.encodings import plain
from engine.model import Outcome, RuleType, Status
from engine.mutate.handler import mutated_message
from engine.mutate.json6902 import apply_patch, read_operations
from engine.record import record, replace

from .admission import constraints_of, found_params, prepare
from .bindings import NAMES
from .configurations import apply_configuration
from .expressions import compile_expression
from .expressions import errored as located
from .policies import cel_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.evaluate.answers import Answers
    from engine.evaluate.rules import CompiledRule
    from engine.evaluate.state import State
    from engine.lang.cel import Program
    from engine.model import Block, Json, Object, Policy
    from engine.model.celpolicies import Binding

    from .admission import Prepared
    from .bindings import Bindings

    Apply = Callable[[Any, Object], Object]

_FIELDS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


@record
class _Mutation:
    """One compiled mutation."""

    program: Program
    apply: Apply


def compile_mutating(policy: Policy, bindings: Sequence[Binding]) -> Iterable[CompiledRule]:
    """Compile a policy as each binding binds it; raises PolicyError for an expression that cannot work."""
    prepared = prepare(policy)
    blocks = policy.raw["spec"].get("mutations") or ()
    mutations = tuple(_compiled(index, block) for index, block in enumerate(blocks))
    for binding in bindings or (None,):
        yield cel_rule(
            policy,
            policy.name,
            constraints_of(policy, binding),
            _handler(prepared, binding, mutations),
            type=RuleType.MUTATION,
            enforce=not prepared.ignores_errors,
        )


def _compiled(index: int, block: Block) -> _Mutation:
    kind = str(block.get("patchType"))
    source = (block.get(_FIELDS[kind]) or {}).get("expression")
    place = f"mutations[{index}].{_FIELDS[kind]}"
    if not source:
        raise PolicyError(f"`{place}.expression` is required")
    apply = apply_configuration if kind == "ApplyConfiguration" else _apply_patches
    return _Mutation(compile_expression(source, NAMES, place=place), apply)


def _apply_patches(patches: Any, obj: Object) -> Object:
    if not isinstance(patches, list):
        raise EvaluationError("a JSON patch expression must give a list of patches")
    return apply_patch(read_operations(patches), obj)


def _handler(
    prepared: Prepared, binding: Binding | None, mutations: Sequence[_Mutation]
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
        return (RuleAnswer(Outcome(Status.PASS, mutated_message(patched)), patched=patched),)

    return handle


def _bound(prepared: Prepared, state: State, params: Json, obj: Object) -> Bindings:
    """Return the variables as they are after earlier mutations."""
    return prepared.bindings(state, params, replace(state.review, object=obj))


def _mutated(
    mutations: Sequence[_Mutation], prepared: Prepared, state: State, params: Json, obj: Object
) -> Object:
    for mutation in mutations:
        bound = _bound(prepared, state, params, obj)
        try:
            obj = mutation.apply(plain(bound.env, bound.value_of(mutation.program)), obj)
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
