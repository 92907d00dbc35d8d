"""DeletingPolicy and NamespacedDeletingPolicy: whether an object would be deleted at the next run (rows DP-03, CX-06).

Order of what is asked: match constraints, exceptions, of which any that matches protects the object, then the conditions, which
must all be true. What runs a policy at its time is `engine.cleanup`; here one object is judged, and the answers are those of
the command line (row CC-13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError
from engine.evaluate.state import Answers, RuleAnswer, State, Trace, answered
from engine.model import Block, Outcome, Policy, Review, Status, review_of
from engine.model.kinds import rules_of
from engine.model.result import ResourceEffect
from engine.record import record

from .bindings import POLICY_NAMES, Bindings
from .constraints import Constraints, compile_constraints
from .exceptions import CompiledCelException, naming
from .expressions import Named, compile_named, compile_variables, unmet
from .policy_rule import cel_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.evaluate.inputs import Inputs
    from engine.evaluate.rules import CompiledRule
    from engine.lang.cel import Program


_UNBOUND = frozenset({"oldObject", "request", "exceptions"})


@record
class Deletion:
    """A deleting policy, compiled for judging objects."""

    constraints: Constraints
    conditions: tuple[Named, ...]
    variables: Mapping[str, Program]
    exceptions: tuple[CompiledCelException, ...]

    def kept_by(self, review: Review, inputs: Inputs, trace: Trace | None = None) -> str:
        """Return what keeps an object that the constraints select, empty when it is to go.

        Raises EvaluationError for conditions, of the policy or of an exception, that cannot be evaluated.
        """
        bindings = _Bindings(review, inputs, self.variables, trace=trace)
        for exception in self.exceptions:
            if exception.ends is not None and inputs.now >= exception.ends:
                continue
            covers = unmet(exception.conditions, bindings) is None
            if trace is not None:
                trace.add("exception", exception.key, covers)
            if covers:
                return f"protected by exception `{exception.key}`"
        if (name := unmet(self.conditions, bindings)) is not None:
            return f"condition `{name}` does not hold"
        return ""


class _Bindings(Bindings):
    """The variables that there are without a request: the object and its namespace, a Namespace being its own."""

    __slots__ = ()

    def __init__(self, review: Review, inputs: Inputs, variables: Any, *, trace: Any) -> None:
        super().__init__(review, inputs, variables, trace=trace)
        del self["oldObject"]
        if review.kind == "Namespace" and not review.group:
            self["namespaceObject"] = review.target

    def __missing__(self, name: str) -> Any:
        if name in _UNBOUND:
            raise KeyError(name)
        return super().__missing__(name)


def prepare_deletion(policy: Policy, exceptions: Sequence[CompiledCelException] = ()) -> Deletion:
    """Compile a policy; raises PolicyError for an expression that cannot work."""
    spec = policy.raw["spec"]
    return Deletion(
        _constraints(spec.get("matchConstraints") or {}, policy.namespace),
        compile_named(spec.get("conditions") or (), POLICY_NAMES, place="conditions"),
        compile_variables(spec, POLICY_NAMES),
        naming(exceptions, policy),
    )


def compile_deleting(
    policy: Policy, exceptions: Sequence[CompiledCelException]
) -> Iterable[CompiledRule]:
    """Compile a policy into its one rule; raises PolicyError for an expression that cannot work."""
    deletion = prepare_deletion(policy, exceptions)

    def handle(state: State) -> Answers:
        what = "json" if state.review.payload else "resource"
        try:
            kept = deletion.kept_by(state.review, state.inputs, state.trace)
        except EvaluationError as error:
            return answered(Status.ERROR, error.message)
        if kept:
            return (RuleAnswer(Outcome(Status.FAIL, f"{what} did not match")),)
        return (RuleAnswer(Outcome(Status.PASS, f"{what} matched")),)

    constraints = _with_payloads(deletion.constraints, policy.namespace)
    return (cel_rule(policy, policy.name, constraints, handle, enforce=True),)


def effects_of(policy: Policy) -> Iterator[ResourceEffect]:
    """Yield what a policy does: it lists and deletes what its rules name."""
    for index, rule in enumerate(rules_of(policy.raw["spec"])):
        at = f"spec.matchConstraints.resourceRules[{index}]"
        yield ResourceEffect(at, ("list", "delete"), rule)


def _constraints(block: Block, namespace: str) -> Constraints:
    """Compile constraints for objects that are just there: no operation counts, except of what is excluded."""
    rules = [{**rule, "operations": ["*"]} for rule in block.get("resourceRules") or ()]
    return compile_constraints({**block, "resourceRules": rules}, namespace=namespace)


def _with_payloads(constraints: Constraints, namespace: str) -> Constraints:
    """Let in documents that are no objects of Kubernetes, too: those that say of what kind they are only where that fits."""

    def applies(review: Review) -> bool:
        if review.payload != "JSON":
            return constraints.applies(review)
        document = review.target
        if not (document.get("apiVersion") and document.get("kind")):
            return not namespace
        return constraints.applies(review_of(document))

    return Constraints(applies, constraints.tests)
