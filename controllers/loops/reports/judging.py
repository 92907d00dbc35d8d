"""One object before the policies of the background scan: results, report rows, and Events about what is new.

Mutation is asked separately, because a scan changes nothing and checks judge objects as they are. What a mutation would leave
as it is says nothing; what it reported earlier stays true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.loops.announcing import announce
from controllers.runtime.evaluating import evaluate_with
from controllers.runtime.figures import count_scanned
from controllers.store.cel_policies import is_of_cel
from controllers.store.events import (
    PASSED,
    SCAN,
    Note,
    about_object,
    about_policy,
    excepted,
    place_of,
    violation,
    violation_on_object,
)
from controllers.store.policies import match_conditions
from controllers.store.reports import NOTHING_TO_CHANGE, rows_of, source_of
from engine.errors import EngineError
from engine.evaluate import PolicySet
from engine.evaluate.answers import ANSWER_NAMES
from engine.evaluate.cel.bindings import NAMES, Bindings
from engine.evaluate.cel.expressions import compile_named, unmet
from engine.model import RuleType, Status
from engine.native import MUTATING
from engine.record import replace

from .writer import pairs_in_force, write_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from controllers.loops.context import LoopContext
    from controllers.store.reports import Row
    from engine.evaluate import CompiledPolicy, Inputs
    from engine.model import Object, Policy, Review, RuleResult

_CHECKS = (RuleType.IMAGE_VERIFY, RuleType.VALIDATION)
_CHANGES = (RuleType.MUTATION,)
_NOT_APPLIED = "mutation is not applied"
_APPLIED = "mutation is successfully applied"


async def judge(
    context: LoopContext,
    obj: Object,
    policies: PolicySet,
    natives: Mapping[str, CompiledPolicy],
    *,
    is_new: bool = False,
) -> None:
    """Judge an object by some policies and bring its report up to date; raises EngineError.

    `natives` are the native policies that are reported about. Of an object that `is_new` there is no report to read first.
    """
    review = await context.review(obj)
    inputs = context.inputs(f"scan/{obj['metadata'].get('uid')}")
    results: list[RuleResult] = []
    asked = _asked(policies, review, inputs)
    for types in (_CHECKS, _CHANGES):
        found = await evaluate_with(context.resolver, asked, review, inputs, types=types)
        results += [_as_stored(one, obj) for one in found.results if not _is_passed_over(one)]
    count_scanned(context.metrics, review, results)
    judges = {one.policy.identity: one.policy for one in policies.policies}
    rows = rows_of(results, judges, inputs.now)
    new = await write_rows(
        context.client,
        context.options.report_kinds,
        obj,
        rows,
        judged=_judged(policies.policies, results),
        known=pairs_in_force(context.snapshot, natives),
        is_new=is_new,
    )
    announce(context, _notes(context, review, results, judges, new))


def _asked(policies: PolicySet, review: Review, inputs: Inputs) -> PolicySet:
    """Return the policies whose match conditions, which the API server tests of requests, hold for an object (row W-03)."""
    kept = tuple(one for one in policies.policies if _conditions_hold(one.policy, review, inputs))
    return policies if len(kept) == len(policies.policies) else PolicySet(kept)


def _conditions_hold(policy: Policy, review: Review, inputs: Inputs) -> bool:
    """Tell whether match conditions of a classic policy hold; what they ask of a request, which there is none of, they do not."""
    conditions = () if is_of_cel(policy) else match_conditions(policy)
    if not conditions:
        return True
    try:
        named = compile_named(conditions, NAMES, place="matchConditions")
        return unmet(named, Bindings(review, inputs, {})) is None
    except EngineError:
        return False


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


def _judged(
    policies: Iterable[CompiledPolicy], results: Iterable[RuleResult]
) -> frozenset[tuple[str, str]]:
    """Return the rules whose earlier rows are out of date."""
    unchanged = {(one.identity, one.rule) for one in results if one.message == NOTHING_TO_CHANGE}
    asked = {
        (one.policy.identity, name)
        for one in policies
        for rule in one.rules
        for name in (rule.rule.name, *(ANSWER_NAMES if is_of_cel(one.policy) else ()))
    }
    return frozenset(asked - unchanged)


def _notes(
    context: LoopContext,
    review: Review,
    results: Iterable[RuleResult],
    policies: Mapping[str, Policy],
    new: list[Row],
) -> Iterator[Note]:
    """Yield Events about results that a report did not hold before (rows E-03 to E-05)."""
    said = {(row["source"], row["policy"], row.get("rule", "")) for row in new}
    exceptions = context.snapshot.exceptions_by_key
    about = about_object(review.target)
    for result in results:
        policy = policies.get(result.identity)
        if policy is None or (source_of(policy), result.policy, result.rule) not in said:
            continue
        if result.status in (Status.FAIL, Status.ERROR):
            yield violation(policy, review, result, blocked=False, source=SCAN)
            yield violation_on_object(about, policy, result, SCAN)
        elif result.status is Status.SKIP and result.exceptions:
            yield from excepted(policy, review, result, exceptions, SCAN)
        elif result.status is Status.PASS and context.cache.configuration.success_events:
            text = f"{review.kind} {place_of(review)}: pass"
            yield Note(about_policy(policy), "PolicyApplied", PASSED, text, SCAN)
