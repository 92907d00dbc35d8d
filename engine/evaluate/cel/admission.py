"""ValidatingAdmissionPolicy: the API server's own kind of policy, one rule for each binding.

Rules of `k8s.io/apiserver/pkg/admission/plugin/policy`: a policy as bound concerns what both match, its params are found
for each object, and every parameter has to be met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.answers import NO_ANSWER, Answers, answered, errored
from engine.model import Block, Json, Policy, Review, Status
from engine.record import record, replace

from .bindings import NAMES, Bindings
from .checks import compile_checks
from .constraints import Constraints, all_of, compile_constraints
from .expressions import Named, compile_named, compile_variables, unmet
from .params import params_of
from .policy_rule import cel_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.evaluate.state import State
    from engine.lang.cel import Program
    from engine.model.policy import Binding

    Ask = Callable[[Bindings], Answers]

_PASSED = answered(Status.PASS, "")


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
        conditions=compile_named(spec.get("matchConditions") or (), NAMES, place="matchConditions"),
        variables=compile_variables(spec.get("variables") or (), NAMES),
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
            return NO_ANSWER
        return checks.answer(bound, error=on_error)

    for binding in bindings or (None,):
        actions = (binding.actions if binding else ()) or ("Deny",)
        yield cel_rule(
            policy,
            policy.name,
            constraints_of(policy, binding),
            _handler(prepared, binding, ask),
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


def _handler(prepared: Prepared, binding: Binding | None, ask: Ask) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        try:
            params = found_params(prepared, binding, state)
            answers = [ask(prepared.bindings(state, one)) for one in params]
        except EvaluationError as error:
            return errored("failed to evaluate", error)
        given = [answer for answer in answers if answer]
        wrong = (one for one in given if one[0].outcome.status is not Status.PASS)
        return said_by(binding, "binding", next(wrong, given[0] if given else NO_ANSWER))

    return handle
