"""Rules with `validate.cel` of ClusterPolicy and Policy (rows A-62, A-78): Kyverno asks them as the API server would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError
from engine.evaluate.state import Answers, State, answered, errored
from engine.model import Block, Json, Rule, Status

from .bindings import NAMES, Bindings
from .checks import compile_checks
from .expressions import compile_named, compile_variables, unmet
from .params import params_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[State], Answers]
    Check = Callable[[Bindings], Answers]


def compile_cel_rule(rule: Rule) -> Handler:
    """Compile the handler of a rule with `validate.cel`; raises PolicyError for an expression that cannot work."""
    block = rule.validate or {}
    spec = block["cel"]
    variables = compile_variables(spec, NAMES)
    check = _compile_check(rule, spec, str(block.get("message") or ""))
    kind, reference = spec.get("paramKind") or {}, spec.get("paramRef") or {}

    def on(state: State, params: Json = None) -> Answers:
        return check(
            Bindings(
                state.review,
                state.inputs,
                variables,
                params=params,
                trace=state.trace,
                as_api_server=True,
            )
        )

    def handle(state: State) -> Answers:
        try:
            found = params_of(kind, reference, state.review, state.inputs)
        except EvaluationError as error:
            return errored("error in parameterized resource", error)
        answers = [on(state, params) for params in found]
        wrong = (one for one in answers if one[0].outcome.status is not Status.PASS)
        return next(wrong, answers[0] if answers else answered(Status.PASS, _passed(rule)))

    return handle if kind else on


def _passed(rule: Rule) -> str:
    return f"Validation rule '{rule.name}' passed."


def _compile_check(rule: Rule, spec: Block, message: str) -> Check:
    """Compile preconditions and expressions; what cannot be evaluated is not met."""
    conditions = compile_named(rule.cel_preconditions, NAMES, place="celPreconditions")
    checks = compile_checks(
        spec,
        NAMES,
        field="expressions",
        message=message,
        passed=answered(Status.PASS, _passed(rule)),
    )

    def check(bindings: Bindings) -> Answers:
        if conditions:
            try:
                if unmet(conditions, bindings) is not None:
                    return answered(Status.SKIP, "cel preconditions not met")
            except EngineError as error:
                return answered(Status.FAIL, error.message)
        return checks.answer(bindings, error=Status.FAIL)

    return check
