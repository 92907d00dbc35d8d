"""Whether an exception covers a rule for an object at an instant, and what is wrong with exceptions as a whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from engine import vocabulary
from engine.errors import EngineError, EvaluationError
from engine.fields import part
from engine.lang import rfc3339, wildcard
from engine.match import compile_any_all
from engine.match.combine import some
from engine.record import record

if TYPE_CHECKING:
    from engine.model import Block, Json, PolicyException, Review
    from engine.model.policy import CelException


# The one decision about exceptions: does this one cover that rule, for this object and user, at this instant.
#
# Admission, background scans, command line, reports and console all ask here, so that they agree (rows; design
# 8.2 for expiry). An exception is compiled once; the answer at each review is names first, then the clock, then the object.


NEVER_VALID = datetime.min.replace(tzinfo=UTC)
"""What an expiry that cannot be read counts as: long past."""

CheckConditions = Callable[["Json"], bool]
"""Evaluates the exception's conditions in the context of the review; may raise EngineError."""


@record
class CompiledException:
    """An exception ready to be asked; `rules` tests rule names by policy key, `pod_security` narrows what is excepted."""

    exception: PolicyException
    rules: Mapping[str, Callable[[str], bool]]
    matches: Callable[[Review], bool]
    expires_at: datetime | None

    @property
    def key(self) -> str:
        """`namespace/name` of the exception."""
        return self.exception.key

    @property
    def pod_security(self) -> tuple[Block, ...]:
        """Controls that are excluded from a podSecurity rule; none of them means the whole rule (row X-05)."""
        return self.exception.pod_security

    def names(self, policy_key: str, rule_name: str) -> bool:
        """Tell whether the exception is written for this rule (row X-02: policies exactly, rules with wildcards)."""
        is_named = self.rules.get(policy_key)
        return is_named is not None and is_named(rule_name)

    def is_expired(self, now: datetime) -> bool:
        """Tell whether the exception has ended; the instant of expiry itself is past it."""
        return self.expires_at is not None and now >= self.expires_at


def compile_exception(exc: PolicyException) -> CompiledException:
    """Compile an exception once; raises PolicyError when its match has parts of the wrong type."""
    patterns: dict[str, list[str]] = {}
    for reference in exc.references:
        patterns.setdefault(reference.policy_name, []).extend(reference.rule_names)
    return CompiledException(
        exception=exc,
        rules={
            policy: some([wildcard.compiled(name) for name in names])
            for policy, names in patterns.items()
        },
        matches=compile_any_all(exc.match).test,
        expires_at=expires_at(exc),
    )


def covers(
    compiled: CompiledException,
    policy_key: str,
    rule_name: str,
    review: Review,
    now: datetime,
    check_conditions: CheckConditions,
) -> bool:
    """Tell whether an exception covers a rule of a policy for one review at the instant `now`.

    Conditions that cannot be evaluated are not met (row X-04). Operations do not count and an unknown requester meets no
    user filter (row X-03).
    """
    if not compiled.names(policy_key, rule_name) or compiled.is_expired(now):
        return False
    if not compiled.matches(review):
        return False
    conditions = compiled.exception.conditions
    if conditions is None:
        return True
    try:
        return check_conditions(conditions)
    except EngineError:
        return False


def expires_at(exc: PolicyException | CelException) -> datetime | None:
    """Return the instant from which an exception covers nothing, None when it stands until it is deleted.

    The earliest of annotation `kpolicy.io/expires-at`, label `cleanup.kyverno.io/ttl` measured from creation, and its deletion,
    which somebody wanted although a finalizer may hold it. An annotation that cannot be read ends the exception at once, because somebody meant to limit it; a label that cannot be
    read limits nothing, as upstream only warns of it.
    """
    limits = []
    if vocabulary.EXPIRES_AT in exc.annotations:
        limits.append(exc.annotations[vocabulary.EXPIRES_AT])
    if deleted := part(exc.raw, "metadata").get("deletionTimestamp"):
        limits.append(deleted)
    ends = [rfc3339.read(str(one)) or NEVER_VALID for one in limits]
    by_label = _by_label(exc)
    return min(ends if by_label is None else [*ends, by_label], default=None)


def _by_label(exc: PolicyException | CelException) -> datetime | None:
    from engine.cleanup.ttl import due_at

    metadata = {"labels": dict(exc.labels), "creationTimestamp": exc.created_at}
    try:
        return due_at({"metadata": metadata})
    except EvaluationError:
        return None


# What is wrong with the exceptions of a cluster as a whole: expired ones, orphans, ones that cover too much.
#
# For the console, `doctor` and reports. Judges exceptions against the policies that are there; never against objects.


class Concern(StrEnum):
    """What there is to say about an exception."""

    EXPIRED = "expired"
    NO_SUCH_POLICY = "no such policy"
    NO_SUCH_RULE = "no such rule"
    NO_EXPIRY = "no expiry"


def audit_exception(
    exc: PolicyException, rules: Mapping[str, Collection[str]], now: datetime
) -> Iterator[Concern]:
    """Yield what there is to say about an exception.

    `rules` are the rule names of every policy by policy key, generated rules included (row G-07). Raises PolicyError for
    an exception that cannot be compiled.
    """
    compiled = compile_exception(exc)
    if compiled.expires_at is None:
        yield Concern.NO_EXPIRY
    elif compiled.is_expired(now):
        yield Concern.EXPIRED
    for policy, is_named in compiled.rules.items():
        if policy not in rules:
            yield Concern.NO_SUCH_POLICY
        elif not any(map(is_named, rules[policy])):
            yield Concern.NO_SUCH_RULE
