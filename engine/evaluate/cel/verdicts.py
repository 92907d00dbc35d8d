"""Policies that judge HTTP and Envoy requests: their expressions give responses, and the first one decides.

The counterpart of `checks` for these modes: null has no say, a response that lets the request through is a pass, one that
denies it a failure with what is answered. Where no expression has a say, the policy has none either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.answers import NO_ANSWER, Answers, answered
from engine.lang.cel.functions.responses import Verdict
from engine.model import Block, Status
from engine.record import record

from .expressions import Validation, compile_validations

if TYPE_CHECKING:
    from collections.abc import Collection

    from .bindings import Bindings


@record
class Verdicts:
    """Compiled expressions that give responses; `passed` is the answer where the request may pass."""

    validations: tuple[Validation, ...]
    passed: Answers

    def answer(self, bindings: Bindings) -> Answers:
        """Return the answer of the first expression that has a say."""
        for validation in self.validations:
            try:
                value = bindings.value_of(validation.check)
            except EvaluationError as error:
                return answered(Status.ERROR, f"error: {error.message}")
            if bindings.trace is not None:
                bindings.trace.add("expression", validation.source, value is not None)
            if value is None:
                continue
            return self._of(value, validation)
        return NO_ANSWER

    def _of(self, value: object, validation: Validation) -> Answers:
        if not isinstance(value, Verdict):
            return answered(Status.ERROR, f"expression '{validation.source}' gives no response")
        draft = value.draft
        if draft.allowed:
            return self.passed
        told = draft.body or validation.message or f"denied with status {draft.status}"
        return answered(Status.FAIL, told)


def compile_verdicts(block: Block, names: Collection[str], *, passed: Answers) -> Verdicts:
    """Compile the validations of a policy for requests; raises PolicyError."""
    return Verdicts(compile_validations(block.get("validations") or (), names), passed)
