"""ValidatingPolicy and NamespacedValidatingPolicy (row L-01): one answer for a policy, by the variant that fits the object.

Order of what is asked: match constraints, exceptions, match conditions, validations up to the first that is not met.
Policies that judge HTTP and Envoy requests give responses instead: null has no say, a response that lets the request through is a
pass, one that denies it a failure with what is answered. Where no expression has a say, the policy has none either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError
from engine.evaluate.state import NO_ANSWER, Answers, Asked, RuleAnswer, answered
from engine.model import Block, Outcome, Policy, Status
from engine.model.kinds import KUBERNETES, mode_of
from engine.record import record

from . import expressions
from .bindings import POLICY_NAMES, Bindings
from .checks import Checks, checked, compile_checks
from .constraints import Constraints, compile_payload_constraints
from .exceptions import CompiledCelException, covering, excepted, naming
from .policy_rule import cel_rule, specs_of, with_variants

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule
    from engine.lang.cel import Program

_PASSED = answered(Status.PASS, "success")
_SKIPPED = answered(Status.SKIP, "skip")


@record
class _Compiled:
    """One spec: the policy's own, or that of autogen."""

    name: str
    resources: tuple[str, ...]
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
    mode = mode_of(spec)
    own = naming(exceptions, policy)
    first, others, constraints = with_variants(_compiled(policy, spec, mode))

    def handle(asked: Asked) -> Answers:
        one = others.get(asked.review.resource, first) if others else first
        return _answer(one, own, asked)

    enforce = policy.failure_action == "Enforce"
    return (
        cel_rule(policy, "", constraints, handle, enforce=enforce, usual=_PASSED, at_once=handle),
    )


def _compiled(policy: Policy, spec: Block, mode: str) -> Iterator[_Compiled]:
    if mode != KUBERNETES:
        yield _one("", spec, compile_payload_constraints(mode), mode=mode)
        return
    yield from (_one(*found) for found in specs_of(policy, spec))


def _one(
    name: str,
    spec: Block,
    constraints: Constraints,
    resources: tuple[str, ...] = (),
    mode: str = "",
) -> _Compiled:
    return _Compiled(
        name=name,
        resources=resources,
        constraints=constraints,
        conditions=expressions.compile_named(
            spec.get("matchConditions") or (), POLICY_NAMES, place="matchConditions"
        ),
        variables=expressions.compile_variables(spec.get("variables") or (), POLICY_NAMES),
        checks=_checks(spec, mode),
        ignores_errors=spec.get("failurePolicy") == "Ignore",
    )


def _checks(spec: Block, mode: str) -> Checks | Verdicts:
    """Compile validations: for requests they give responses, otherwise they are true or not."""
    if mode not in ("HTTP", "Envoy"):
        return compile_checks(spec, POLICY_NAMES, passed=_PASSED)

    return compile_verdicts(spec, POLICY_NAMES, passed=_PASSED)


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
            outcome = Outcome(Status.ERROR, f"failed to load context: {error.message}")
            return (RuleAnswer(outcome, rule="evaluation"),)
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


def compile_verdicts(block: Block, names: Collection[str], *, passed: Answers) -> Verdicts:
    """Compile the validations of a policy for requests; raises PolicyError."""
    return Verdicts(expressions.compile_validations(block.get("validations") or (), names), passed)
