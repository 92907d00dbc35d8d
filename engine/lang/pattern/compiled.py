"""A compiled pattern: the one thing that rules hold on to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .references import resolve_references
from .tree import compile_element

if TYPE_CHECKING:
    from engine.model import Json

    from .entries import Check
    from .fault import Miss


class CompiledPattern:
    """A pattern ready to be checked; it holds no state of a check, so one may serve many threads."""

    __slots__ = ("_check",)

    def __init__(self, check: Check) -> None:
        self._check = check

    def check(self, resource: Json) -> Miss | None:
        """Return None when the resource satisfies the pattern, else what keeps it from that."""
        fault = self._check(resource)
        return None if fault is None else fault.miss()


def compile_pattern(pattern: Json) -> CompiledPattern:
    """Compile a pattern whose variables are already replaced; `$(…)` references are resolved here (row P-30).

    Raises EvaluationError for a reference that leads nowhere (Kyverno's words, to be put after `variable substitution
    failed: `) and LimitError for a pattern nested too deep.
    """
    return CompiledPattern(compile_element(resolve_references(pattern)))
