"""Whether the reports account may read what a policy written in CEL concerns, as the policy's status tells it.

Asked of the API server through the reports account itself, and remembered for a while, because many policies concern the same
kinds.
"""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import SELF_SUBJECT_ACCESS_REVIEWS
from controllers.store.cel_policies import is_scanning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controllers.kube import Client, Clock
    from engine.model import Policy

REMEMBERED: Final = 30.0
"""Seconds after which a right is asked about again."""
_VERBS: Final = ("get", "list", "watch")
_Right = tuple[str, str, str, str]


class ReportingRights:
    """Answers to "may reports be written about this"; `client` speaks as the reports account."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[_Right, tuple[str | None, float]] = {}

    async def missing(self, policy: Policy) -> list[str]:
        """Return the rights that are missing, as the status words them; raises KubeError when nobody says."""
        rights = list(_rights_of(policy)) if is_scanning(policy) else []
        answers = await asyncio.gather(*map(self._refusal, rights))
        return [
            f"{verb} {group}/{version}, Resource={resource}: {refusal}"
            for (verb, group, version, resource), refusal in zip(rights, answers, strict=True)
            if refusal is not None
        ]

    async def _refusal(self, right: _Right) -> str | None:
        """Return why a right is refused, None where it is given; raises KubeError."""
        known, now = self._known.get(right), self._clock.monotonic()
        if known is not None and now - known[1] < REMEMBERED:
            return known[0]
        verb, group, version, resource = right
        plural, _, subresource = resource.partition("/")
        asked = {"verb": verb, "group": group, "version": version, "resource": plural}
        if subresource:
            asked["subresource"] = subresource
        answer = await self._client.review(
            SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": asked}
        )
        refusal = None if answer.get("allowed") is True else str(answer.get("reason") or "")
        self._known[right] = (refusal, now)
        return refusal


def _rights_of(policy: Policy) -> Iterator[_Right]:
    """Yield verb, group, version and resource of what the policy itself names, in its order."""
    constraints = policy.raw["spec"].get("matchConstraints") or {}
    seen = set()
    for rule in constraints.get("resourceRules") or ():
        places = product(_words(rule, "apiGroups"), _words(rule, "apiVersions"), _words(rule, "resources"))  # fmt: skip
        for (group, version, resource), verb in product(places, _VERBS):
            right = (verb, group, version, resource)
            if right not in seen:
                seen.add(right)
                yield right


def _words(rule: dict[str, Sequence[str]], name: str) -> list[str]:
    return [str(word) for word in rule.get(name) or ()]
