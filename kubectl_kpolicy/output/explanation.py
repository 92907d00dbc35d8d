"""Why policies decided as they did, as a tree of reasons: the same one as lines of a command and on the console's screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codes import without_codes
from engine.model.kinds import is_of_cel
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.evaluate import Step, Trace
    from engine.model import Object, RuleResult

WRONG = ("fail", "error", "warn")
_MARKS = {"yes": "yes", "no": "no "}
_LONGEST = 300


@record
class Reason:
    """One node: `state` is a word with a mark (empty: none), `value` what was seen, `parts` what stands below.

    `kind` says what was looked at: `rule` under its `policy`, `outcome`, or the kind of a step of the engine's trace.
    """

    text: str
    state: str = ""
    value: str = ""
    parts: tuple[Reason, ...] = ()
    kind: str = ""
    policy: str = ""

    @property
    def steps(self) -> tuple[Reason, ...]:
        """What the engine looked at, without what it came to."""
        return tuple(part for part in self.parts if part.kind != "outcome")


def rules_explained(
    obj: Object, traces: Iterable[Trace], results: Iterable[RuleResult]
) -> Iterator[Reason]:
    """Yield a reason for each rule: its steps, then what it came to. One without a result has the state `skip`.

    Codes that the object carries are hidden.
    """
    found: dict[tuple[str, str], list[RuleResult]] = {}
    for result in results:
        found.setdefault(_rule(result.identity, result.rule), []).append(result)
    for trace in traces:
        own = found.get(_rule(trace.policy, trace.rule), [])
        state = str(own[-1].status) if own else "skip"
        said = (Reason(without_codes(one.message, obj), str(one.status), kind="outcome") for one in own)  # fmt: skip
        steps = (_step(one, obj) for one in trace.steps)
        yield Reason(trace.rule, state, parts=(*steps, *said), kind="rule", policy=trace.policy)


def _rule(policy: str, rule: str) -> tuple[str, str]:
    """Return what tells a rule from others; a policy written in CEL is one, whatever its answers are called."""
    return policy, "" if is_of_cel(policy) else rule


def by_policy(rules: Iterable[Reason]) -> list[Reason]:
    """Return the rules that concern the object below their policies; those first where something is wrong."""
    groups: dict[str, list[Reason]] = {}
    for rule in rules:
        if len(rule.steps) < len(rule.parts) or any(step.kind != "match" for step in rule.parts):
            groups.setdefault(rule.policy, []).append(rule)
    return worst_first(
        Reason(policy, worst_of(parts), parts=tuple(parts)) for policy, parts in groups.items()
    )


def worst_of(parts: Iterable[Reason]) -> str:
    """Return the state of the first part where something is wrong, else of the first."""
    states = [part.state for part in parts]
    return next((state for state in states if state in WRONG), states[0] if states else "")


def worst_first(reasons: Iterable[Reason]) -> list[Reason]:
    """Return reasons with those first where something is wrong."""
    return sorted(reasons, key=lambda one: one.state not in WRONG)


def lines(rules: Iterable[Reason], *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of rules for a command; `whole` cuts no value."""
    for rule in rules:
        yield f"  {rule.policy} / {rule.text}" if rule.text else f"  {rule.policy}"
        yield from (f"    {_line(step, whole=whole)}" for step in rule.steps)
        results = rule.parts[len(rule.steps) :]
        if not results and rule.steps and rule.steps[0].state == "yes":
            yield "    => no answer"
        for result in results:
            message = f": {result.text}" if result.text else ""
            yield f"    => {result.state}{message}".replace("\n", "\n       ")


def cut(value: str, most: int = _LONGEST) -> str:
    """Return a value as far as it is shown."""
    return value if len(value) <= most else f"{value[:most]}…"


def _line(step: Reason, *, whole: bool) -> str:
    text = f"{_MARKS.get(step.state, '   ')} {step.kind:<12} {step.text}"
    if step.value:
        text += f" = {step.value if whole else cut(step.value)}"
    return text.replace("\n", " ").rstrip()


def _step(step: Step, obj: Object) -> Reason:
    from engine.lang.gotext import compact_json

    state = "" if step.holds is None else "yes" if step.holds else "no"
    is_seen = step.kind == "variable" or step.value is not None
    value = without_codes(compact_json(step.value), obj) if is_seen else ""
    return Reason(without_codes(step.text, obj), state, value, kind=step.kind)
