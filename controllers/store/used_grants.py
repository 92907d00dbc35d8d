"""Which grants let a request pass, and the counts of those without a limit, in the status of their Grants.

Counts are added by optimistic updates, so replicas lose none of each other's; what a replica had not written when it crashed is
lost, and only the show of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from controllers.kube import Client, Conflict, NotFound, retried
from controllers.kube.kinds import GRANTS
from engine.lang import rfc3339
from engine.model import Status

from .policies import key_of_exception

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from engine.grants.cause import Granted
    from engine.model import Object, RuleResult

_TRIES: Final = 8


@dataclass(slots=True)
class _Count:
    """Uses of a grant that are not written yet."""

    uses: int
    last_at: datetime


class Tally:
    """Counts uses of unlimited grants and adds them to the status of their Grants with `flush`."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._counts: dict[tuple[str, str], _Count] = {}

    def add(self, granted: Granted, at: datetime, uses: int = 1) -> None:
        """Count a use."""
        count = self._counts.setdefault((granted.grant, granted.uid), _Count(0, at))
        count.uses += uses
        count.last_at = max(count.last_at, at)

    async def flush(self) -> None:
        """Write what was counted; what cannot be written now stays counted. Raises KubeError."""
        for place in list(self._counts):
            count = self._counts.pop(place)
            try:
                await retried(_TRIES, partial(self._write, place, count), Conflict)
            except NotFound:
                continue
            except BaseException:
                self._put_back(place, count)
                raise

    def _put_back(self, place: tuple[str, str], count: _Count) -> None:
        """Count again what was not written, beside what was counted meanwhile."""
        later = self._counts.setdefault(place, _Count(0, count.last_at))
        later.uses += count.uses

    async def _write(self, place: tuple[str, str], count: _Count) -> None:
        (grant, uid) = place
        namespace, _, name = grant.rpartition("/")
        found = await self._client.get(GRANTS, name, namespace)
        if found["metadata"].get("uid") == uid:
            patch = _counted(found, count)
            await self._client.patch(GRANTS, name, namespace, patch, subresource="status")


def rule_of(result: RuleResult) -> tuple[str, str]:
    """Return the rule that a result is of; a policy written in CEL is one, whatever its answers are called."""
    return result.identity, "" if result.is_of_cel else result.rule


def exceptions_of(result: RuleResult) -> list[str]:
    """Return the identities of the exceptions that excused a result."""
    return [key_of_exception(result, key) for key in result.exceptions]


def excused(
    granted: Mapping[str, Granted], results: Iterable[RuleResult]
) -> dict[tuple[str, str], list[Granted]]:
    """Return the rules that grants (by their exceptions) excuse from, and these grants."""
    found = {
        rule_of(one): [granted[key] for key in exceptions_of(one) if key in granted]
        for one in results
        if one.exceptions
    }
    return {rule: grants for rule, grants in found.items() if grants}


def kept_from_working(
    covered: Mapping[tuple[str, str], list[Granted]], without: Iterable[RuleResult]
) -> tuple[Granted, ...]:
    """Return the grants by which a rule was skipped that changes or makes objects: `without` them it would have, or have failed.

    Each rule has one: the first of them, as its name has it. Limited ones are not among them, since nobody refused anything.
    """
    found: dict[str, Granted] = {}
    for one in without:
        grants = [each for each in covered.get(rule_of(one), ()) if not each.is_limited]
        if grants and _works(one):
            first = min(grants, key=lambda each: each.exception)
            found[first.exception] = first
    return tuple(found.values())


def _works(result: RuleResult) -> bool:
    if result.status is Status.PASS:
        return result.patched is not None or bool(result.generated or result.targets)
    return result.status in {Status.FAIL, Status.ERROR}


def _counted(grant: Object, count: _Count) -> Object:
    """Return the patch that adds a count to the status of a Grant as it was read; another change in between refuses it."""
    status = grant.get("status") or {}
    known = rfc3339.read(str(status.get("lastUsedAt") or ""))
    last = max(known, count.last_at) if known is not None else count.last_at
    uses = status.get("uses")
    return {
        "metadata": {"resourceVersion": grant["metadata"].get("resourceVersion")},
        "status": {
            "uses": (uses if type(uses) is int else 0) + count.uses,
            "lastUsedAt": rfc3339.write(last),
        },
    }
