"""What a cleanup policy would delete and when, as a value (rows C-01, C-02): for the loop that does it and for previews.

One deliberate difference to Kyverno (design.md 8.11): a policy that a generate rule made for one object, recognised by its
trigger labels and by naming that object, deletes only the object with that UID, at the moment its date means, once.
Upstream deletes by name and again whenever the schedule fires, so that a later object of the same name goes, too.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError
from engine.lang import wildcard
from engine.match import compile_any_all, parse_kind
from engine.model import review_of
from engine.reach import Effect, out_of_reach, target_of
from engine.record import record

from .schedule import moment_after, next_after, parse_schedule
from .ttl import PROPAGATIONS, instant_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from engine.match import Group
    from engine.model import CleanupPolicy, Object

    Conditions = Callable[[Object], bool]

TRIGGER_UID: Final = "generate.kyverno.io/trigger-uid"
TRIGGER_KIND: Final = "generate.kyverno.io/trigger-kind"

_NO_LABELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})


@record
class Decision:
    """Whether one matched object goes, and why or why not."""

    object: Object
    goes: bool
    reason: str


@record
class Plan:
    """What the next run of a policy does.

    `run_at` is that run; in the past it is overdue, None means that there is none. `then_at` is the run after it.
    `spent` says that the policy has done all it was made for. `decisions` are the matched objects.
    """

    decisions: tuple[Decision, ...] = ()
    run_at: datetime | None = None
    then_at: datetime | None = None
    propagation: str = ""
    spent: bool = False

    @property
    def deletions(self) -> tuple[Decision, ...]:
        """The objects that go."""
        return tuple(decision for decision in self.decisions if decision.goes)


@record
class Cleanup:
    """A cleanup policy, compiled. `only_uid` is set for a policy that was generated for one object."""

    policy: CleanupPolicy
    included: Group
    excluded: Group
    only_uid: str = ""


def compile_cleanup(policy: CleanupPolicy) -> Cleanup:
    """Compile a policy; raises PolicyError for an unreadable schedule, match or exclude."""
    parse_schedule(policy.schedule)
    return Cleanup(
        policy=policy,
        included=compile_any_all(policy.match),
        excluded=compile_any_all(policy.exclude),
        only_uid=_trigger_uid(policy),
    )


def plan(
    cleanup: Cleanup,
    objects: Iterable[Object],
    now: datetime,
    *,
    check_conditions: Conditions,
    namespace_labels: Mapping[str, Mapping[str, str]] = _NO_LABELS,
) -> Plan:
    """Decide which of `objects` the next run of a policy deletes, as they are now.

    `check_conditions` is asked about matched objects of policies that have conditions; an EvaluationError from it keeps the
    object. `namespace_labels` are the labels of namespaces by name. Objects that the policy does not match are not listed.
    """
    policy = cleanup.policy
    propagation = policy.propagation if policy.propagation in PROPAGATIONS else ""
    if cleanup.only_uid and policy.last_execution_at:
        return Plan(propagation=propagation, spent=True)
    run_at, then_at = _runs(cleanup, now)
    decisions = tuple(_decisions(cleanup, objects, check_conditions, namespace_labels))
    return Plan(decisions, run_at, then_at, propagation)


def _runs(cleanup: Cleanup, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the run that is due next, counted from the last one or from creation (row C-02), and the one after it."""
    policy = cleanup.policy
    start = instant_of(policy.last_execution_at) or instant_of(policy.created_at) or now
    if cleanup.only_uid:
        return moment_after(policy.schedule, start), None
    run_at = next(iter(next_after(policy.schedule, start)), None)
    if run_at is None:
        return None, None
    return run_at, next(iter(next_after(policy.schedule, max(run_at, now))), None)


def _decisions(
    cleanup: Cleanup,
    objects: Iterable[Object],
    check_conditions: Conditions,
    namespace_labels: Mapping[str, Mapping[str, str]],
) -> Iterator[Decision]:
    policy = cleanup.policy
    for obj in objects:
        namespace = str(_metadata(obj).get("namespace") or "")
        if policy.namespace and namespace != policy.namespace:
            continue
        review = review_of(obj, namespace_labels=namespace_labels.get(namespace, {}))
        if not cleanup.included.test(review):
            continue
        if cleanup.excluded.test(review):
            yield Decision(obj, goes=False, reason="excluded by the policy")
            continue
        kept = _kept(cleanup, obj, check_conditions)
        yield Decision(obj, goes=not kept, reason=kept or _why(policy))


def _kept(cleanup: Cleanup, obj: Object, check_conditions: Conditions) -> str:
    """Return why a matched object stays, empty when it goes."""
    metadata = _metadata(obj)
    if reason := out_of_reach(Effect.CLEAN_UP, target_of(obj), cleanup.policy.namespace):
        return reason
    if cleanup.only_uid and metadata.get("uid") != cleanup.only_uid:
        return f"not the object that the policy was made for, which has UID `{cleanup.only_uid}`"
    if metadata.get("deletionTimestamp"):
        return "already being deleted"
    if not cleanup.policy.conditions:
        return ""
    try:
        return "" if check_conditions(obj) else "the conditions do not hold"
    except EvaluationError as error:
        return f"the conditions could not be checked: {error.message}"


def _why(policy: CleanupPolicy) -> str:
    conditions = ", and its conditions hold" if policy.conditions else ""
    return f"matched by {policy.kind} `{policy.key}`{conditions}"


def _metadata(obj: Object) -> Mapping[str, Any]:
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def _trigger_uid(policy: CleanupPolicy) -> str:
    """Return the UID of the one object that a generated policy is for, empty for every other policy.

    It is for one object when each entry of its match asks for the trigger's kind alone and for exact names.
    """
    uid, kind = policy.labels.get(TRIGGER_UID, ""), policy.labels.get(TRIGGER_KIND, "")
    if not uid:
        return ""
    entries = policy.match.get("any") or policy.match.get("all") or [policy.match]
    return uid if all(_names_one(entry.get("resources") or {}, kind) for entry in entries) else ""


def _names_one(resources: Mapping[str, Any], trigger_kind: str) -> bool:
    kinds = [parse_kind(text).kind for text in resources.get("kinds") or ()]
    names = [*(resources.get("names") or ()), *filter(None, [resources.get("name")])]
    return (
        bool(kinds)
        and (not trigger_kind or set(kinds) == {trigger_kind})
        and len(set(names)) == 1
        and not wildcard.has_wildcard(names[0])
    )
