"""One object before the policies of the background scan: results, report rows, and Events about what is new.

Mutation is asked separately, because a scan changes nothing and checks judge objects as they are. What a mutation would leave
as it is says nothing; what it reported earlier stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from controllers.kube.kinds import object_reference
from controllers.loops.announcing import announce
from controllers.runtime.evaluating import evaluate_with
from controllers.runtime.figures import count_scanned
from controllers.store import events
from controllers.store.cel_policies import is_of_cel
from controllers.store.policies import match_conditions
from controllers.store.reports import NOTHING_TO_CHANGE, Row, rows_of, source_of
from engine.errors import EngineError
from engine.evaluate import CompiledPolicy, Inputs, PolicySet
from engine.evaluate.cel.bindings import NAMES, Bindings
from engine.evaluate.cel.expressions import compile_named, unmet
from engine.evaluate.state import ANSWER_NAMES
from engine.model import Json, Object, Policy, Review, RuleResult, RuleType, Status
from engine.model.kinds import BY_NAME
from engine.native import MUTATING
from engine.record import replace

from .writer import InForce, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from controllers.loops.context import LoopContext
    from controllers.runtime.policy_cache import Snapshot

    from .sending import Reports

_CHECKS = (RuleType.IMAGE_VERIFY, RuleType.VALIDATION)
_CHANGES = (RuleType.MUTATION,)
_NOT_APPLIED = "mutation is not applied"
_APPLIED = "mutation is successfully applied"


class Judges:
    """Some policies that objects are judged by, with what is the same for each object."""

    def __init__(self, policies: Iterable[CompiledPolicy]) -> None:
        self.set = PolicySet(tuple(policies))
        self.policies = {one.policy.identity: one.policy for one in self.set.policies}
        self.rules = _rules(self.set.policies)
        self.has_conditions = any(map(_conditions, self.policies.values()))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What some policies say of an object, and the rows of its report that say so."""

    judges: Judges
    review: Review
    results: Sequence[RuleResult]
    rows: Sequence[Row]


def changed_between(
    before: Mapping[str, CompiledPolicy], now: Mapping[str, CompiledPolicy]
) -> list[CompiledPolicy]:
    """Return the policies that an object has to be judged by again.

    Those that verify for one another what an object holds are judged together: one that changes or goes changes what the
    others say.
    """
    keys = {key for key, one in now.items() if before.get(key) is not one}
    touched = [*(now[key] for key in keys), *(before[key] for key in before.keys() - now.keys())]
    if any(map(_shares_evidence, touched)):
        keys |= {key for key, one in now.items() if _shares_evidence(one)}
    return [one for key, one in now.items() if key in keys]


def _shares_evidence(compiled: CompiledPolicy) -> bool:
    kind = BY_NAME.get(compiled.policy.kind)
    return kind is not None and kind.family.shares_evidence


async def judge(context: LoopContext, obj: Object, judges: Judges) -> Judgement:
    """Return what some policies say of an object; raises EngineError."""
    review = await context.review(obj)
    inputs = context.inputs(f"scan/{obj['metadata'].get('uid')}")
    results: list[RuleResult] = []
    asked = _asked(judges, review, inputs)
    for types in (_CHECKS, _CHANGES):
        found = await evaluate_with(context.resolver, asked, review, inputs, types=types)
        results += [_as_stored(one, obj) for one in found.results if not _is_passed_over(one)]
    count_scanned(context.metrics, review, results)
    return Judgement(judges, review, results, rows_of(results, judges.policies, inputs.now))


async def tell(
    context: LoopContext,
    obj: Object,
    said: Judgement,
    known: InForce,
    reports: Reports,
    *,
    is_new: bool = False,
) -> None:
    """Bring the report of an object up to date, and tell of what is new in it; raises EngineError.

    `known` are the rules that reports may speak of. Of an object that `is_new` there is no report to read first.
    """
    judged = said.judges.rules - _unchanged(said.results)
    new = await write_rows(reports, obj, said.rows, judged=judged, known=known, is_new=is_new)
    announce(context, _notes(context, said.review, said.results, said.judges.policies, new))


def _asked(judges: Judges, review: Review, inputs: Inputs) -> PolicySet:
    """Return the policies whose match conditions, which the API server tests of requests, hold for an object (row W-03)."""
    policies = judges.set
    if not judges.has_conditions:
        return policies
    kept = tuple(one for one in policies.policies if _conditions_hold(one.policy, review, inputs))
    return policies if len(kept) == len(policies.policies) else PolicySet(kept)


def _conditions_hold(policy: Policy, review: Review, inputs: Inputs) -> bool:
    """Tell whether match conditions of a classic policy hold; what they ask of a request, which there is none of, they do not."""
    conditions = _conditions(policy)
    if not conditions:
        return True
    try:
        named = compile_named(conditions, NAMES, place="matchConditions")
        return unmet(named, Bindings(review, inputs, {})) is None
    except EngineError:
        return False


def _conditions(policy: Policy) -> Sequence[Mapping[str, Json]]:
    return () if is_of_cel(policy) else match_conditions(policy)


def is_all_scanned(snapshot: Snapshot) -> bool:
    """Tell whether nothing but the scan has rows for reports; what admission alone sees may come before it."""
    return all(
        compiled.policy.background
        and all(rule.type is not RuleType.MUTATION for rule in compiled.rules)
        for compiled in snapshot.judged.values()
    )


def _is_passed_over(result: RuleResult) -> bool:
    """Tell whether match conditions left the object out, which upstream's scans do not report of such policies (row CV-06)."""
    return (
        result.status is Status.SKIP
        and not result.exceptions
        and result.is_of_cel
        and result.type is RuleType.VALIDATION
    )


def _as_stored(result: RuleResult, obj: Object) -> RuleResult:
    """Return what a result says of an object that is there: a policy that would still change it was not applied to it."""
    if result.policy_kind == MUTATING and result.status is Status.PASS:
        if result.patched is None or result.patched == obj:
            return replace(result, message=_APPLIED, patched=None)
        return replace(result, status=Status.FAIL, message=_NOT_APPLIED, patched=None)
    if result.type is RuleType.MUTATION and result.is_of_cel and result.patched is not None:
        return replace(result, status=Status.FAIL, message=_NOT_APPLIED, patched=None)
    return result


def _unchanged(results: Iterable[RuleResult]) -> frozenset[tuple[str, str]]:
    """Return the rules whose earlier rows stay true."""
    return frozenset(
        (one.identity, one.rule) for one in results if one.message == NOTHING_TO_CHANGE
    )


def _rules(policies: Iterable[CompiledPolicy]) -> frozenset[tuple[str, str]]:
    """Return the rules whose earlier rows are out of date once they were asked."""
    return frozenset(
        (one.policy.identity, name)
        for one in policies
        for rule in one.rules
        for name in (rule.rule.name, *(ANSWER_NAMES if is_of_cel(one.policy) else ()))
    )


def _notes(
    context: LoopContext,
    review: Review,
    results: Iterable[RuleResult],
    policies: Mapping[str, Policy],
    new: list[Row],
) -> Iterator[events.Note]:
    """Yield Events about results that a report did not hold before (rows E-03 to E-05)."""
    said = {(row["source"], row["policy"], row.get("rule", "")) for row in new}
    exceptions = context.snapshot.exceptions_by_key
    about = object_reference(review.target)
    for result in results:
        policy = policies.get(result.identity)
        if policy is None or (source_of(policy), result.policy, result.rule) not in said:
            continue
        if result.status in (Status.FAIL, Status.ERROR):
            yield events.violation(policy, review, result, blocked=False, source=events.SCAN)
            yield events.violation_on_object(about, policy, result, events.SCAN)
        elif result.status is Status.SKIP and result.exceptions:
            yield from events.excepted(policy, review, result, exceptions, events.SCAN)
        elif result.status is Status.PASS and context.cache.configuration.success_events:
            text = f"{review.kind} {events.place_of(review)}: pass"
            yield events.Note(
                events.about_policy(policy), "PolicyApplied", events.PASSED, text, events.SCAN
            )
