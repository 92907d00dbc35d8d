"""Rules with `pattern` or `anyPattern`: what a mismatch means for the rule (row A-73)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.model import Outcome, Status

from . import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.lang.pattern import CompiledPattern, Miss
    from engine.model import Json

Message = str | None | Callable[[], str | None]
"""A rule's own message with its variables replaced: empty when it has none, None when one of its variables could not be
resolved (row P-43). As a function it is asked for only when the rule fails."""


def pattern_outcome(
    rule_name: str, message: Message, compiled: CompiledPattern, resource: Json
) -> Outcome:
    """Check one pattern and return the rule's outcome."""
    miss = compiled.check(resource)
    if miss is None:
        return Outcome(Status.PASS, messages.passed(rule_name))
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
            return Outcome(Status.PASS, messages.any_passed(rule_name, index))
        if miss.kind == "skip":
            skipped.append(messages.any_skipped_part(rule_name, index, miss.message))
        else:
            failed.append(messages.any_failed_part(rule_name, index, miss.path, miss.message))
            path = path or miss.path
    if not failed:
        return Outcome(Status.SKIP, " ".join(skipped))
    own = message() if callable(message) else message
    if own is None:
        return Outcome(Status.FAIL, messages.message_unresolved(rule_name, " ".join(failed)), path)
    return Outcome(Status.FAIL, messages.any_failed(own, failed), path)


def _failure(rule_name: str, message: Message, miss: Miss) -> str:
    own = message() if callable(message) else message
    if own is None:
        return messages.message_unresolved(rule_name, miss.message)
    if miss.kind == "error":
        return messages.execution_error(rule_name, own, miss.message)
    return messages.failed_at(rule_name, own, miss.path)
