"""Rules with `validate.cel` of ClusterPolicy and Policy (rows A-62, A-78): Kyverno asks them as the API server would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError
from engine.evaluate.answers import Answers, RuleAnswer, answered, errored
from engine.model import Outcome, Status

from .bindings import NAMES, Bindings
from .expressions import (
    annotations_of,
    compile_named,
    compile_validations,
    compile_variables,
    failure_message,
    unmet,
)
from .expressions import errored as reworded
from .params import params_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.evaluate.state import State
    from engine.model import Json, Rule

    from .expressions import Validation

    Handler = Callable[[State], Answers]
    Check = Callable[[Bindings], Answers]


def compile_cel_rule(rule: Rule) -> Handler:
    """Compile the handler of a rule with `validate.cel`; raises PolicyError for an expression that cannot work."""
    block = rule.validate or {}
    spec = block["cel"]
    variables = compile_variables(spec.get("variables") or (), NAMES)
    check = _compile_check(rule, variables_of=spec, message=str(block.get("message") or ""))
    kind, reference = spec.get("paramKind") or {}, spec.get("paramRef") or {}

    def on(state: State, params: Json = None) -> Answers:
        return check(
            Bindings(state.review, state.inputs, variables, params=params, trace=state.trace)
        )

    def handle(state: State) -> Answers:
        try:
            found = params_of(kind, reference, state.review, state.inputs)
        except EvaluationError as error:
            return errored("error in parameterized resource", error)
        answers = [on(state, params) for params in found]
        wrong = (one for one in answers if one[0].outcome.status is not Status.PASS)
        return next(wrong, answers[0] if answers else _passed(rule))

    return handle if kind else on


def _passed(rule: Rule) -> Answers:
    return answered(Status.PASS, f"Validation rule '{rule.name}' passed.")


def _compile_check(rule: Rule, *, variables_of: Json, message: str) -> Check:
    spec = variables_of
    conditions = compile_named(rule.cel_preconditions, NAMES, place="celPreconditions")
    validations = compile_validations(spec.get("expressions") or (), NAMES, message=message)
    annotations = compile_named(
        spec.get("auditAnnotations") or (), NAMES, place="auditAnnotations", key="key",
        expression="valueExpression",
    )  # fmt: skip
    passed = _passed(rule)

    def check(bindings: Bindings) -> Answers:
        if conditions:
            try:
                if unmet(conditions, bindings) is not None:
                    return answered(Status.SKIP, "cel preconditions not met")
            except EngineError as error:
                return answered(Status.FAIL, error.message)
        for validation in validations:
            missed = _missed(validation, bindings)
            if missed is not None:
                return _answer(Status.FAIL, missed, annotations_of(annotations, bindings))
        if annotations:
            told = annotations_of(annotations, bindings)
            return _answer(Status.PASS, passed[0].outcome.message, told)
        return passed

    return check


def _missed(validation: Validation, bindings: Bindings) -> str | None:
    """Return what is wrong by one validation; an expression that cannot be evaluated is not met."""
    trace = bindings.trace
    try:
        value = bindings.value_of(validation.check)
    except EvaluationError as error:
        if trace is not None:
            trace.add("expression", validation.source, False, error.message)
        return reworded(validation.source, error).message
    if trace is not None:
        trace.add("expression", validation.source, value is True)
    return None if value is True else failure_message(validation, bindings)


def _answer(status: Status, message: str, properties: dict[str, str]) -> Answers:
    return (RuleAnswer(Outcome(status, message, properties=properties)),)
