"""What a test expected beside what was answered: one row for each result and resource, with two verdicts.

`verdict` is Kyverno's own rule, by which no answer counts as a pass (row K-06). `strict` also asks that there was one where
pass, fail, warn or error is expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.model import Status
from engine.record import record
from kubectl_kpolicy.apply.names import resource_path

if TYPE_CHECKING:
    from engine.model import Object

    from .format import Declared, Expectation

OK, MISS = "ok", "miss"
EXCLUDED, NOT_FOUND = "Excluded", "Not found"


@record
class Row:
    """One line of a test's outcome; `actual` is None where no rule answered."""

    file: str
    result: int
    declared: str
    policy: str
    rule: str
    resource: str
    operation: str
    expected: str
    actual: str | None
    verdict: str
    strict: str
    reason: str
    message: str


@record
class Answered:
    """One rule's answer on one object, with the objects that it left or made."""

    object: Object
    status: str
    message: str
    patched: tuple[Object, ...]
    generated: tuple[Object, ...]


def answered_row(
    file: str, expected: Expectation, declared: Declared, operation: str, found: Answered,
    difference: str,
) -> Row:  # fmt: skip
    """Make the row of an answer; `difference` says in what a patched or generated object is not the expected one.

    An object other than the expected one is an answer `fail`: tests of mutation expect it where they show a wrong object.
    """
    status = str(Status.FAIL) if difference else found.status
    verdict = OK if status == expected.status else MISS
    reason = "Ok"
    if verdict == MISS:
        reason = "Resource diff" if difference else f"Want {expected.status}, got {status}"
    return _row(
        file, expected, declared, resource_path(found.object), operation,
        actual=status, verdict=verdict, strict=verdict, reason=reason,
        message=difference or found.message,
    )  # fmt: skip


def silent_row(
    file: str, expected: Expectation, declared: Declared, operation: str, obj: Object | None
) -> Row:
    """Make the row of a resource that no rule answered for."""
    shown = resource_path(obj) if obj is not None else declared.text
    return _row(
        file, expected, declared, shown, operation,
        actual=None, verdict=OK, strict=OK if expected.status == Status.SKIP else MISS,
        reason=EXCLUDED, message=EXCLUDED,
    )  # fmt: skip


def missing_row(
    file: str, expected: Expectation, declared: Declared, operation: str, reason: str, message: str
) -> Row:
    """Make the row of something that a test names and that is not there: a miss by both rules."""
    return _row(
        file, expected, declared, declared.text, operation,
        actual=None, verdict=MISS, strict=MISS, reason=reason, message=message,
    )  # fmt: skip


def _row(
    file: str, expected: Expectation, declared: Declared, resource: str, operation: str, *,
    actual: str | None, verdict: str, strict: str, reason: str, message: str,
) -> Row:  # fmt: skip
    return Row(
        file=file,
        result=expected.index,
        declared=declared.text,
        policy=expected.policy,
        rule=expected.rule,
        resource=resource,
        operation=operation,
        expected=expected.status,
        actual=actual,
        verdict=verdict,
        strict=strict,
        reason=reason,
        message=message,
    )
