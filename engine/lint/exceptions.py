"""Checks of PolicyExceptions (rows X-01 to X-06, X-09)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import vocabulary
from engine.cleanup import ttl
from engine.lang import rfc3339
from engine.podsecurity.exclusions import exclusion_faults

from .conditions import OPERATORS, check_conditions
from .findings import Finding, error, invalid, warning
from .matching import check_block, check_no_users, user_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import PolicyException

_OLD_VERSION = "kyverno.io/v2alpha1"


def lint_exception(exc: PolicyException) -> tuple[Finding, ...]:
    """Return everything that is wrong or doubtful about an exception."""
    return tuple(_findings(exc))


def _findings(exc: PolicyException) -> Iterator[Finding]:
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
    yield from check_conditions(exc.conditions, "spec.conditions", allowed=OPERATORS)
    for fault in exclusion_faults(exc.pod_security, "spec.podSecurity"):
        place, _, text = fault.partition(": ")
        yield error(place, text)
    yield from _check_end(exc)


def _check_users(exc: PolicyException) -> Iterator[Finding]:
    """Refuse user filters in exceptions for background scans; v2alpha1 knew no such rule and is only warned of."""
    if not exc.background:
        return
    if exc.api_version != _OLD_VERSION:
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
        yield warning(f"metadata.labels.{ttl.TTL_LABEL}", said)
