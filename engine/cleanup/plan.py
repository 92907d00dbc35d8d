"""What a cleanup policy would delete and when, as a value (rows C-01, C-02): for the loop that does it and for previews.

One deliberate difference to Kyverno: a policy that a generate rule made for one object, recognised by its
trigger labels and by naming that object, deletes only the object with that UID, at the moment its date means, once.
Upstream deletes by name and again whenever the schedule fires, so that a later object of the same name goes, too.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EngineError, LimitError
from engine.evaluate.asking import Answers, Asking, Said, until_answered
from engine.evaluate.conditions import compile_conditions
from engine.evaluate.context import compile_context, load_context
from engine.fields import part
from engine.lang import rfc3339, wildcard
from engine.lang.jmes.values import Env
from engine.lang.variables import Scope
from engine.match import compile_any_all, parse_kind
from engine.model import CleanupPolicy, Object, Review, review_of
from engine.reach import Effect, out_of_reach, target_of
from engine.record import record, replace
from engine.vocabulary import PROPAGATIONS, TRIGGER_KIND, TRIGGER_UID

from .holds import hold_on_object
from .schedule import moment_after, next_after, parse_schedule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime

    from engine.evaluate import Inputs

    Conditions = Callable[[Review, Inputs], str]
    """Says why an object stays, nothing when it goes; raises EvaluationError, and LookupNeeded for what it lacks."""
    Bounds = Callable[[Callable[[], str]], str]

_NO_LABELS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType({})


@record
class Decision:
    """Whether one matched object goes, and why or why not; `error` is what kept it where something went wrong."""

    object: Object
    goes: bool
    reason: str
    error: EngineError | None = None


@record
class Plan:
    """What the next run of a policy does.

    `run_at` is that run; in the past it is overdue, None means that there is none.
    `spent` says that the policy has done all it was made for. `decisions` are the matched objects.
    """

    decisions: tuple[Decision, ...] = ()
    run_at: datetime | None = None
    propagation: str = ""
    spent: bool = False

    @property
    def deletions(self) -> tuple[Decision, ...]:
        """The objects that go."""
        return tuple(decision for decision in self.decisions if decision.goes)


@record
class Cleanup:
    """A cleanup policy, compiled.

    `selects` says None of an object that the policy has nothing to do with and False of one that it excludes; `conditions` is
    None where there are none. `only_uid` is set for a policy that was generated for one object.
    """

    policy: CleanupPolicy
    selects: Callable[[Review], bool | None]
    conditions: Conditions | None = None
    only_uid: str = ""


def compile_cleanup(policy: CleanupPolicy) -> Cleanup:
    """Compile a policy; raises PolicyError for an unreadable schedule, match, exclude or condition."""
    parse_schedule(policy.schedule)
    included, excluded = compile_any_all(policy.match), compile_any_all(policy.exclude)

    def selects(review: Review) -> bool | None:
        return not excluded.test(review) if included.test(review) else None

    return Cleanup(policy, selects, compile_target_conditions(policy), _trigger_uid(policy))


def run_of(cleanup: Cleanup, now: datetime) -> Plan:
    """Return when a policy runs, without looking at any object."""
    policy = cleanup.policy
    propagation = policy.propagation if policy.propagation in PROPAGATIONS else ""
    if cleanup.only_uid and policy.last_execution_at:
        return Plan(propagation=propagation, spent=True)
    return Plan((), _due(cleanup, now), propagation)


def plan(
    cleanup: Cleanup,
    objects: Iterable[Object],
    inputs: Inputs,
    *,
    resource: str = "",
    namespace_labels: Mapping[str, Mapping[str, str]] = _NO_LABELS,
    is_filtered: Callable[[Object], bool] = lambda _: False,
    bounded: Bounds = lambda work: work(),
) -> Asking[Plan]:
    """Decide which of `objects` the next run of a policy deletes, as they are at `inputs.now`.

    Yields what conditions lack and is sent the answers. An error keeps the object. `resource` is what the server calls their
    kind, where they are of one and somebody asked; `namespace_labels` are the labels of
    namespaces by name, `is_filtered` tells of objects that the configuration keeps from all policies. Objects that the
    policy does not match are not listed. `bounded` runs the conditions on one object, and may raise LimitError instead.
    """
    found = run_of(cleanup, inputs.now)
    if found.spent:
        return found
    known, decisions = dict(inputs.answers), []
    within = cleanup.policy.namespace
    for review in _selected(cleanup, objects, resource, namespace_labels):
        obj = review.target
        kept = _kept(cleanup, review, is_filtered, inputs.now)
        if not kept and (conditions := cleanup.conditions) is not None:

            def ask(answers: Answers, review: Review = review) -> Said[str]:
                given = replace(inputs, answers=answers, within=within)
                return Said(lambda: bounded(lambda: conditions(review, given)))

            try:
                kept = (yield from until_answered(ask, known)).value
            except (EngineError, RecursionError) as problem:
                too_deep = LimitError("the conditions or the object are nested too deeply")
                error = problem if isinstance(problem, EngineError) else too_deep
                reason = f"the conditions could not be checked: {error.message}"
                decisions.append(Decision(obj, goes=False, reason=reason, error=error))
                continue
        decisions.append(Decision(obj, goes=not kept, reason=kept or _why(cleanup)))
    return replace(found, decisions=tuple(decisions))


def _due(cleanup: Cleanup, now: datetime) -> datetime | None:
    """Return the run that is due next, counted from the last one or from creation (row C-02)."""
    policy = cleanup.policy
    start = rfc3339.read(policy.last_execution_at) or rfc3339.read(policy.created_at) or now
    if cleanup.only_uid:
        return moment_after(policy.schedule, start)
    return next(iter(next_after(policy.schedule, start)), None)


def _selected(
    cleanup: Cleanup,
    objects: Iterable[Object],
    resource: str,
    namespace_labels: Mapping[str, Mapping[str, str]],
) -> Iterator[Review]:
    """Yield the objects of a policy's namespace, or of all, that it has to do with."""
    within = cleanup.policy.namespace
    request = {"resource": {"resource": resource}} if resource else {}
    for obj in objects:
        namespace = str(part(obj, "metadata").get("namespace") or "")
        if within and namespace != within:
            continue
        labels = namespace_labels.get(namespace, {})
        review = review_of(obj, namespace_labels=labels, request=request)
        if cleanup.selects(review) is not None:
            yield review


def _kept(
    cleanup: Cleanup, review: Review, is_filtered: Callable[[Object], bool], now: datetime
) -> str:
    """Return why a matched object stays whatever the conditions say, empty when they decide."""
    obj = review.target
    metadata = part(obj, "metadata")
    if not cleanup.selects(review):
        return "excluded by the policy"
    if reason := out_of_reach(Effect.CLEAN_UP, target_of(obj), cleanup.policy.namespace):
        return reason
    if cleanup.only_uid and metadata.get("uid") != cleanup.only_uid:
        return f"not the object that the policy was made for, which has UID `{cleanup.only_uid}`"
    if metadata.get("deletionTimestamp"):
        return "already being deleted"
    if is_filtered(obj):
        return "left out by the resource filters of the configuration"
    held = hold_on_object(obj, now)
    return held.reason if held is not None else ""


def _why(cleanup: Cleanup) -> str:
    policy = cleanup.policy
    conditions = ", and its conditions hold" if policy.conditions else ""
    return f"matched by {policy.kind} `{policy.key}`{conditions}"


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
    return (
        bool(kinds)
        and (not trigger_kind or set(kinds) == {trigger_kind})
        and len(_exact(resources)) == 1
    )


def names_of(policy: CleanupPolicy) -> tuple[str, ...]:
    """Return the names of all objects that a classic policy can match, none where it names some by a pattern, or not at all.

    Whoever looks for them needs rights on these alone.
    """
    every = [_exact(entry.get("resources") or {}) for entry in policy.match.get("all") or ()]
    any_of = [_exact(entry.get("resources") or {}) for entry in policy.match.get("any") or ()]
    if any(every):
        return min(filter(None, every), key=len)
    return tuple(dict.fromkeys(chain(*any_of))) if any_of and all(any_of) else ()


def _exact(resources: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names in a resource filter, none where one of them is a pattern or a variable."""
    names = [*(resources.get("names") or ()), *filter(None, [resources.get("name")])]
    is_exact = all("{{" not in name and not wildcard.has_wildcard(name) for name in names)
    return tuple(dict.fromkeys(names)) if is_exact else ()


# Conditions of cleanup policies, with their context, about one target (row C-01).


def compile_target_conditions(policy: CleanupPolicy) -> Conditions | None:
    """Compile the conditions of a classic policy; None where it has none. Raises PolicyError."""
    if not policy.conditions:
        return None
    conditions = compile_conditions(policy.conditions)
    entries = compile_context(policy.context)

    def why_kept(review: Review, inputs: Inputs) -> str:
        scope = Scope(
            {"target": review.target},
            Env(now=inputs.now, registry=inputs.registry),
            rereads=inputs.resolve_values,
        )
        load_context(entries, scope, inputs)
        return "" if conditions(scope, None).holds else "the conditions do not hold"

    return why_kept
