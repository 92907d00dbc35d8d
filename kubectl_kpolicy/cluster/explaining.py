"""Why policies decide as they do about one object: policy, rule, step, as a tree of reasons.

With the object at hand the engine itself is asked, with its trace; without it (a recording) the results that reports hold
stand for it. Exceptions that name a rule are part of the tree, whether they cover the object or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EngineError
from engine.record import record

from .cache import items, word
from .exceptions import ends_at, rule_texts
from .violations import all_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from engine.evaluate import Step, Trace
    from engine.model import Object, RuleResult

    from .cache import ClusterCache
    from .rows import Row

_LONGEST = 200


@record
class Reason:
    """One node: `state` is a word with a mark (empty: none), `value` what was seen, `parts` what stands below."""

    text: str
    state: str = ""
    value: str = ""
    parts: tuple[Reason, ...] = ()


def explain(world: ClusterCache, namespace: str, resource: str, now: datetime, obj: Object | None = None) -> list[Reason]:  # fmt: skip
    """Return the reasons for one object, one for each policy that speaks of it."""
    if obj is not None:
        return _by_engine(world, obj, now)
    rows = [
        row
        for row in all_rows(world)
        if row.text("namespace") == namespace
        and row.text("resource").lower().endswith(resource.lower())
    ]
    return _by_reports(world, rows, now)


def _by_reports(world: ClusterCache, rows: Sequence[Row], now: datetime) -> list[Reason]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.text("policy"), []).append(row)
    found = []
    for policy, results in groups.items():
        parts = tuple(
            Reason(row.text("rule"), row.text("result"), parts=(
                Reason(row.text("message") or "no message"), *_exceptions(world, policy, row.text("rule"), now)))
            for row in results
        )  # fmt: skip
        worst = next((part.state for part in parts if part.state in ("fail", "error", "warn")), parts[0].state)  # fmt: skip
        found.append(Reason(policy, worst, parts=parts))
    return sorted(found, key=lambda one: one.state not in ("fail", "error", "warn"))


def _exceptions(world: ClusterCache, policy: str, rule: str, now: datetime) -> Iterator[Reason]:
    for obj in world.objects("exceptions"):
        named = [word(one, "policyName") for one in items(obj, "spec", "exceptions")]
        if policy not in named:
            continue
        ends = ends_at(obj)
        state = "expired" if ends is not None and now >= ends else "active"
        names = ", ".join(rule_texts(obj))
        place = f"{word(obj, 'metadata', 'namespace')}/{word(obj, 'metadata', 'name')}"
        hit = "names" if any(text.endswith((f"/{rule}", "/*")) for text in rule_texts(obj)) else "does not name"  # fmt: skip
        yield Reason(f"exception {place} {hit} this rule ({names})", state)


def _by_engine(world: ClusterCache, obj: Object, now: datetime) -> list[Reason]:
    """Ask the engine, with its steps; a policy that it cannot read is a reason as well."""
    from engine.evaluate import Inputs, PolicySet, evaluate
    from engine.model import review_of
    from engine.parse import parse_exception, parse_policy

    found, policies, exceptions = [], [], []
    for document in (*world.objects("clusterpolicies"), *world.objects("policies")):
        try:
            policies.append(parse_policy(document, strict=False))
        except EngineError as error:
            found.append(Reason(word(document, "metadata", "name"), "error", error.message))
    for document in world.objects("exceptions"):
        try:
            exceptions.append(parse_exception(document, strict=False))
        except EngineError as error:
            found.append(Reason(word(document, "metadata", "name"), "error", error.message))
    policy_set = PolicySet.compile(policies, exceptions)
    answer = evaluate(policy_set, review_of(obj), Inputs(now=now), trace=True)
    results = {(one.policy, one.rule): one for one in answer.results}
    return found + _traced(answer.traces, results)


def _traced(traces: Iterable[Trace], results: Mapping[tuple[str, str], RuleResult]) -> list[Reason]:
    groups: dict[str, list[Reason]] = {}
    for trace in traces:
        result = results.get((trace.policy, trace.rule))
        if result is None and not any(step.kind != "match" for step in trace.steps):
            continue
        state = str(getattr(result, "status", "")) or "skip"
        # The last step says once more what the rule's own line and message say.
        steps = tuple(_step(step) for step in trace.steps if step.kind != "result")
        message = str(getattr(result, "message", ""))
        last = (Reason(message),) if message else ()
        groups.setdefault(trace.policy, []).append(Reason(trace.rule, state, parts=(*steps, *last)))
    found = []
    for policy, rules in groups.items():
        worst = next((one.state for one in rules if one.state in ("fail", "error", "warn")), rules[0].state)  # fmt: skip
        found.append(Reason(policy, worst, parts=tuple(rules)))
    return sorted(found, key=lambda one: one.state not in ("fail", "error", "warn"))


def _step(step: Step) -> Reason:
    from engine.lang.gotext import compact_json

    state = "" if step.holds is None else "yes" if step.holds else "no"
    value = compact_json(step.value)[:_LONGEST] if step.value is not None else ""
    return Reason(f"{step.kind} {step.text}", state, value)
