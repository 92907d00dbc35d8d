"""GeneratingPolicy and NamespacedGeneratingPolicy (row L-03): which objects a trigger wants, as plain values.

Order of what is asked: match constraints, exceptions, match conditions, then every item of `generate`. An expression wants
objects by calling `generator.Apply`; a template is YAML, with expressions in it where it says so. What came from the cluster
(`resource.Get`, `resource.List`) is a copy, and says of what in a label. Nothing is written here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, EvaluationError, PolicyError
from engine.evaluate.state import NO_ANSWER, Answers, RuleAnswer, State, answered
from engine.fields import part
from engine.generate.objects import listed, placed_as
from engine.generate.placeholders import MARK, documents_of, is_interpolated, pieces
from engine.lang import gotext
from engine.lang.cel import Program, lookups
from engine.lang.cel.errors import no_overload
from engine.lang.cel.functions.cluster import misplaced_calls
from engine.lang.cel.functions.encodings import plain
from engine.model import Block, Json, Object, Outcome, Policy, Rule, RuleType, Status
from engine.model.kinds import skips_background
from engine.model.resources import is_cluster_scoped
from engine.record import record, replace

from . import expressions
from .bindings import POLICY_NAMES, Bindings
from .constraints import compile_constraints
from .exceptions import CompiledCelException, covering, excepted, naming
from .policy_rule import cel_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from engine.evaluate.rules import CompiledRule

    from .expressions import Named

    Item = Callable[["Generation"], None]
    Part = str | Program
    Render = Callable[[Bindings], Json]

_PASSED = "policy evaluated successfully"


class Generation(Bindings):
    """The variables of one policy on one trigger, and the objects that were wanted so far."""

    __slots__ = ("made", "within")

    def __init__(self, policy: Policy, state: State, variables: Mapping[str, Program]) -> None:
        super().__init__(state.review, state.inputs, variables, trace=state.trace)
        # of a deletion the object is what was there
        self["object"] = state.review.object or state.review.old_object
        self.within = policy.namespace
        self.made: list[Object] = []

    def ask(self, question: Any) -> Any:
        """Answer what an expression asks; that objects be generated is written down, and true."""
        if not isinstance(question, lookups.GenerateObjects):
            return super().ask(question)
        if question.namespace is None and not self.within:
            raise no_overload("generator.Apply(list)")
        namespace = self.within if question.namespace is None else question.namespace
        for obj in question.objects:
            self.want(plain(self.env, obj), namespace)
        return True

    def want(self, value: Any, namespace: str) -> None:
        """Take an object, or those of a list, as one to generate in a namespace; raises EvaluationError.

        A policy of a namespace wants nothing outside it (row GP-14).
        """
        for obj in listed(value):
            if not obj.get("apiVersion") or not obj.get("kind"):
                raise EvaluationError("an object to generate needs apiVersion and kind")
            is_wide = is_cluster_scoped(obj)
            self._check_scope(obj, namespace, is_wide=is_wide)
            self.made.append(placed_as(obj, "" if is_wide else namespace))

    def _check_scope(self, obj: Object, namespace: str, *, is_wide: bool) -> None:
        if not self.within:
            return
        if is_wide:
            raise EvaluationError(
                f'cross-scope generation denied: a policy scoped to namespace "{self.within}" cannot '
                f"generate cluster-scoped resource {obj['apiVersion']}/{obj['kind']}"
            )
        if namespace != self.within:
            raise EvaluationError(
                f'cross-namespace generation denied: a policy in namespace "{self.within}" cannot '
                f'generate resources into namespace "{namespace}"'
            )


@record
class _Compiled:
    """One policy, compiled."""

    policy: Policy
    exceptions: tuple[CompiledCelException, ...]
    conditions: tuple[Named, ...]
    variables: Mapping[str, Program]
    annotations: tuple[Named, ...]
    items: tuple[Item, ...]

    def answer(self, state: State) -> Answers:
        """Return what is to be generated for the object at hand; no answer where the policy is not about it."""
        bound = Generation(self.policy, state, self.variables)
        if self.exceptions and (found := self._covering(state, bound)):
            return (replace(excepted(found)[0], rule="exception"),)
        try:
            if self.conditions and expressions.unmet(self.conditions, bound) is not None:
                return NO_ANSWER
        except EvaluationError as error:
            return answered(Status.ERROR, f"failed to execute matching: {error.message}")
        try:
            for item in self.items:
                item(bound)
        except EvaluationError as error:
            return answered(Status.ERROR, f"failed to evaluate policy: {error.message}")
        outcome = Outcome(
            Status.PASS, _PASSED, properties=expressions.annotations_of(self.annotations, bound)
        )
        return (RuleAnswer(outcome, generated=tuple(bound.made)),)

    def _covering(self, state: State, bound: Generation) -> tuple[CompiledCelException, ...]:
        """Return the exceptions that cover the trigger.

        INVARIANT: the conditions of exceptions generate nothing, because their authors were not asked whether they may.
        """
        asking = Bindings(state.review, state.inputs, self.variables, trace=state.trace)
        asking["object"] = bound["object"]
        found = covering(self.exceptions, asking)
        bound["exceptions"] = asking["exceptions"]
        return found


def compile_generating(
    policy: Policy, exceptions: Sequence[CompiledCelException]
) -> Iterable[CompiledRule]:
    """Compile a policy into its one rule, which bears the policy's name; raises PolicyError for what cannot work."""
    spec = policy.raw["spec"]
    compiled = _Compiled(
        policy=policy,
        exceptions=naming(exceptions, policy),
        conditions=expressions.compile_conditions(spec, POLICY_NAMES, may_mix=True),
        variables=expressions.compile_variables(spec, POLICY_NAMES, may_mix=True),
        annotations=expressions.compile_annotations(spec, POLICY_NAMES, may_mix=True),
        items=tuple(
            _item(index, block, bool(policy.namespace))
            for index, block in enumerate(spec.get("generate") or ())
        ),
    )
    _check_calls(
        {f"variables.{name}": one for name, one in compiled.variables.items()},
        bool(policy.namespace),
    )
    constraints = compile_constraints(
        spec.get("matchConstraints") or {}, namespace=policy.namespace
    )
    made = cel_rule(
        policy, policy.name, constraints, compiled.answer, type=RuleType.GENERATION, enforce=False
    )
    rule = Rule(policy.name, skip_background_requests=skips_background(spec))
    return (replace(made, rule=rule),)


def _check_calls(programs: Mapping[str, Program], is_namespaced: bool) -> None:
    """Raise PolicyError for a call as policies of the other scope make it: those of a namespace name none (rows CE-09, CE-10)."""
    for place, program in programs.items():
        for call in misplaced_calls(program.tree, is_namespaced=is_namespaced):
            raise PolicyError(
                f"`{place}` does not compile: found no matching overload for '{call.name}'"
            )


def _item(index: int, block: Block, is_namespaced: bool) -> Item:
    template = block.get("template")
    if template is not None:
        return _template(template, f"generate[{index}].template")
    place = f"generate[{index}]"
    program = expressions.compile_expression(
        block.get("expression"), POLICY_NAMES, place=place, may_mix=True
    )
    _check_calls({place: program}, is_namespaced)

    def generate(bound: Generation) -> None:
        value = bound.value_of(program)
        if bound.trace is not None:
            bound.trace.add("expression", program.source, value is True)

    return generate


def _template(block: Block, place: str) -> Item:
    documents = _documents(block, place)

    def generate(bound: Generation) -> None:
        for number, document in enumerate(documents, 1):
            try:
                found = document(bound)
            except EvaluationError as error:
                raise error.reworded(
                    f"failed to render generation template: document {number}: {error.message}"
                ) from error
            if isinstance(found, dict):
                named = part(found, "metadata").get("namespace")
                bound.want(found, str(named or bound.within))

    return generate


# Templates: YAML documents, with `(( EXPR ))` in their values where they are interpolated (row GP-15).
#
# A value that is nothing but a placeholder becomes what its expression gives, whatever that is; inside longer text it becomes text.


def _documents(block: Block, place: str) -> list[Render]:
    """Compile the documents of a template; raises PolicyError for text that is no YAML, or an expression that cannot work."""
    try:
        documents = documents_of(block)
    except EngineError as error:
        raise PolicyError(f"`{place}` cannot be read: {error.message}") from error
    if not documents or not all(isinstance(one, dict) for one in documents):
        raise PolicyError(f"`{place}` must hold objects")
    is_open = is_interpolated(block)
    return [_value(one, place) if is_open else _constant(one) for one in documents]


def _constant(value: Json) -> Render:
    return lambda _: value


def _value(value: Json, place: str) -> Render:
    if isinstance(value, dict):
        fields = {key: _value(below, place) for key, below in value.items()}
        return lambda bindings: {key: below(bindings) for key, below in fields.items()}
    if isinstance(value, list):
        items = [_value(below, place) for below in value]
        return lambda bindings: [below(bindings) for below in items]
    if isinstance(value, str) and MARK in value:
        return _text(_parts(value, place))
    return _constant(value)


def _text(parts: list[Part]) -> Render:
    if len(parts) == 1:
        only = parts[0]
        return _constant(only) if isinstance(only, str) else lambda bindings: _told(only, bindings)

    def joined(bindings: Bindings) -> str:
        return "".join(
            one if isinstance(one, str) else _as_text(_told(one, bindings)) for one in parts
        )

    return joined


def _told(program: Program, bindings: Bindings) -> Json:
    return plain(bindings.env, bindings.value_of(program))


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else gotext.compact_json(value)


def _parts(text: str, place: str) -> list[Part]:
    """Return the pieces of a text, placeholders compiled; raises PolicyError."""
    found: list[Part] = []
    for piece in pieces(text):
        if isinstance(piece, str):
            found.append(piece)
            continue
        if piece.is_open:
            raise PolicyError(f"`{place}` has a placeholder without an end: `{text}`")
        found.append(
            expressions.compile_expression(piece.source, POLICY_NAMES, place=place, may_mix=True)
        )
    return found
