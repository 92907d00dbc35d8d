"""Conditions of preconditions, deny rules, exceptions and cleanup policies (rows A-60, A-61, A-95 to A-99).

Three shapes exist: a map with `any` and `all`, a flat list (all must hold), and a list of such maps. Messages of the
conditions that decided are joined as Kyverno joins them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import EvaluationError, PolicyError
from engine.lang.operators import OPERATORS, compile_condition
from engine.lang.variables import Document, Scope, compile_document
from engine.record import record

if TYPE_CHECKING:
    from engine.model import Block, Json

    from .state import Trace


@record
class Verdict:
    """Whether conditions hold, and the messages that say why."""

    holds: bool
    message: str = ""


HOLDS = Verdict(True)
Conditions = Callable[["Scope", "Trace | None"], Verdict]


def compile_conditions(source: Json) -> Conditions:
    """Compile conditions of any shape; nothing at all holds.

    The result raises EvaluationError when a variable in a key or value cannot be resolved.
    """
    if source is None or source == {} or source == []:
        return _always
    if isinstance(source, dict):
        return _compile_block(source)
    if not isinstance(source, list):
        raise PolicyError("conditions must be a map with `any` and `all`, or a list")
    if any(isinstance(item, dict) and ("any" in item or "all" in item) for item in source):
        return _every([_compile_block(item) for item in source])
    return _every([_compile_one(item) for item in source])


def _always(scope: Scope, trace: Trace | None) -> Verdict:  # noqa: ARG001 - the shape of all conditions
    return HOLDS


def _every(parts: list[Conditions]) -> Conditions:
    def check(scope: Scope, trace: Trace | None) -> Verdict:
        messages = []
        for part in parts:
            verdict = part(scope, trace)
            if not verdict.holds:
                return verdict
            if verdict.message:
                messages.append(verdict.message)
        return Verdict(True, ";".join(messages)) if messages else HOLDS

    return check


def _compile_block(block: Block) -> Conditions:
    """Compile `any` and `all`; an `any` that is present but empty never holds."""
    some = block.get("any")
    any_of = None if some is None else [_compile_one(item) for item in some]
    all_of = [_compile_one(item) for item in block.get("all") or ()]

    def check(scope: Scope, trace: Trace | None) -> Verdict:
        passed: list[str] = []
        missed: list[str] = []
        holds = True
        for part in any_of or ():
            verdict = part(scope, trace)
            (passed if verdict.holds else missed).append(verdict.message)
            if verdict.holds:
                break
        else:
            holds = any_of is None
        for part in all_of:
            verdict = part(scope, trace)
            (passed if verdict.holds else missed).append(verdict.message)
            if not verdict.holds:
                holds = False
                break
        texts = passed if holds else missed
        return Verdict(holds, "; ".join(text for text in texts if text))

    return check


def _compile_one(condition: Json) -> Conditions:
    if not isinstance(condition, dict):
        raise PolicyError("a condition must be a map with `key`, `operator` and `value`")
    operator = str(condition.get("operator", ""))
    if operator not in OPERATORS:
        known = f"use one of {', '.join(sorted(OPERATORS))}"
        raise PolicyError(f"condition operator `{operator}` is not known", help=known)
    key = compile_document(condition.get("key"))
    value = compile_document(condition.get("value"))
    message = compile_document(str(condition.get("message") or ""))
    ready = compile_condition(operator, value.source) if value.is_constant else None
    holds = compile_condition(operator)

    def check(scope: Scope, trace: Trace | None) -> Verdict:
        found = _rendered("key", key, scope)
        wanted = _rendered("value", value, scope)
        verdict = holds(found, wanted) if ready is None else ready(found)
        if trace is not None:
            trace.add(
                "condition", f"{key.source} {operator} {value.source}", verdict, [found, wanted]
            )
        return Verdict(verdict, _message(message, scope) if message.source else "")

    return check


def _rendered(part: str, document: Document, scope: Scope) -> Json:
    if document.is_constant:
        return document.source
    try:
        return _as_floats(document.render(scope))
    except EvaluationError as error:
        raise error.reworded(
            f"failed to substitute variables in condition {part}: {error.message}"
        ) from error


def _as_floats(value: Json) -> Json:
    """Return a variable's value with its numbers as JSON decoding leaves them: floats, which compare unlike integers.

    Indexes and results of `compare` are integers of another class and stay what they are (row V-21).
    """
    if type(value) is int:
        return float(value)
    if isinstance(value, list):
        return [_as_floats(item) for item in value]
    if isinstance(value, dict):
        return {key: _as_floats(item) for key, item in value.items()}
    return value


def _message(message: Document, scope: Scope) -> str:
    """Return a condition's message; one whose variables fail stays as it is written (observed)."""
    try:
        return str(message.render(scope))
    except EvaluationError:
        return str(message.source)
