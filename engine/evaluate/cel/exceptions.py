"""Exceptions of policies.kyverno.io: which cover a policy for one review, and what the others allow it to read (X-20).

An exception without `images` and `allowedValues` takes an object out of a policy; one with them only lends its lists to
the policy's expressions, as `exceptions.allowedImages` and `exceptions.allowedValues`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.evaluate.state import Answers, RuleAnswer
from engine.exceptions import NEVER_VALID, expires_at
from engine.lang import rfc3339
from engine.model import Outcome, Policy, Status
from engine.record import record

from .bindings import NAMES, Bindings
from .expressions import Named, compile_named, unmet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from engine.model.policy import CelException


_PRIORITY: Final = "polex.kyverno.io/priority"


@record
class CompiledCelException:
    """An exception ready to be asked; from `ends` on it covers nothing."""

    exception: CelException
    conditions: tuple[Named, ...]
    ends: datetime | None

    @property
    def key(self) -> str:
        """`namespace/name` of the exception."""
        return self.exception.key

    @property
    def lends(self) -> bool:
        """Whether it only lends its lists to the policy."""
        return bool(self.exception.images or self.exception.allowed_values)

    def covers(self, bindings: Bindings) -> bool:
        """Tell whether it covers the object at hand now; conditions that cannot be evaluated are not met."""
        inputs = bindings.inputs
        if self.ends is not None and inputs.now >= self.ends:
            return False
        if self.exception.identity in inputs.disregarded:
            return False
        try:
            return unmet(self.conditions, bindings) is None
        except EvaluationError:
            return False


def compile_cel_exception(exception: CelException) -> CompiledCelException:
    """Compile an exception; raises PolicyError for a condition that cannot work.

    It ends at the earliest of `spec.expiresAt`, annotation and label; an instant that cannot be read ends it at once.
    """
    may_mix = all("Generating" in kind for _, kind in exception.references)
    written = exception.expires_at
    by_spec = (rfc3339.read(written) or NEVER_VALID) if written else None
    ends = [end for end in (by_spec, expires_at(exception)) if end is not None]
    return CompiledCelException(
        exception,
        compile_named(exception.match_conditions, NAMES, place="matchConditions", may_mix=may_mix),
        min(ends, default=None),
    )


def naming(
    exceptions: Iterable[CompiledCelException], policy: Policy
) -> tuple[CompiledCelException, ...]:
    """Return the exceptions written for a policy: by its name and kind, whatever its namespace (row X-22b)."""
    wanted = (policy.name, policy.kind)
    return tuple(item for item in exceptions if wanted in item.exception.references)


def covering(
    exceptions: Sequence[CompiledCelException], bindings: Bindings
) -> tuple[CompiledCelException, ...]:
    """Return the exceptions that take the object out of the policy; the lists of the others become `exceptions`."""
    found = tuple(item for item in exceptions if item.covers(bindings))
    if bindings.trace is not None:
        for item in exceptions:
            bindings.trace.add("exception", item.key, item in found)
    lending = [item.exception for item in found if item.lends]
    bindings["exceptions"] = lent(lending)
    return tuple(item for item in found if not item.lends)


def lent(exceptions: Iterable[CelException]) -> dict[str, Any]:
    """Return what expressions read as `exceptions`."""
    listed = tuple(exceptions)
    return {
        "allowedImages": [image for item in listed for image in item.images],
        "allowedValues": [value for item in listed for value in item.allowed_values],
    }


def excepted(found: Sequence[CompiledCelException]) -> Answers:
    """Return the answer for an object that exceptions take out of a policy: a skip, or a pass where the first asks for that.

    The first is that of the highest `polex.kyverno.io/priority` above zero.
    """
    chosen = max(found, key=_priority)
    status = Status.PASS if chosen.exception.report_result == "pass" else Status.SKIP
    verb = "passed" if status is Status.PASS else "skipped"
    keys = tuple(item.key for item in found)
    outcome = Outcome(status, f"rule is {verb} due to policy exception: {', '.join(keys)}")
    return (RuleAnswer(outcome, exceptions=keys, rule="exception"),)


def _priority(item: CompiledCelException) -> int:
    text = item.exception.labels.get(_PRIORITY, "")
    return int(text) if text.isascii() and text.isdigit() else 0
