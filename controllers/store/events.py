"""Events as values: the texts, reasons and places that people's tools look for.

For the loops that write Events and for the console that reads them. They are core `v1` Events, so that a rule on `v1/Event`
reads their `message`, in the namespace of what they are about (`default` for cluster-wide objects).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import object_reference
from engine import vocabulary
from engine.grants.blocks import Block, block_id, target_of
from engine.model import Object, Policy, PolicyException, Review, RuleResult, RuleType, Status
from engine.model.kinds import BY_NAME, CEL_GROUP

from .policies import is_cel, key_of_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.model.policy import CelException

VIOLATION: Final = "PolicyViolation"
APPLIED: Final = "PolicyApplied"
ERROR: Final = "PolicyError"
SKIPPED: Final = "PolicySkipped"

END_TAKEN: Final = "GrantEndTaken"
"""Reason of what each replica says of the end of a grant, once it lets nothing through by its exception any more."""

NORMAL: Final = frozenset(
    {APPLIED, SKIPPED, END_TAKEN, "GrantPending", "GrantScheduled", "GrantActive", "GrantExpired", "GrantDropped", "GrantWithdrawn"}
)  # fmt: skip
"""Reasons of what went as wished."""

_MISSED: Final = frozenset({Status.FAIL, Status.ERROR})

BLOCKED: Final = "Resource Blocked"
PASSED: Final = "Resource Passed"
GENERATED: Final = "Resource Generated"
MUTATED: Final = "Resource Mutated"
CLEANED: Final = "Resource Cleaned Up"
NONE: Final = "None"

ADMISSION: Final = "kyverno-admission"
SCAN: Final = "kyverno-scan"
GENERATE: Final = "kyverno-generate"
MUTATE: Final = "kyverno-mutate"
CLEANUP: Final = "kyverno-cleanup"


@dataclass(frozen=True, slots=True)
class Note:
    """One Event that is to be written: about what, what it says, and annotations that only our own tools read."""

    about: Mapping[str, str]
    reason: str
    action: str
    message: str
    source: str
    annotations: tuple[tuple[str, str], ...] = ()
    latest: tuple[tuple[str, str], ...] = ()

    @property
    def type(self) -> str:
        """`Normal` for what went as wished, else `Warning` (row E-01)."""
        return "Normal" if self.reason in NORMAL else "Warning"


def about_policy(policy: Policy) -> dict[str, str]:
    """Return the reference to a policy; of the version in which policies are stored, whatever it was read as."""
    kind = BY_NAME.get(policy.kind)
    version = f"{kind.group}/{kind.versions[0]}" if kind is not None else policy.api_version
    return {**object_reference(policy.raw), "apiVersion": version, "kind": policy.kind}


def about_exception(exception: PolicyException | CelException) -> dict[str, str]:
    """Return the reference to an exception of either group."""
    version = f"{CEL_GROUP}/v1beta1" if is_cel(exception.raw) else vocabulary.KYVERNO_V2
    return {**object_reference(exception.raw), "apiVersion": version, "kind": "PolicyException"}


def end_taken(exception: Object) -> Note | None:
    """Return the Event of a replica that has forgotten an exception, None of one that no grant caused."""
    named = (exception["metadata"].get("annotations") or {}).get(vocabulary.GRANT)
    namespace, _, name = str(named or "").rpartition("/")
    if not name:
        return None
    owner: Object = next(iter(exception["metadata"].get("ownerReferences") or ()), {})
    place = {"namespace": namespace, "name": name, "uid": owner.get("uid")}
    about = object_reference({"apiVersion": vocabulary.KPOLICY, "kind": "Grant", "metadata": place})
    message = "this replica lets nothing through by its exception any more"
    return Note(about, END_TAKEN, NONE, message, ADMISSION)


def notes_of(
    review: Review,
    results: Sequence[RuleResult],
    policies: Mapping[str, Policy],
    exceptions: Mapping[str, PolicyException | CelException],
    *,
    blocked: bool,
    successes: bool,
    marks: Callable[[RuleResult], Marks] = lambda _: (),
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> Iterator[Note]:
    """Yield the Events of a review: on policies, on the object unless it was blocked, on exceptions (E-03 to E-05).

    Policies and exceptions are by key. Passes are told only when `successes` are asked for, once for each policy whose rules all passed.
    `marks` gives the annotations of what was blocked. `is_wanted` is asked about each Event of a violation, by its reason, before it is made.
    """
    about = object_reference(review.target) if has_name(review) and not blocked else None
    telling = (
        results
        if successes
        else [one for one in results if one.status in _MISSED or one.exceptions]
    )
    for key, group in _by_policy(telling).items():
        policy = policies.get(key)
        if policy is None:
            continue
        missed = [one for one in group if one.status in _MISSED]
        for result in missed:
            if is_wanted(_reason(result)):
                found = violation(policy, review, result, blocked=blocked)
                yield _marked(found, marks(result)) if blocked else found
            if about and is_wanted(_reason(result)):
                yield violation_on_object(about, policy, result)
        for result in group:
            if result.exceptions and result.status is Status.SKIP:
                yield from excepted(policy, review, result, exceptions)
        if successes and not missed and (applied := _applied(policy, review, group)):
            yield applied


def _marked(note: Note, marks: Marks) -> Note:
    """Return a note with annotations; who tries the same again is denied the same, whatever the request is called."""
    apart = tuple(one for one in marks if one[0] not in _OF_ONE_REQUEST)
    latest = tuple(one for one in marks if one[0] in _OF_ONE_REQUEST)
    return replace(note, annotations=apart, latest=latest)


def _by_policy(results: Iterable[RuleResult]) -> dict[str, list[RuleResult]]:
    groups: dict[str, list[RuleResult]] = {}
    for result in results:
        groups.setdefault(result.identity, []).append(result)
    return groups


def violation(
    policy: Policy, review: Review, result: RuleResult, *, blocked: bool, source: str = ADMISSION
) -> Note:
    """Return the Event on the policy about an object that failed one of its rules (row E-03)."""
    status = f"{result.status} (blocked)" if blocked else str(result.status)
    rule = f"[{result.rule}] " if result.rule else ""
    text = f"{review.kind} {place_of(review)}: {rule}{status}"
    return Note(
        about=about_policy(policy),
        reason=_reason(result),
        action=BLOCKED if blocked else PASSED,
        message=f"{text}; {result.message}" if result.message else text,
        source=source,
    )


def violation_on_object(
    about: Mapping[str, str], policy: Policy, result: RuleResult, source: str = ADMISSION
) -> Note:
    """Return the Event on an object that fails a rule and is there all the same (row E-03)."""
    text = f"policy {_named(policy, result)} {result.status}: {result.message}"
    return Note(about, _reason(result), PASSED, text, source)


def excepted(
    policy: Policy,
    review: Review,
    result: RuleResult,
    exceptions: Mapping[str, PolicyException | CelException],
    source: str = ADMISSION,
) -> Iterator[Note]:
    """Yield the Events on the policy and on each exception about a rule that was skipped for them (row E-05)."""
    place = f"resource {review.kind}/{place_of(review)}"
    names = ", ".join(result.exceptions)
    rule = f" from rule {result.rule}" if result.rule else ""
    text = f"{place} was skipped{rule} due to policy exceptions {names}"
    yield Note(about_policy(policy), SKIPPED, PASSED, text, source)
    what = "policy rule" if result.rule else "policy"
    text = f"{place} was skipped from {what} {_named(policy, result)}"
    for key in result.exceptions:
        if (exception := exceptions.get(key_of_exception(result, key))) is not None:
            yield Note(about_exception(exception), SKIPPED, PASSED, text, source)


def _named(policy: Policy, result: RuleResult) -> str:
    """Return `policy/rule`, or the policy alone for one written in CEL."""
    return f"{policy.key}/{result.rule}" if result.rule else policy.key


def _applied(policy: Policy, review: Review, results: Sequence[RuleResult]) -> Note | None:
    """Return the Event about an object that a policy changed or found in order (row E-04)."""
    passed = [one for one in results if one.status is Status.PASS]
    if not passed:
        return None
    place = f"{review.kind} {place_of(review)}"
    if any(one.type is RuleType.MUTATION for one in passed):
        text, action = f"{place} is successfully mutated", MUTATED
    else:
        text, action = f"{place}: pass", PASSED
    return Note(about_policy(policy), APPLIED, action, text, ADMISSION)


def made(policy: Policy, rule: str, generated: Sequence[Object]) -> Iterator[Note]:
    """Yield the Events about objects that a rule generated: one on the policy, one on each object (row E-06)."""
    yield Note(about_policy(policy), APPLIED, GENERATED, "resource generated", GENERATE)
    for obj in generated:
        metadata = obj.get("metadata") or {}
        text = (
            f"Created {obj.get('kind')} {metadata.get('name')} as a result of applying policy "
            f"{policy.key}/{rule}"
        )
        yield Note(object_reference(obj), APPLIED, NONE, text, GENERATE)


def changed(policy: Policy) -> Note:
    """Return the Event on a policy that changed existing objects (row E-06)."""
    return Note(about_policy(policy), APPLIED, MUTATED, "resource mutated", MUTATE)


def failed(about: Mapping[str, str], policy: str, rule: str, error: str, source: str) -> Note:
    """Return the Event about work in the background that could not be done (row E-06)."""
    return Note(about, ERROR, NONE, f"policy {policy}/{rule} error: {error}", source)


def cleaned_up(about: Mapping[str, str], obj: Object, error: str = "") -> Note:
    """Return the Event about an object that was deleted, or (with `error`) could not be (rows E-07, DP-06)."""
    did, do = ("cleaned up", "clean up")
    if str(about.get("kind")).endswith("DeletingPolicy"):
        did, do = ("deleted", "delete")
    metadata = obj.get("metadata") or {}
    place = "/".join(
        str(part)
        for part in (obj.get("kind"), metadata.get("namespace"), metadata.get("name"))
        if part
    )
    if not error:
        text = f"successfully {did} the target resource {place}"
        return Note(about, APPLIED, CLEANED, text, CLEANUP)
    text = f"failed to {do} the target resource {place}: {error}"
    return Note(about, ERROR, NONE, text, CLEANUP)


def has_name(review: Review) -> bool:
    """Tell whether the object has a name of its own; one with generateName only gets no Event (row E-08)."""
    return bool(review.metadata.get("name"))


def place_of(review: Review) -> str:
    """Return `namespace/name`, or `name` of a cluster-wide object."""
    return f"{review.namespace}/{review.name}" if review.namespace else review.name


def _reason(result: RuleResult) -> str:
    return ERROR if result.status is Status.ERROR else VIOLATION


# What an Event about a denied request carries beside upstream's text: who asked, for which object, and the denial's id.
#
# Written by the engine's Events and read by the Blocks screen, so both have the names of these annotations from here.

OBJECT_UID: Final = "kpolicy.io/object-uid"
"""The UID of the object; of a creation that was denied, the one that it would have had."""

_OF_ONE_REQUEST: Final = frozenset({OBJECT_UID, vocabulary.REQUEST_UID})
_LONGEST: Final = 512

Marks = tuple[tuple[str, str], ...]


def marks_of(review: Review, key: bytes) -> Callable[[RuleResult], Marks]:
    """Return what gives the annotations of each result of a denied request; `key` is the `block_key`."""
    shared = {
        vocabulary.USER: review.user.username[:_LONGEST],
        OBJECT_UID: str(review.metadata.get("uid") or ""),
        vocabulary.REQUEST_UID: str(review.request.get("uid") or ""),
    }

    name = target_of(review.metadata, is_new=review.operation == "CREATE")

    def marks(result: RuleResult) -> Marks:
        rules = (result.rule,) if result.rule and not result.is_of_cel else ()
        block = Block(result.identity, rules, review.kind, name, review.namespace)
        named = block_id(block, key) if rules or result.is_of_cel else ""
        found = {**shared, vocabulary.BLOCK: named}
        return tuple((name, value) for name, value in found.items() if value)

    return marks
