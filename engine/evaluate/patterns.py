"""Pattern and anyPattern of validate rules, with variables in the pattern and in the rule's message."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine import validate
from engine.errors import EngineError, EvaluationError, LimitError
from engine.lang.pattern import (
    CompiledPattern,
    compile_pattern,
    compile_rendered,
    resolve_references,
)
from engine.lang.variables import Scope, as_text, compile_document
from engine.model import Block, Json, Status
from engine.validate import any_pattern_outcome, miss_outcome

from .answers import Answers, RuleAnswer, answered, errored, joined

if TYPE_CHECKING:
    from collections.abc import Callable

    from .quick import Passing
    from .state import State

    Patterns = Callable[[State], tuple[CompiledPattern, ...]]


def compile_patterns(block: Block, message: Message) -> tuple[Callable[[State], Answers], Passing]:
    """Compile the handler of a rule with `pattern` or `anyPattern`, and what it answers to objects that pass."""
    if block.get("pattern") is not None:
        answers = (_passed(validate.passed(message.rule)),)
        patterns, ready = _patterns([block["pattern"]])
        return _compile_one(patterns, answers[0], message), _passing(ready, answers)
    choices = block.get("anyPattern")
    if not isinstance(choices, list):
        text = "failed to deserialize anyPattern, expected type array"
        return lambda _: answered(Status.ERROR, text), ()
    patterns, ready = _patterns(choices)
    texts = (validate.any_passed(message.rule, index) for index in range(len(choices)))
    return _compile_any(patterns, message), _passing(ready, tuple(map(_passed, texts)))


def _passed(text: str) -> Answers:
    return answered(Status.PASS, text)


def _passing(ready: tuple[CompiledPattern, ...], answers: tuple[Answers, ...]) -> Passing:
    return tuple(zip(ready, answers, strict=True)) if ready else ()


def _patterns(sources: list[Json]) -> tuple[Patterns, tuple[CompiledPattern, ...]]:
    """Compile patterns ahead; those with variables are compiled for each object, after their variables.

    Returns what gives the patterns for an object, and those that are the same for all objects.
    """
    if all(compile_document(source).is_constant for source in sources):
        return _ready(sources)
    try:
        documents = [compile_document(resolve_references(source)) for source in sources]
    except EngineError as error:
        return _failing(error), ()
    return lambda state: tuple(
        compile_rendered(document.render(state.scope)) for document in documents
    ), ()


def _ready(sources: list[Json]) -> tuple[Patterns, tuple[CompiledPattern, ...]]:
    try:
        ready = tuple(compile_pattern(source) for source in sources)
    except EngineError as error:
        return _failing(error), ()
    return lambda _: ready, ready


def _failing(error: EngineError) -> Patterns:
    """Return patterns that fail when they are used, as Kyverno's with a bad reference do."""

    def fail(_: State) -> tuple[CompiledPattern, ...]:
        raise error

    return fail


def _compile_one(
    patterns: Patterns, passed: Answers, message: Message
) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        try:
            (pattern,) = patterns(state)
        except EngineError as error:
            return errored("variable substitution failed", error)
        miss = pattern.check(state.resource)
        if miss is None:
            return passed
        if state.trace is not None:
            state.trace.add(
                "pattern", miss.path or "whole", False, _value_at(state.resource, miss.path)
            )
        return (RuleAnswer(miss_outcome(message.rule, partial(_text, message, state), miss)),)

    return handle


def _compile_any(patterns: Patterns, message: Message) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        try:
            ready = patterns(state)
        except EngineError as error:
            return errored("variable substitution failed", error)
        text = partial(_text, message, state)
        return (RuleAnswer(any_pattern_outcome(message.rule, text, ready, state.resource)),)

    return handle


def _value_at(resource: Json, path: str) -> Json:
    """Return what stands at a slash path, None where there is nothing."""
    for part in path.strip("/").split("/"):
        if isinstance(resource, dict):
            resource = resource.get(part)
        elif isinstance(resource, list) and part.isdecimal() and int(part) < len(resource):
            resource = resource[int(part)]
        elif part:
            return None
    return resource


def _text(message: Message, state: State) -> str | None:
    """Return the rendered message, None where a variable in it cannot be resolved (row P-43)."""
    try:
        return message.render(state.scope)
    except LimitError:
        raise
    except EvaluationError:
        return None


# The author's message of a validate rule, rendered only when a rule fails (rows P-40 to P-46, O-01, O-02).

NOT_A_STRING = "the produced message didn't resolve to a string, check your policy definition."


class Message:
    """`validate.message` of one rule; `rule` names the rule in messages."""

    __slots__ = ("_document", "rule", "text")

    def __init__(self, text: Json, rule: str) -> None:
        self.text = str(text or "")
        self.rule = rule
        self._document = compile_document(self.text)

    def render(self, scope: Scope) -> str:
        """Return the message with its variables replaced; raises EvaluationError when one cannot be resolved."""
        value = self._document.render(scope, "")
        return value if isinstance(value, str) else NOT_A_STRING

    def of_denial(self, conditions: str, scope: Scope) -> str:
        """Return the text of a deny rule that holds: own message and those of the conditions.

        Where a variable cannot be resolved only the conditions' messages are left.
        """
        if not self.text and not conditions:
            return f"validation error: rule {self.rule} failed"
        try:
            own = self.render(scope) if self.text else ""
        except EvaluationError:
            return conditions
        if own is NOT_A_STRING and conditions:
            return self._embedded(conditions, scope)
        return joined("; ", own, conditions)

    def _embedded(self, conditions: str, scope: Scope) -> str:
        """Return both texts as one, in which a value that is not a string stands as JSON."""
        if scope.rereads:
            return str(compile_document(joined("; ", self.text, conditions)).render(scope))
        return joined("; ", as_text(self._document.render(scope)), conditions)
