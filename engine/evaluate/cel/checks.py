"""The validations of a policy asked in turn, up to the first that is not met, and the audit annotations after them.

Rules, policies of Kyverno and native policies all ask alike; what an error means differs and is said by each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.state import Answers, RuleAnswer
from engine.model import Block, Outcome, Status
from engine.record import record

from . import expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .bindings import Bindings

    Judge = Callable[[object], bool]

Wrong = tuple[Status, str]
"""FAIL with the message of what is not met, or ERROR with what went wrong."""


@record
class Checks:
    """Validations and audit annotations; `passed` is the answer where all is met and nothing is to be noted."""

    validations: tuple[expressions.Validation, ...]
    annotations: tuple[expressions.Named, ...]
    passed: Answers

    def answer(self, bindings: Bindings, *, error: Status = Status.ERROR) -> Answers:
        """Return the one answer for an object; `error` is the status of what cannot be evaluated."""
        wrong = self.wrong(bindings)
        if wrong is None and not self.annotations:
            return self.passed
        status, message = wrong or (Status.PASS, self.passed[0].outcome.message)
        notes = expressions.annotations_of(self.annotations, bindings)
        told = error if status is Status.ERROR else status
        return (RuleAnswer(Outcome(told, message, properties=notes)),)

    def wrong(self, bindings: Bindings) -> Wrong | None:
        """Return what is wrong by the first validation that is not met; None when all are."""
        env, trace = bindings.env, bindings.trace
        for validation in self.validations:
            try:
                value = validation.check(bindings, env)
            except EvaluationError as failure:
                if trace is not None:
                    trace.add("expression", validation.source, False, failure.message)
                return Status.ERROR, expressions.errored(validation.source, failure).message
            if trace is not None:
                trace.add("expression", validation.source, value is True)
            if value is not True:
                return Status.FAIL, expressions.failure_message(validation, bindings)
        return None


def checked(
    checks: Checks, bindings: Bindings, *, failed: str = "error", failed_rule: str = ""
) -> Answers:
    """Ask the validations up to the first that is not met, in the words of Kyverno's own policies (row CV-01).

    `failed` begins the message about what cannot be evaluated, `failed_rule` names that answer.
    """
    trace, env = bindings.trace, bindings.env
    for index, validation in enumerate(checks.validations):
        try:
            holds = validation.check(bindings, env)
            if trace is not None:
                trace.add("expression", validation.source, holds is True)
            if holds is True:
                continue
            if holds is not False:
                raise EvaluationError("validation expression does not give true or false")
        except EvaluationError as error:
            if trace is not None:
                trace.add("expression", validation.source, False, error.message)
            outcome = Outcome(
                Status.ERROR, f"{failed}: {error.message}", properties=_numbered(index)
            )
            return (RuleAnswer(outcome, rule=failed_rule),)
        notes = expressions.annotations_of(checks.annotations, bindings)
        message = _said(validation, index, bindings)
        return (
            RuleAnswer(Outcome(Status.FAIL, message, properties={**notes, **_numbered(index)})),
        )
    if not checks.annotations:
        return checks.passed
    notes = expressions.annotations_of(checks.annotations, bindings)
    message = checks.passed[0].outcome.message
    return (RuleAnswer(Outcome(Status.PASS, message, properties=notes)),)


def _numbered(index: int) -> dict[str, str]:
    return {"cel.validationIndex": str(index)}


def _said(validation: expressions.Validation, index: int, bindings: Bindings) -> str:
    """Return what Kyverno says of an object that does not meet a validation."""
    if validation.message_of is None:
        return validation.message or f"CEL expression validation failed at index {index}"
    try:
        told = bindings.value_of(validation.message_of)
    except EvaluationError as error:
        return f"failed to evaluate message expression: {error.message}"
    if isinstance(told, str):
        return told
    return "failed to evaluate message expression: it does not give a text"


def compile_checks(
    block: Block,
    names: Collection[str],
    *,
    field: str = "validations",
    message: str = "",
    passed: Answers,
) -> Checks:
    """Compile the validations under `field` and the audit annotations; raises PolicyError.

    `message` stands in for validations without one; `passed` is said where all are met.
    """
    return Checks(
        expressions.compile_validations(block.get(field) or (), names, message=message),
        expressions.compile_annotations(block, names),
        passed,
    )
