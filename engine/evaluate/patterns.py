"""Pattern and anyPattern of validate rules, with variables in the pattern and in the rule's message: outcomes and their exact texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from engine.errors import EngineError, EvaluationError, LimitError
from engine.fields import at_path
from engine.lang.pattern import (
    CompiledPattern,
    Miss,
    compile_pattern,
    compile_rendered,
    resolve_references,
)
from engine.lang.variables import Scope, as_text, compile_document
from engine.model import Block, Json, Outcome, Status

from .quick import Passing
from .state import Answers, RuleAnswer, State, answered, errored, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Patterns = Callable[[State], tuple[CompiledPattern, ...]]
    OwnMessage = Callable[[], str | None]
    """A rule's own message with its variables replaced: empty when it has none, None when one of its variables could not be
    resolved (row P-43). It is asked for only when the rule fails."""


def compile_patterns(block: Block, message: Message) -> tuple[Callable[[State], Answers], Passing]:
    """Compile the handler of a rule with `pattern` or `anyPattern`, and what it answers to objects without being asked."""
    if block.get("pattern") is not None:
        answers = (answered(Status.PASS, passed(message.rule)),)
        patterns, ready = _patterns([block["pattern"]])
        missed = _missed(message) if message.is_constant else None
        return _compile_one(patterns, answers[0], message), _passing(ready, answers, missed)
    choices = block.get("anyPattern")
    if not isinstance(choices, list):
        text = "failed to deserialize anyPattern, expected type array"
        return lambda _: answered(Status.ERROR, text), Passing()
    patterns, ready = _patterns(choices)
    every = tuple(
        answered(Status.PASS, any_passed(message.rule, index)) for index in range(len(choices))
    )
    return _compile_any(patterns, message), _passing(ready, every)


def _missed(message: Message) -> Callable[[Miss], Answers]:
    """Return what answers an object that misses the pattern of a rule, whose message is the same for all."""
    return lambda miss: (RuleAnswer(miss_outcome(message.rule, lambda: message.text, miss)),)


def _passing(
    ready: tuple[CompiledPattern, ...],
    answers: tuple[Answers, ...],
    missed: Callable[[Miss], Answers] | None = None,
) -> Passing:
    return Passing(tuple(zip(ready, answers, strict=True)), missed) if ready else Passing()


def _patterns(sources: list[Json]) -> tuple[Patterns, tuple[CompiledPattern, ...]]:
    """Compile patterns ahead; those with variables are compiled for each object, after their variables.

    Returns what gives the patterns for an object, and those that are the same for all objects.
    """
    are_constant = all(compile_document(source).is_constant for source in sources)
    try:
        if are_constant:
            ready = tuple(compile_pattern(source) for source in sources)
            return lambda _: ready, ready
        documents = [compile_document(resolve_references(source)) for source in sources]
    except EngineError as error:
        failure = error

        def fail(_: State) -> tuple[CompiledPattern, ...]:
            # when they are used, as Kyverno's with a bad reference do
            raise failure

        return fail, ()
    return lambda state: tuple(
        compile_rendered(document.render(state.scope)) for document in documents
    ), ()


def _compile_one(
    patterns: Patterns, unmissed: Answers, message: Message
) -> Callable[[State], Answers]:
    def handle(state: State) -> Answers:
        try:
            (pattern,) = patterns(state)
        except EngineError as error:
            return errored("variable substitution failed", error)
        miss = pattern.check(state.resource)
        if miss is None:
            return unmissed
        if state.trace is not None:
            value = at_path(state.resource, miss.path) if miss.path else None
            state.trace.add("pattern", miss.path or "whole", False, value)
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

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for every object."""
        return self._document.is_constant

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
        return joined(own, conditions)

    def _embedded(self, conditions: str, scope: Scope) -> str:
        """Return both texts as one, in which a value that is not a string stands as JSON."""
        if scope.rereads:
            return str(compile_document(joined(self.text, conditions)).render(scope))
        return joined(as_text(self._document.render(scope)), conditions)


def miss_outcome(rule_name: str, message: OwnMessage, miss: Miss) -> Outcome:
    """Return the outcome of a rule whose pattern the object missed."""
    if miss.kind == "skip":
        return Outcome(Status.SKIP, miss.message)
    status = Status.FAIL if miss.kind == "fail" else Status.ERROR
    return Outcome(status, _failure(rule_name, message, miss), miss.path)


def any_pattern_outcome(
    rule_name: str, message: OwnMessage, compiled: Sequence[CompiledPattern], resource: Json
) -> Outcome:
    """Check patterns in order until one passes and return the rule's outcome.

    A pattern that does not apply is left out; when none applies the rule is skipped.
    """
    failed: list[str] = []
    skipped: list[str] = []
    path = ""
    for index, pattern in enumerate(compiled):
        miss = pattern.check(resource)
        if miss is None:
            return Outcome(Status.PASS, any_passed(rule_name, index))
        if miss.kind == "skip":
            skipped.append(any_skipped_part(rule_name, index, miss.message))
        else:
            failed.append(any_failed_part(rule_name, index, miss.path, miss.message))
            path = path or miss.path
    if not failed:
        return Outcome(Status.SKIP, " ".join(skipped))
    own = message()
    if own is None:
        return Outcome(Status.FAIL, message_unresolved(rule_name, " ".join(failed)), path)
    return Outcome(Status.FAIL, any_failed(own, failed), path)


def _failure(rule_name: str, message: OwnMessage, miss: Miss) -> str:
    own = message()
    if own is None:
        return message_unresolved(rule_name, miss.message)
    if miss.kind == "error":
        return execution_error(rule_name, own, miss.message)
    return failed_at(rule_name, own, miss.path)


# Texts of validate rules, to the character (rows P-40 to P-46).
#
# They stand apart from the rules because reports, denials and events are compared and searched by these texts.


def passed(rule_name: str) -> str:
    """Return the text of a rule that passed (row P-45)."""
    return f"validation rule '{rule_name}' passed."


def any_passed(rule_name: str, index: int) -> str:
    """Return the text of an anyPattern rule that passed with the pattern at `index` (row P-44)."""
    return f"validation rule '{rule_name}' anyPattern[{index}] passed."


def failed_at(rule_name: str, message: str, path: str) -> str:
    """Return the text of a failure at a path (rows P-40, P-41); an empty message is none."""
    return f"validation error: {_sentence(message)}rule {rule_name} failed at path {path}"


def execution_error(rule_name: str, message: str, error: str) -> str:
    """Return the text of a failure that has no path (row P-42)."""
    return f"validation error: {_sentence(message)}rule {rule_name} execution error: {error}"


def message_unresolved(rule_name: str, error: str) -> str:
    """Return the text when a variable of the rule's message cannot be resolved (row P-43); `error` is the mismatch."""
    return f"validation error: variables substitution error in rule {rule_name} execution error: {error}"


def any_failed_part(rule_name: str, index: int, path: str, error: str) -> str:
    """Return what one failed pattern of anyPattern adds to the rule's text; without a path its error stands there."""
    if not path:
        return f"rule {rule_name}[{index}] execution error: {error}"
    return f"rule {rule_name}[{index}] failed at path {path}"


def any_skipped_part(rule_name: str, index: int, error: str) -> str:
    """Return what one pattern of anyPattern that does not apply adds when all of them do not."""
    return f"rule {rule_name}[{index}] skipped: {error}"


def any_failed(message: str, parts: Sequence[str]) -> str:
    """Return the text of an anyPattern rule of which no pattern passed (row P-44)."""
    return f"validation error: {_sentence(message)}{' '.join(parts)}"


def _sentence(message: str) -> str:
    """Return the message with a period, where it has none (row O-09), and a space behind it; empty stays empty."""
    if not message:
        return ""
    return f"{message} " if message.endswith(".") else f"{message}. "
