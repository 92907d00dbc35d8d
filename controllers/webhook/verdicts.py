"""From the results of rules to what the API server is told: denial, warnings, patch (rows W-12b, W-13, W-14).

Pure: results in, ruling out. Which results may block is decided here and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING

from controllers.runtime.webhook_routes import FAIL, WebhookRoute
from engine.lang.yaml.write import GO
from engine.model import Json, Object, Review, RuleResult, RuleType, Status
from engine.model.result import PINNING
from engine.mutate.operations import diff
from engine.reach import GUARDED_GROUPS, Effect, out_of_reach, target_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from engine.evaluate import CompiledPolicy, PolicySet

_FINE = frozenset({Status.PASS, Status.SKIP})
_statuses, _rules = partial(map, attrgetter("status")), partial(map, attrgetter("rule"))
_SHORT = 512


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is answered: the text of a denial (empty: allowed), a JSON patch, warnings.

    `lead` and `tail` stand before and after the denial in the answer and nowhere else: they may hold a code, which is for
    nobody but who asks. `audit` is what the API server writes into its own audit log, beside who asked and whom they
    impersonated: a witness that we cannot change. `refusing` are the results that a validating webhook's denial stands on.
    """

    denial: str = ""
    operations: Sequence[Mapping[str, Json]] = ()
    warnings: tuple[str, ...] = ()
    lead: str = field(default="", repr=False)
    tail: str = ""
    audit: Mapping[str, str] = field(default_factory=dict)
    refusing: Sequence[RuleResult] = field(default=(), repr=False)


NOTHING_WRONG = Ruling()


def rule_on_validation(
    route: WebhookRoute, review: Review, results: Sequence[RuleResult]
) -> Ruling:
    """Rule on the results of a validating webhook.

    A rule that enforces and fails blocks; so does an error in a policy of which some rule enforces, where the route fails.
    """
    if _FINE.issuperset(_statuses(results)):
        return NOTHING_WRONG
    wrong = [result for result in results if result.status not in _FINE]
    enforcing = _enforcing(route.blocking, review, wrong)
    refusing = [one for one in wrong if _blocks(one, route.failure_policy, enforcing)]
    if refusing:
        denial = _denial(review, wrong, refusing, enforcing)
        return Ruling(denial=denial, refusing=refusing)
    return Ruling(warnings=_warnings(route.blocking, wrong))


def rule_on_mutation(
    route: WebhookRoute, review: Review, results: Sequence[RuleResult], patched: Object
) -> Ruling:
    """Rule on the results of a mutating webhook: image verification may block, mutation may fail."""
    if _FINE.issuperset(_statuses(results)):
        operations = _operations(review, patched)
        return Ruling(operations=operations) if operations else NOTHING_WRONG
    broken = [result for result in results if _stops(result, route.failure_policy)]
    if unpinned := [result for result in broken if _is_pinning(result)]:
        return Ruling(denial=refused_message(unpinned))
    if any(result.type is RuleType.MUTATION for result in broken):
        return Ruling(
            denial=mutation_error(review, [r for r in broken if r.type is RuleType.MUTATION])
        )
    if broken:
        policies = frozenset(result.identity for result in broken)
        return Ruling(denial=blocked_message(review, failures_of(results, policies)))
    return Ruling(
        operations=_operations(review, patched), warnings=_warnings(route.mutate, results)
    )


def _denial(
    review: Review,
    wrong: Sequence[RuleResult],
    refusing: Sequence[RuleResult],
    enforcing: frozenset[str],
) -> str:
    """Return the text of a denial by the results that are neither pass nor skip, of which some refuse."""
    failures = failures_of([one for one in wrong if not one.is_of_cel], enforcing)
    parts = [blocked_message(review, failures)] if failures else []
    said = refused_message(one for one in refusing if one.is_of_cel)
    return "; ".join([*parts, said] if said else parts)


def blocking(
    route: WebhookRoute, review: Review, results: Sequence[RuleResult]
) -> list[RuleResult]:
    """Return the results of a validating webhook that refuse the request."""
    wrong = [one for one in results if one.status not in _FINE]
    enforcing = _enforcing(route.blocking, review, wrong)
    return [one for one in wrong if _blocks(one, route.failure_policy, enforcing)]


def _blocks(result: RuleResult, failure_policy: str, enforcing: frozenset[str]) -> bool:
    if result.status is Status.FAIL:
        return result.enforce
    return result.status is Status.ERROR and failure_policy == FAIL and result.identity in enforcing


def _stops(result: RuleResult, failure_policy: str) -> bool:
    """Tell whether a result of the mutating webhook refuses the request.

    A digest that could not be written does where its policy denies, whatever the failure policy (row IP-20).
    """
    if result.status is Status.ERROR:
        return result.enforce if _is_pinning(result) else failure_policy == FAIL
    return result.status is Status.FAIL and result.enforce


def reported(results: Sequence[RuleResult]) -> Sequence[RuleResult]:
    """Return the results of a mutating webhook that anybody is told of: that digests were written, the object says itself."""
    if PINNING not in _rules(results):
        return results
    return [one for one in results if not (_is_pinning(one) and one.status in _FINE)]


def _is_pinning(result: RuleResult) -> bool:
    return result.rule == PINNING and result.is_of_cel


def _enforcing(
    policies: PolicySet, review: Review, results: Sequence[RuleResult]
) -> frozenset[str]:
    """Return the keys of policies that say something and of which some rule enforces for this object."""
    found = set()
    for compiled in _saying(policies, results):
        for rule in compiled.rules:
            if rule.enforces(review):
                found.add(compiled.policy.identity)
                break
    return frozenset(found)


def _warnings(policies: PolicySet, results: Sequence[RuleResult]) -> tuple[str, ...]:
    wanted = {one.policy.identity for one in _saying(policies, results) if one.policy.emit_warning}
    return tuple(warnings_of(result for result in results if result.identity in wanted))


def _saying(policies: PolicySet, results: Sequence[RuleResult]) -> Iterator[CompiledPolicy]:
    """Yield the policies whose results are neither pass nor skip: nothing is refused or said for any other."""
    for identity in {result.identity for result in results if result.status not in _FINE}:
        compiled = policies.find(identity)
        if compiled is not None:
            yield compiled


def _operations(review: Review, patched: Object) -> Sequence[Mapping[str, Json]]:
    """Return the patch; of an object that is out of every policy's reach none, whatever rules made of it."""
    if review.object is None or patched is review.object:
        return ()
    if review.group in GUARDED_GROUPS:
        states = [one for one in (review.old_object, review.object, patched) if one is not None]
        if out_of_reach(Effect.MUTATE, target_of(*states)):
            return ()
    return diff(review.object, patched)


# The text of a denial and the warnings beside an answer, as upstream words them (rows P-50 and A-16).
#
# People's scripts and tests look for these texts; every byte counts.


def refused_message(results: Iterable[RuleResult]) -> str:
    """Return the text of a denial by policies written in CEL, as upstream has it for them."""
    return "; ".join(_said(result) for result in results)


def _said(result: RuleResult) -> str:
    how = "error" if result.status is Status.ERROR else "failed"
    return f"Policy {result.policy.rpartition('/')[2]} {how}: {result.message}"


def blocked_message(review: Review, failures: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of a denial: which object, and by policy and rule why."""
    name = str(review.metadata.get("name") or "")
    lines = [
        "",
        "",
        f"resource {review.kind}/{review.namespace}/{name} was blocked due to the following policies ",
        "",
    ]
    for policy in sorted(failures):
        lines.append(f"{_key(policy)}:")
        rules = failures[policy]
        lines += [f"  {_key(rule)}: {_value(rules[rule])}" for rule in sorted(rules)]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=4096)
def _key(name: str) -> str:
    """Return the name of a policy or rule as a key of the text; the same few are written again and again."""
    return GO.key(name)


def _value(message: str) -> str:
    """Return what a rule says as a value of the text; what most say is short, and said again and again."""
    return _short_value(message) if len(message) <= _SHORT else GO.text(message, 4)


@lru_cache(maxsize=1024)
def _short_value(message: str) -> str:
    return GO.text(message, 4)


def failures_of(
    results: Iterable[RuleResult], policies: frozenset[str]
) -> dict[str, dict[str, str]]:
    """Return messages by policy and rule of everything that is neither pass nor skip in some policies (by key).

    Policies are shown by name. Where a Policy and a ClusterPolicy share one, the rules of both are listed under it.
    """
    found: dict[str, dict[str, str]] = {}
    for result in results:
        if result.identity in policies and result.status not in _FINE:
            name = result.policy.rpartition("/")[2]
            found.setdefault(name, {})[result.rule] = result.message
    return found


def warnings_of(results: Iterable[RuleResult]) -> list[str]:
    """Return one admission warning for each result that is neither pass nor skip."""
    return [
        _said(result)
        if result.is_of_cel
        else f"policy {result.policy.rpartition('/')[2]}.{result.rule}: {result.message}"
        for result in results
        if result.status not in _FINE
    ]


def mutation_error(review: Review, results: Iterable[RuleResult]) -> str:
    """Return what is said when a mutate rule failed and its policy must not be passed over (row W-13)."""
    failed = [result for result in results if result.status not in _FINE]
    if of_cel := [one for one in failed if one.is_of_cel]:
        errors = " ".join(
            f"Policy {one.policy.rpartition('/')[2]}: {one.message}" for one in of_cel
        )
        return (
            f"Resource: {review.namespace}/{review.name}, Kind: {review.kind}, Errors: [{errors}]"
        )
    policy = failed[0].policy.rpartition("/")[2]
    rules = " ".join(
        f"{result.rule}: {result.message}" for result in failed if result.policy == failed[0].policy
    )
    return f"mutation policy {policy} error: failed to apply policy {policy} rules [{rules}]"
