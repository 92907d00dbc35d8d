"""One compiled rule: everything that is known before an object comes is done here, once.

The order of what is asked of an object is Kyverno's (row A-63): match and exclude, context, preconditions, properties,
exceptions, and only then the rule's own work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EngineError, EvaluationError, LimitError
from engine.exceptions import CompiledException, covers
from engine.lang import wildcard
from engine.lang.variables import Document, Scope, compile_document
from engine.match import Matcher, compile_match, compile_selector
from engine.match.combine import always, never, some
from engine.model import (
    ActionOverride,
    Json,
    Outcome,
    Policy,
    Review,
    Rule,
    RuleResult,
    RuleType,
    Status,
)
from engine.parse.policies import action_overrides
from engine.record import record

from .conditions import Conditions, compile_conditions
from .context import Entry, compile_context, load_context
from .inputs import dotted_path
from .quick import Passing, compile_quick
from .state import Answers, RuleAnswer, State, answered, errored, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .cel.constraints import Constraints
    from .quick import AtOnce, Quick

    Enforces = Callable[[Review], bool]
    Handler = Callable[[State], Answers]

NOTHING: Mapping[str, Any] = {}


@record
class CompiledRule:
    """A rule of one policy, ready for any object.

    `usual` is the answer that its handler gives to most objects, that very tuple, and `usual_results` what it comes to.
    `quick` gives the results of most objects without asking the rule; not for DELETE, nor with values given by hand.
    `is_for_requests` is a rule that prepares requests for the others, and is not asked of objects as they are.
    """

    policy: Policy
    rule: Rule
    type: RuleType
    matcher: Matcher | Constraints
    enforces: Enforces
    handle: Handler
    is_plain: bool
    context: tuple[Entry, ...] = ()
    preconditions: Conditions | None = None
    properties: Mapping[str, Document] = NOTHING
    exceptions: tuple[CompiledException, ...] = ()
    usual: Answers | None = None
    usual_results: tuple[RuleResult, ...] = ()
    quick: Quick | None = None
    is_for_requests: bool = False


@record
class CompiledPolicy:
    """One policy with all its rules, those of autogen included, in their order.

    `for_requests` are those that only requests to be changed are asked, before the others.
    """

    policy: Policy
    rules: tuple[CompiledRule, ...]
    for_requests: tuple[CompiledRule, ...] = ()

    @property
    def stops_early(self) -> bool:
        """Whether evaluation ends after the first rule that was applied (row A-11)."""
        return self.policy.apply_rules == "One"


def type_of(rule: Rule) -> RuleType:
    """Return what a rule does."""
    if rule.mutate is not None:
        return RuleType.MUTATION
    if rule.generate is not None:
        return RuleType.GENERATION
    return RuleType.IMAGE_VERIFY if rule.verify_images else RuleType.VALIDATION


def compile_rule(
    policy: Policy, rule: Rule, exceptions: tuple[CompiledException, ...] = ()
) -> CompiledRule:
    """Compile one rule with the exceptions that name it; raises EngineError for a part that cannot be compiled."""
    kind = type_of(rule)
    naming = tuple(item for item in exceptions if item.names(policy.key, rule.name))
    preconditions = rule.preconditions
    is_plain = not (rule.context or preconditions or rule.report_properties or naming)
    enforces = compile_action(policy, rule)
    handle, passing = _compile_handler(kind, rule)

    def finish(answers: Answers, enforce: bool) -> tuple[RuleResult, ...]:
        return tuple([finished(policy, rule.name, kind, one, enforce) for one in answers])

    return CompiledRule(
        policy=policy,
        rule=rule,
        type=kind,
        matcher=compile_match(rule.match, rule.exclude, policy_namespace=policy.namespace),
        context=compile_context(rule.context),
        preconditions=compile_conditions(preconditions) if preconditions else None,
        properties={key: compile_document(text) for key, text in rule.report_properties.items()},
        exceptions=naming,
        enforces=enforces,
        handle=handle,
        is_plain=is_plain,
        quick=compile_quick(passing, finish, enforces) if is_plain else None,
    )


def _compile_handler(kind: RuleType, rule: Rule) -> tuple[Handler, Passing | AtOnce]:
    """Compile what a rule does, and what it answers to objects without being asked, or at once to all.

    The code of each kind is loaded with its first rule, to keep commands quick to start.
    """
    match kind:
        case RuleType.VALIDATION:
            from .validate import compile_validate

            return compile_validate(rule)
        case RuleType.MUTATION:
            from .mutate import compile_mutate

            return compile_mutate(rule)
        case RuleType.GENERATION:
            from .generate import compile_generate

            return compile_generate(rule), Passing()
        case RuleType.IMAGE_VERIFY:
            from .images import compile_verify_images

            return compile_verify_images(rule), Passing()


def run_rule(compiled: CompiledRule, state: State) -> tuple[RuleResult, ...]:
    """Return what a rule that matches says about the object; raises LookupNeeded when it must ask first.

    No other exception leaves: what cannot be evaluated is an error result, which blocks where the policy says so.
    """
    properties: dict[str, str] = {}
    covering: tuple[CompiledException, ...] = ()
    try:
        if compiled.is_plain and not state.inputs.rule_values:
            answers = compiled.handle(state)
            if answers is compiled.usual and state.trace is None:
                return compiled.usual_results
            return _results(compiled, state, answers)
        early = _before(compiled, state)
        if early is not None:
            return _results(compiled, state, early)
        properties = _properties(compiled, state.scope) if compiled.properties else {}
        covering = _covering(compiled, state)
        answers = _handled(compiled, state, covering)
    except EngineError as error:
        answers = answered(Status.ERROR, error.message)
    except RecursionError:
        answers = answered(Status.ERROR, "the rule or the object is nested too deeply")
    keys = tuple(item.key for item in covering)
    return _results(compiled, state, answers, properties, keys)


def _before(compiled: CompiledRule, state: State) -> Answers | None:
    """Return the answer that context or preconditions already give, or None when the handler is to be asked."""
    given = state.inputs.rule_values.get((compiled.policy.name, compiled.rule.name))
    for key, value in (given or {}).items():
        state.scope.set_path(dotted_path(key), value)
    if compiled.context:
        load_context(compiled.context, state.scope, state.inputs)
    if compiled.preconditions is None:
        return None
    try:
        verdict = compiled.preconditions(state.scope, state.trace)
    except LimitError:
        raise
    except EvaluationError as error:
        return errored("failed to evaluate preconditions", error)
    if verdict.holds:
        return None
    return answered(Status.SKIP, joined("preconditions not met", verdict.message))


def _properties(compiled: CompiledRule, scope: Scope) -> dict[str, str]:
    """Return the report properties with their variables replaced; one that fails keeps its text (row A-100)."""
    made = {}
    for key, document in compiled.properties.items():
        try:
            made[key] = str(document.render(scope))
        except EvaluationError:
            made[key] = str(document.source)
    return made


def _covering(compiled: CompiledRule, state: State) -> tuple[CompiledException, ...]:
    if not compiled.exceptions:
        return ()

    def holds(conditions: Json) -> bool:
        return compile_conditions(conditions)(state.scope, state.trace).holds

    found = tuple(
        item
        for item in compiled.exceptions
        if item.exception.identity not in state.inputs.disregarded
        and covers(
            item, compiled.policy.key, compiled.rule.name, state.review, state.inputs.now, holds
        )
    )
    if state.trace is not None:
        for item in compiled.exceptions:
            state.trace.add("exception", item.key, item in found)
    return found


def _handled(
    compiled: CompiledRule, state: State, covering: tuple[CompiledException, ...]
) -> Answers:
    if not covering:
        return compiled.handle(state)
    # exceptions skip the rule; those with podSecurity only add exclusions (row X-05)
    if not all(item.pod_security for item in covering):
        return _skipped(covering)
    exclusions = tuple(block for item in covering for block in item.pod_security)
    answers = compiled.handle(state.excluding(exclusions))
    excused = any(a.outcome.status is Status.SKIP and not a.outcome.message for a in answers)
    return _skipped(covering) if excused else answers


def _skipped(covering: tuple[CompiledException, ...]) -> Answers:
    keys = ", ".join(item.key for item in covering)
    return answered(Status.SKIP, f"rule is skipped due to policy exceptions {keys}")


def _results(
    compiled: CompiledRule,
    state: State,
    answers: Answers,
    properties: Mapping[str, str] = NOTHING,
    exceptions: tuple[str, ...] = (),
) -> tuple[RuleResult, ...]:
    if len(answers) == 1:
        return (_result(compiled, state, answers[0], properties, exceptions),)
    return tuple(_result(compiled, state, answer, properties, exceptions) for answer in answers)


def _result(
    compiled: CompiledRule,
    state: State,
    answer: RuleAnswer,
    properties: Mapping[str, str],
    exceptions: tuple[str, ...],
) -> RuleResult:
    if state.trace is not None:
        outcome = answer.outcome
        state.trace.add("result", outcome.message, None, outcome.status.value)
    return finished(
        compiled.policy,
        compiled.rule.name,
        compiled.type,
        answer,
        compiled.enforces(state.review),
        properties,
        exceptions,
    )


def finished(
    policy: Policy,
    rule: str,
    kind: RuleType,
    answer: RuleAnswer,
    enforce: bool,
    properties: Mapping[str, str] = NOTHING,
    exceptions: tuple[str, ...] = (),
) -> RuleResult:
    """Return the result of an answer: with what is known of its rule put on it."""
    outcome: Outcome = answer.outcome
    # by position, in the order of the fields: names cost more than all the rest
    return RuleResult(
        policy.key,
        answer.rule or rule,
        kind,
        outcome.status,
        outcome.message,
        outcome.path,
        enforce,
        {**properties, **outcome.properties} if properties else outcome.properties,
        exceptions or answer.exceptions,
        answer.patched,
        answer.targets,
        answer.generated,
        answer.forgiven,
        answer.images,
        policy.kind,
    )


# Whether a failing rule blocks: the first of five places that says so decides (row A-15).


def compile_action(policy: Policy, rule: Rule) -> Enforces:
    """Compile the decision whether a failure of `rule` blocks the request under review."""
    validate = rule.validate or {}
    overrides = action_overrides(validate.get("failureActionOverrides"))
    own = str(validate.get("failureAction") or "") or _image_action(rule)
    if own:
        return _decide(overrides, own)
    return _decide(overrides + policy.failure_action_overrides, policy.failure_action)


def _image_action(rule: Rule) -> str:
    """Return the action of verifyImages entries: Enforce when any of them says so."""
    actions = [
        str(entry["failureAction"]) for entry in rule.verify_images if entry.get("failureAction")
    ]
    return next((action for action in actions if _blocks(action)), actions[0] if actions else "")


def _blocks(action: str) -> bool:
    return action.lower() == "enforce"


def _decide(overrides: tuple[ActionOverride, ...], default: str) -> Enforces:
    blocks = _blocks(default)
    if not overrides:
        return always if blocks else never
    tests = [(_applies(override), _blocks(override.action)) for override in overrides]

    def enforces(review: Review) -> bool:
        return next((action for applies, action in tests if applies(review)), blocks)

    return enforces


def _applies(override: ActionOverride) -> Enforces:
    selector = override.namespace_selector
    selects = always if selector is None else compile_selector(selector)
    is_named = some([wildcard.compiled(pattern) for pattern in override.namespaces])
    if not override.namespaces:
        is_named = never if selector is None else always
    return lambda review: is_named(review.namespace) and selects(review.namespace_labels)
