"""Validate rules: which of their languages decides, and the loop over elements.

The first of manifests, podSecurity, deny, pattern or anyPattern, and foreach that a rule has gives the answer
(row A-80). The languages themselves live below; here they meet the object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError, LimitError
from engine.lang.jmes import UnknownKeyError
from engine.lang.variables import compile_document
from engine.model import Block, Forgiven, Json, Object, Outcome, Rule, Status
from engine.record import record, replace
from engine.requester import denies_who_asks

from .conditions import Conditions, compile_conditions
from .context import Entry, compile_context, load_context
from .loops import add_foreach_values, each, elements_of
from .patterns import Message, compile_patterns
from .quick import Passing
from .state import NO_ANSWER, Answers, RuleAnswer, State, answered, errored, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[State], Answers]

_FORGIVEN = Outcome(
    Status.SKIP, "skipping the rule evaluation as pre-existing violations are allowed"
)
_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}


def compile_validate(rule: Rule) -> tuple[Handler, Passing]:
    """Compile the handler of a validate rule, and what it answers without being asked, but for DELETE."""
    block = rule.validate or {}
    if (block.get("manifests") or {}).get("attestors"):
        return compile_signed(block["manifests"]), Passing()
    if block.get("podSecurity"):
        return _compile_pod_security(block["podSecurity"]), Passing()
    if block.get("cel"):
        from .cel.rule import compile_cel_rule

        return compile_cel_rule(rule), Passing()
    checked, passing = _compile_checks(block, Message(block.get("message"), rule.name))
    if block.get("allowExistingViolations", True) and not denies_who_asks(rule):
        checked = _allowing_existing(checked, rule)
    return checked, passing


def _compile_checks(block: Block, message: Message) -> tuple[Handler, Passing]:
    """Compile deny, pattern, anyPattern or foreach, whichever comes first."""
    if block.get("deny") is not None:
        return _compile_deny(block["deny"], message), Passing()
    if block.get("pattern") is not None or block.get("anyPattern") is not None:
        handler, passing = compile_patterns(block, message)
        return _except_on_delete(handler), passing
    if block.get("foreach"):
        return _compile_foreach(block["foreach"], message), Passing()
    return lambda _: NO_ANSWER, Passing()


def _except_on_delete(handler: Handler) -> Handler:
    """Give no answer for DELETE: there is no new object to compare with a pattern (row A-73)."""
    return lambda state: NO_ANSWER if state.review.operation == "DELETE" else handler(state)


def _compile_deny(block: Block, message: Message) -> Handler:
    conditions = compile_conditions(block.get("conditions"))

    def handle(state: State) -> Answers:
        try:
            verdict = conditions(state.scope, state.trace)
        except EvaluationError as error:
            return errored("failed to check deny conditions", error)
        if not verdict.holds:
            return answered(Status.PASS, f"validation rule '{state.rule.name}' passed.")
        return answered(Status.FAIL, message.of_denial(verdict.message, state.scope))

    return handle


@record
class _Loop:
    """One compiled `foreach` entry of a validate rule."""

    list: str
    element_scope: bool | None
    context: tuple[Entry, ...]
    preconditions: Conditions | None
    check: Handler


def _compile_foreach(blocks: Json, message: Message) -> Handler:
    loops = [_compile_loop(block, message) for block in blocks]

    def handle(state: State) -> Answers:
        count = 0
        for loop in loops:
            try:
                elements = elements_of(loop.list, state)
            except UnknownKeyError:
                continue
            except EvaluationError as error:
                return errored("failed to evaluate list", error)
            stopped, checked = _run_loop(loop, elements, state)
            if stopped:
                return stopped
            count += checked
        return answered(Status.PASS, "rule passed") if count else NO_ANSWER

    return handle


def _compile_loop(block: Block, message: Message) -> _Loop:
    preconditions = block.get("preconditions")
    return _Loop(
        list=str(block.get("list", "")),
        element_scope=block.get("elementScope"),
        context=compile_context(tuple(block.get("context") or ())),
        preconditions=compile_conditions(preconditions) if preconditions else None,
        check=_compile_checks(block, message)[0],
    )


def _run_loop(loop: _Loop, elements: list[Json], state: State) -> tuple[Answers, int]:
    """Check element by element; returns the answer that ends the rule, if any, and how many elements counted.

    Preconditions that cannot be evaluated leave an element out, unless it is the last one (observed).
    """
    count = 0
    for element, inner in each(elements, state):
        try:
            scoped = _scoped(loop, element, inner)
        except EvaluationError as error:
            return errored("failed to process foreach", error), count
        is_last = inner.scope.data["elementIndex"] == len(elements) - 1
        for answer in _check_element(loop, scoped, is_last=is_last):
            outcome = answer.outcome
            if outcome.status in {Status.FAIL, Status.ERROR}:
                message = f"validation failure: {outcome.message}"
                return (RuleAnswer(replace(outcome, message=message)),), count
            if outcome.status is Status.PASS:
                count += 1
    return NO_ANSWER, count


def _scoped(loop: _Loop, element: Json, state: State) -> State:
    """Let patterns look at the element where it is a map, unless the entry says otherwise (row A-75)."""
    is_map = isinstance(element, dict)
    scopes = is_map if loop.element_scope is None else loop.element_scope
    if not scopes:
        return state
    if not is_map:
        found = _GO_TYPES.get(type(element), "string")
        raise EvaluationError(
            "cannot use elementScope=true foreach rules for elements that are not maps, "
            f"expected type=map got type={found}"
        )
    return state.looking_at(element)


def _check_element(loop: _Loop, state: State, *, is_last: bool) -> Answers:
    if state.inputs.foreach_values:
        add_foreach_values(state, state.scope.data["elementIndex"])
    if loop.context:
        load_context(loop.context, state.scope, state.inputs)
    if loop.preconditions is not None:
        try:
            verdict = loop.preconditions(state.scope, state.trace)
        except EvaluationError as error:
            return errored("failed to evaluate preconditions", error) if is_last else NO_ANSWER
        if not verdict.holds:
            text = joined("preconditions not met", verdict.message)
            return answered(Status.SKIP, text)
    return loop.check(state)


def _compile_pod_security(block: Block) -> Handler:
    from engine.podsecurity import compile_pod_security

    plain = compile_pod_security(block)

    def handle(state: State) -> Answers:
        check = compile_pod_security(block, state.exclusions) if state.exclusions else plain
        try:
            return (RuleAnswer(check(state.resource, state.rule.name)),)
        except EngineError as error:
            return answered(Status.ERROR, error.message)

    return _except_on_delete(handle)


def _allowing_existing(handler: Handler, rule: Rule) -> Handler:
    """Skip an update whose object broke the rule before it (row A-71), where a failure would block; say what it skipped.

    The object before is asked about as an object and not as its subresource: what a rule for a subresource refuses
    is the request, which nothing has violated before. Context and preconditions are those of the object before, too.
    """
    context = compile_context(rule.context)
    preconditions = compile_conditions(rule.preconditions) if rule.preconditions else None

    def handle(state: State) -> Answers:
        answers = handler(state)
        review = state.review
        if review.operation != "UPDATE" or not review.old_object or not state.enforces(review):
            return answers
        failed = _failures(answers)
        if not failed:
            return answers
        before = _before_the_update(state, review.old_object)
        if not state.applies(replace(before.review, subresource="")):
            return answers
        load_context(context, before.scope, state.inputs)
        if preconditions is not None and not _holds(preconditions, before):
            return answers
        failed_before = _failures(handler(before))
        if not failed_before:
            return answers
        return (RuleAnswer(_FORGIVEN, forgiven=Forgiven(failed, failed_before)),)

    return handle


def _failures(answers: Answers) -> tuple[Outcome, ...]:
    return tuple(one.outcome for one in answers if one.outcome.status is Status.FAIL)


def _holds(preconditions: Conditions, state: State) -> bool:
    """Tell whether preconditions hold; what cannot be evaluated does not."""
    try:
        return preconditions(state.scope, state.trace).holds
    except LimitError:
        raise
    except EvaluationError:
        return False


def _before_the_update(state: State, old: Object) -> State:
    """Return the state in which the old object would have been created, as Kyverno simulates it."""
    review = replace(state.review, object=old, old_object=None, operation="CREATE")
    scope = state.scope.child()
    request = {key: value for key, value in scope.data["request"].items() if key != "oldObject"}
    scope.set("request", {**request, "object": old, "operation": "CREATE"})
    return state.reviewing(review, scope)


def compile_signed(block: Block) -> Callable[[State], Answers]:
    """Compile the handler of `validate.manifests`; it looks at the object as it was received."""
    from engine.manifests import compile_manifests

    document = compile_document(dict(block))
    compiled = compile_manifests(block) if document.is_constant else None

    def handle(state: State) -> Answers:
        from engine.manifests import compile_manifests

        review = state.review
        if review.operation == "DELETE":
            return NO_ANSWER
        try:
            verify = compiled or compile_manifests(
                document.render(state.scope, "/validate/manifests")
            )
            inputs, dry_run = state.inputs, review.dry_run
            outcome = verify(review.target, inputs.trust, inputs.now, dry_run, inputs.public_key)
        except EngineError as error:
            return answered(Status.ERROR, error.message)
        return (RuleAnswer(outcome),)

    return handle
