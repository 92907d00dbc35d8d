"""`--explain`: the steps of every rule on an object, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lang.gotext import compact_json

from .names import resource_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.evaluate import Step, Trace
    from engine.model import Object, RuleResult

    from .processor import PolicyAnswer

_MARKS = {True: "yes", False: "no ", None: "   "}
_LONGEST = 300


def explained(
    obj: Object, traces: Iterable[Trace], answers: Sequence[PolicyAnswer], *, whole: bool = False
) -> Iterator[str]:
    """Yield the lines that explain what every rule said about `obj`, and why; `whole` cuts no value."""
    results: dict[tuple[str, str], list[RuleResult]] = {}
    for answer in answers:
        for result in answer.results:
            results.setdefault((result.policy, result.rule), []).append(result)
    yield resource_path(obj)
    for trace in traces:
        yield f"  {trace.policy} / {trace.rule}" if trace.rule else f"  {trace.policy}"
        yield from (f"    {_line(step, whole=whole)}" for step in trace.steps)
        found = results.get((trace.policy, trace.rule), [])
        if not found and trace.steps and trace.steps[0].holds:
            yield "    => no answer"
        for result in found:
            message = f": {result.message}" if result.message else ""
            yield f"    => {result.status}{message}".replace("\n", "\n       ")


def _line(step: Step, *, whole: bool) -> str:
    text = f"{_MARKS[step.holds]} {step.kind:<12} {step.text}"
    if step.kind == "variable" or step.value is not None:
        shown = compact_json(step.value)
        text += f" = {shown if whole or len(shown) <= _LONGEST else shown[:_LONGEST] + '…'}"
    return text.replace("\n", " ").rstrip()
