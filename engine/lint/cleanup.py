"""Checks of what softens or ends without a rule: cleanup policies (row C-01) and PolicyExceptions (rows X-01 to X-06, X-09)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import vocabulary
from engine.cleanup import ttl
from engine.cleanup.schedule import parse_schedule
from engine.errors import EngineError
from engine.lang import rfc3339
from engine.lang.wildcard import has_wildcard
from engine.match import parse_kind
from engine.podsecurity.exclusions import exclusion_faults
from engine.reach import Effect, Target, out_of_reach

from .conditions import check_conditions
from .context import check_context
from .findings import Finding, error, gathered, invalid, warning
from .matching import check_block, check_no_users, check_presence, check_scope, entries, user_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import CleanupPolicy, PolicyException


@gathered
def lint_cleanup(policy: CleanupPolicy) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about a cleanup policy."""
    try:
        parse_schedule(policy.schedule)
    except EngineError as problem:
        yield invalid("spec.schedule", policy.schedule, problem.message)
    yield from check_presence(policy.match, "spec.match")
    for name, block in (("match", policy.match), ("exclude", policy.exclude)):
        yield from check_block(block, f"spec.{name}")
        yield from check_no_users(block, f"spec.{name}")
        if policy.kind == "CleanupPolicy":
            for entry in entries(block, f"spec.{name}"):
                yield from check_scope(entry)
    yield from _check_reach(policy)
    yield from check_context(
        policy.context,
        "spec.context",
        own_namespace=policy.namespace,
        forbidden=("configMap", "imageRegistry"),
    )
    yield from check_conditions(policy.conditions, "spec.conditions")


def _check_reach(policy: CleanupPolicy) -> Iterator[Finding]:
    """Refuse kinds of which nothing is ever cleaned up."""
    for entry in entries(policy.match, "spec.match"):
        for text in entry.resources.get("kinds") or ():
            wanted = parse_kind(text)
            is_named = not has_wildcard(wanted.group) and not has_wildcard(wanted.kind)
            target = Target(wanted.group if is_named else None, wanted.kind)
            if reason := out_of_reach(Effect.CLEAN_UP, target, policy.namespace):
                yield error(f"{entry.path}.kinds", f"Forbidden: {reason}")


@gathered
def lint_exception(exc: PolicyException) -> Iterator[Finding]:
    """Return everything that is wrong or doubtful about an exception."""
    if not exc.references:
        yield error("spec.exceptions", "Required value: an exception names policies and rules")
    for index, reference in enumerate(exc.references):
        if not reference.policy_name:
            path = f"spec.exceptions[{index}].policyName"
            yield error(path, "Required value: an exception names a policy")
    if not (exc.match.get("any") or exc.match.get("all")):
        yield warning("spec.match", "an empty match covers nothing; give one of `any`, `all`")
    yield from check_block(exc.match, "spec.match")
    yield from _check_users(exc)
    yield from check_conditions(exc.conditions, "spec.conditions")
    for fault in exclusion_faults(exc.pod_security, "spec.podSecurity"):
        place, _, text = fault.partition(": ")
        yield error(place, text)
    yield from _check_end(exc)


def _check_users(exc: PolicyException) -> Iterator[Finding]:
    """Refuse user filters in exceptions for background scans; v2alpha1 knew no such rule and is only warned of."""
    if not exc.background:
        return
    if exc.api_version != "kyverno.io/v2alpha1":
        yield from check_no_users(exc.match, "spec.match")
    elif user_fields(exc.match, "spec.match"):
        text = "background scans know no requester, so the exception counts at admission only"
        yield warning("spec.match", text)


def _check_end(exc: PolicyException) -> Iterator[Finding]:
    if vocabulary.EXPIRES_AT in exc.annotations:
        written = exc.annotations[vocabulary.EXPIRES_AT]
        if rfc3339.read(written) is None:
            text = "must be an instant as in RFC 3339, with a time zone"
            yield invalid(f"metadata.annotations.{vocabulary.EXPIRES_AT}", written or "", text)
    if said := ttl.warning({"metadata": {"labels": dict(exc.labels)}}):
        yield warning(f"metadata.labels.{vocabulary.TTL_LABEL}", said)
