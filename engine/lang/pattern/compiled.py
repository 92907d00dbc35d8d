"""A compiled pattern: the one thing that rules hold on to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .references import resolve_references
from .shape import check_depth
from .tree import compile_element

if TYPE_CHECKING:
    from engine.model import Json

    from .entries import Check
    from .fault import Fault, Miss


class CompiledPattern:
    """A pattern ready to be checked; it holds no state of a check, so one may serve many threads.

    Its closures are made with the first check, because most rules of autogen are never asked. Its references are resolved and
    its depth is bounded before, so that nothing can be wrong with it by then.
    """

    __slots__ = ("_check",)

    _check: Check

    def __init__(self, pattern: Json) -> None:
        def first(resource: Json) -> Fault | None:
            self._check = check = compile_element(pattern)
            return check(resource)

        self._check = first

    def check(self, resource: Json) -> Miss | None:
        """Return None when the resource satisfies the pattern, else what keeps it from that."""
        fault = self._check(resource)
        return None if fault is None else fault.miss()


def compile_pattern(pattern: Json) -> CompiledPattern:
    """Compile a pattern without variables; `$(…)` references are resolved here (row P-30).

    Raises EvaluationError for a reference that leads nowhere (Kyverno's words, to be put after `variable substitution
    failed: `) and LimitError for a pattern nested too deep.
    """
    return CompiledPattern(resolve_references(pattern))


def compile_rendered(pattern: Json) -> CompiledPattern:
    """Compile a pattern whose references were resolved before its variables: what looks like one now came with a value.

    Raises LimitError for a pattern nested too deep.
    """
    check_depth(pattern)
    return CompiledPattern(pattern)
