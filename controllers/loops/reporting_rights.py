"""Whether the reports account may read what a policy written in CEL concerns, as the policy's status tells it.

Asked of the API server through the reports account itself, and remembered for a while, because many policies concern the same
kinds.
"""

from __future__ import annotations

import asyncio
from itertools import product
from typing import TYPE_CHECKING, Final

from controllers.store.cel_policies import is_scanning

from .own_rights import OwnRights, Right

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controllers.kube import Client, Clock
    from engine.model import Policy


_VERBS: Final = ("get", "list", "watch")


class ReportingRights:
    """Answers to "may reports be written about this"; `client` speaks as the reports account."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._rights = OwnRights(client, clock)

    async def missing(self, policy: Policy) -> list[str]:
        """Return the rights that are missing, as the status words them; raises KubeError when nobody says."""
        rights = list(_rights_of(policy)) if is_scanning(policy) else []
        answers = await asyncio.gather(*map(self._rights.refusal, rights))
        return [
            f"{verb} {group}/{version}, Resource={resource}: {refusal}"
            for (verb, group, version, resource), refusal in zip(rights, answers, strict=True)
            if refusal is not None
        ]


def _rights_of(policy: Policy) -> Iterator[Right]:
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
