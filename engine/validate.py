"""Validate rules over patterns: outcomes and their exact texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from engine.model import Json, Outcome, Status

if TYPE_CHECKING:
    from engine.lang.pattern import CompiledPattern, Miss


Message = str | None | Callable[[], str | None]
"""A rule's own message with its variables replaced: empty when it has none, None when one of its variables could not be
resolved (row P-43). As a function it is asked for only when the rule fails."""


def pattern_outcome(
    rule_name: str, message: Message, compiled: CompiledPattern, resource: Json
) -> Outcome:
    """Check one pattern and return the rule's outcome."""
    miss = compiled.check(resource)
    if miss is None:
        return Outcome(Status.PASS, passed(rule_name))
    return miss_outcome(rule_name, message, miss)


def miss_outcome(rule_name: str, message: Message, miss: Miss) -> Outcome:
    """Return the outcome of a rule whose pattern the object missed."""
    if miss.kind == "skip":
        return Outcome(Status.SKIP, miss.message)
    status = Status.FAIL if miss.kind == "fail" else Status.ERROR
    return Outcome(status, _failure(rule_name, message, miss), miss.path)


def any_pattern_outcome(
    rule_name: str, message: Message, compiled: Sequence[CompiledPattern], resource: Json
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
    own = message() if callable(message) else message
    if own is None:
        return Outcome(Status.FAIL, message_unresolved(rule_name, " ".join(failed)), path)
    return Outcome(Status.FAIL, any_failed(own, failed), path)


def _failure(rule_name: str, message: Message, miss: Miss) -> str:
    own = message() if callable(message) else message
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


def denied(rule_name: str, message: str, conditions: str) -> str:
    """Return the text of a deny rule that denies (row P-46): its message and its conditions' joined messages."""
    texts = [text for text in (message, conditions) if text]
    return "; ".join(texts) if texts else f"validation error: rule {rule_name} failed"


def _sentence(message: str) -> str:
    """Return the message with a period, where it has none (row O-09), and a space behind it; empty stays empty."""
    if not message:
        return ""
    return f"{message} " if message.endswith(".") else f"{message}. "
