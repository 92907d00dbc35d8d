"""ValidatingPolicy and NamespacedValidatingPolicy (row L-01): one answer for a policy, by the variant that fits the object.

Order of what is asked: match constraints, exceptions, match conditions, validations up to the first that is not met.
Policies that judge HTTP and Envoy requests give responses instead: null has no say, a response that lets the request through is a
pass, one that denies it a failure with what is answered. Where no expression has a say, the policy has none either.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.state import NO_ANSWER, Answers, Asked, answered
from engine.model import Block, Policy, Status
from engine.model.kinds import mode_of
from engine.record import record

from . import expressions
from .bindings import POLICY_NAMES, Bindings
from .checks import Checks, checked, compile_checks
from .exceptions import CompiledCelException, covering, excepted, naming
from .policy_rule import cel_rule, constraints_of, variants_of, with_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.lang.cel import Program

    from .constraints import Constraints

_PASSED = answered(Status.PASS, "success")
_SKIPPED = answered(Status.SKIP, "skip")


@record
class _Compiled:
    """One spec: the policy's own, or that of autogen."""

    name: str
    constraints: Constraints
    conditions: tuple[expressions.Named, ...]
    variables: Mapping[str, Program]
    checks: Checks | Verdicts
    ignores_errors: bool


def compile_validating(
    policy: Policy, exceptions: Sequence[CompiledCelException]
) -> Iterable[CompiledRule]:
    """Compile a policy into its one rule; raises PolicyError for an expression that cannot work."""
    spec = policy.raw["spec"]
    own = naming(exceptions, policy)
    first, others, constraints = with_variants(spec, variants_of(spec), partial(_compiled, policy))

    def handle(asked: Asked) -> Answers:
        one = others.get(asked.review.resource, first) if others else first
        return _answer(one, own, asked)

    enforce = policy.failure_action == "Enforce"
    return (
        cel_rule(policy, "", constraints, handle, enforce=enforce, usual=_PASSED, at_once=handle),
    )


def _compiled(policy: Policy, name: str, spec: Block) -> _Compiled:
    return _Compiled(
        name=name,
        constraints=constraints_of(policy, spec),
        conditions=expressions.compile_conditions(spec, POLICY_NAMES),
        variables=expressions.compile_variables(spec, POLICY_NAMES),
        checks=_checks(spec),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
    )


def _checks(spec: Block) -> Checks | Verdicts:
    """Compile validations: for requests they give responses, otherwise they are true or not."""
    if mode_of(spec) not in ("HTTP", "Envoy"):
        return compile_checks(spec, POLICY_NAMES, passed=_PASSED)
    blocks = spec.get("validations") or ()
    return Verdicts(expressions.compile_validations(blocks, POLICY_NAMES), _PASSED)


def _answer(one: _Compiled, exceptions: Sequence[CompiledCelException], asked: Asked) -> Answers:
    bindings = Bindings(asked.review, asked.inputs, one.variables, trace=asked.trace)
    if one.name and asked.trace is not None:
        asked.trace.add("autogen", one.name)
    if exceptions and (found := covering(exceptions, bindings)):
        return excepted(found)
    if one.conditions:
        try:
            if expressions.unmet(one.conditions, bindings, is_native=False) is not None:
                return _SKIPPED
        except EvaluationError as error:
            if one.ignores_errors:
                return _SKIPPED
            text = f"failed to load context: {error.message}"
            return answered(Status.ERROR, text, rule="evaluation")
    return (
        checked(one.checks, bindings)
        if isinstance(one.checks, Checks)
        else one.checks.answer(bindings)
    )


@record
class Verdicts:
    """Compiled expressions that give responses; `passed` is the answer where the request may pass."""

    validations: tuple[expressions.Validation, ...]
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

    def _of(self, value: object, validation: expressions.Validation) -> Answers:
        from engine.lang.cel.functions.responses import Verdict

        if not isinstance(value, Verdict):
            return answered(Status.ERROR, f"expression '{validation.source}' gives no response")
        draft = value.draft
        if draft.allowed:
            return self.passed
        told = draft.body or validation.message or f"denied with status {draft.status}"
        return answered(Status.FAIL, told)
