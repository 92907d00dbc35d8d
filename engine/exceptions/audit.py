"""What is wrong with the exceptions of a cluster as a whole: expired ones, orphans, ones that cover too much.

For the console, `doctor` and reports. Judges exceptions against the policies that are there; never against objects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from engine.record import record

from .cover import compile_exception

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from engine.model import PolicyException


class Concern(StrEnum):
    """What there is to say about an exception."""

    EXPIRED = "expired"
    NO_SUCH_POLICY = "no such policy"
    NO_SUCH_RULE = "no such rule"
    NO_EXPIRY = "no expiry"


@record
class Remark:
    """One concern about one exception; `about` names the policy or rule it is about, where there is one."""

    exception: str
    concern: Concern
    about: str = ""


def audit_exceptions(
    exceptions: Iterable[PolicyException],
    rules: Mapping[str, Collection[str]],
    now: datetime,
) -> tuple[Remark, ...]:
    """Return all remarks in the order of the exceptions.

    `rules` are the rule names of every policy by policy key, generated rules included (row G-07). Raises PolicyError for
    an exception that cannot be compiled.
    """
    return tuple(remark for exc in exceptions for remark in _remarks(exc, rules, now))


def _remarks(
    exc: PolicyException, rules: Mapping[str, Collection[str]], now: datetime
) -> Iterator[Remark]:
    compiled = compile_exception(exc)
    if compiled.expires_at is None:
        yield Remark(exc.key, Concern.NO_EXPIRY)
    elif compiled.is_expired(now):
        yield Remark(exc.key, Concern.EXPIRED)
    for policy, is_named in compiled.rules.items():
        if policy not in rules:
            yield Remark(exc.key, Concern.NO_SUCH_POLICY, policy)
        elif not any(map(is_named, rules[policy])):
            yield Remark(exc.key, Concern.NO_SUCH_RULE, policy)
