"""Why policies decide as they do about one object: policy, rule, step, as a tree of reasons.

With the object at hand the engine itself is asked, with its trace; without it (a recording) the results that reports hold
stand for it. Exceptions that name a rule are part of the tree, whether they cover the object or not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engine.errors import EngineError
from engine.fields import word
from engine.model.kinds import is_of_cel
from kubectl_kpolicy.output import explanation
from kubectl_kpolicy.output.explanation import Reason, by_policy, rules_explained

from . import celkinds
from .exception_audit import every_exception
from .exceptions import ends_at, policies_of, rule_texts
from .violations import rows_by_object

if TYPE_CHECKING:
    from datetime import datetime

    from engine.evaluate import Answer, Evaluation, Lookup
    from engine.model import Object
    from kubectl_kpolicy.output.rows import Row

    from .cache import ClusterCache

_POLICIES = ("clusterpolicies", "policies")
Resolve = Callable[[frozenset["Lookup"]], "Awaitable[Mapping[Lookup, Answer]]"]


def explained_by_reports(world: ClusterCache, namespace: str, resource: str, now: datetime) -> list[Reason]:  # fmt: skip
    """Return the reasons for one object as reports tell them, one for each policy that speaks of it."""
    return _by_reports(world, rows_by_object(world).get((namespace, resource), ()), now)


def _by_reports(world: ClusterCache, rows: Sequence[Row], now: datetime) -> list[Reason]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(celkinds.identity_of(row), []).append(row)
    found = []
    for policy, results in groups.items():
        parts = tuple(
            Reason(row.text("rule"), row.text("result"), parts=(
                Reason(row.text("message") or "no message"), *_exceptions(world, policy, row.text("rule"), now)))
            for row in results
        )  # fmt: skip
        found.append(Reason(policy, explanation.worst_of(parts), parts=parts))
    return explanation.worst_first(found)


def _exceptions(world: ClusterCache, policy: str, rule: str, now: datetime) -> Iterator[Reason]:
    for obj in every_exception(world):
        if policy not in policies_of(obj):
            continue
        ends = ends_at(obj)
        state = "expired" if ends is not None and now >= ends else "active"
        names = ", ".join(rule_texts(obj))
        place = f"{word(obj, 'metadata', 'namespace')}/{word(obj, 'metadata', 'name')}"
        hit = "names" if any(_is_named(text, rule) for text in rule_texts(obj)) else "does not name"
        yield Reason(f"exception {place} {hit} this rule ({names})", state)


def _is_named(text: str, rule: str) -> bool:
    """Tell whether what an exception names is a rule; a policy written in CEL is named as a whole."""
    return is_of_cel(text) or text.endswith((f"/{rule}", "/*"))


async def explained_by_engine(world: ClusterCache, obj: Object, now: datetime, resolve: Resolve) -> list[Reason]:  # fmt: skip
    """Ask the engine, with its steps, and `resolve` for what rules have to know; a policy that cannot be read is a reason as well.

    Raises LimitError for rules that never stop asking.
    """
    from engine.evaluate import Inputs, PolicySet, evaluate
    from engine.evaluate.asking import conclude_later, until_answered
    from engine.model import review_of
    from engine.model.kinds import kind_of, loaded
    from engine.parse import parse_exception
    from engine.parse.celpolicies import parse_cel_exception

    policies: list[Any] = []
    exceptions: list[Any] = []
    found: list[Reason] = []
    for name in (*_POLICIES, celkinds.POLICIES):
        for document in world.objects(name):
            kind = kind_of(document)
            if kind is not None and kind.is_evaluated and not kind.family.is_timed:
                _read(document, loaded(kind.family.parser), policies, found)
    for document in world.objects("exceptions"):
        _read(document, parse_exception, exceptions, found)
    for document in world.objects(celkinds.EXCEPTIONS):
        _read(document, parse_cel_exception, exceptions, found)
    policy_set, review = PolicySet.compile(policies, exceptions), review_of(obj)
    found += [Reason(one.policy.name, "error", one.error.message) for one in policy_set.problems]

    def ask(answers: Mapping[Lookup, Answer]) -> Evaluation:
        return evaluate(policy_set, review, Inputs(now=now, answers=answers), trace=True)

    answer = await conclude_later(until_answered(ask, {}), resolve)
    return found + by_policy(rules_explained(obj, answer.traces, answer.results))


def _read(document: Object, parse: Callable[..., Any], taken: list[Any], found: list[Reason]) -> None:  # fmt: skip
    """Add what a document says to `taken`, or to the reasons why it cannot be read."""
    try:
        taken.append(parse(document, strict=False))
    except EngineError as error:
        found.append(Reason(word(document, "metadata", "name"), "error", error.message))
