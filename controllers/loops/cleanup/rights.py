"""What we may do with each kind, asked of the API server and remembered for a while (row C-06).

Missing rights are no error of an object but have to be seen: the TTL loop shows them as a figure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kube import KubeError
from controllers.kube.kinds import SELF_SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Client, Clock, Kind

NEEDED = ("list", "watch", "delete")
_REMEMBERED = 600.0


class Rights:
    """Answers to "may we"; a yes and a no are remembered for ten minutes, no answer is not.

    INVARIANT: `client` speaks as the account of clean-ups, because what any other of ours may delete must not be for anybody
    who may write a label.
    """

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[Kind, str], tuple[bool, float]] = {}

    async def missing(self, kind: Kind) -> tuple[str, ...]:
        """Return the verbs of NEEDED that we may not use everywhere on a kind; raises KubeError."""
        return tuple([verb for verb in NEEDED if not await self._may(kind, verb)])

    def all_missing(self) -> Iterator[tuple[Kind, str]]:
        """Yield what is known to be missing."""
        yield from (place for place, (allowed, _) in self._known.items() if not allowed)

    def forget(self, kind: Kind) -> None:
        """Forget what is known of a kind, because an answer turned out to be wrong or the kind is gone."""
        for verb in NEEDED:
            self._known.pop((kind, verb), None)

    async def _may(self, kind: Kind, verb: str) -> bool:
        known = self._known.get((kind, verb))
        now = self._clock.monotonic()
        if known is not None and now - known[1] < _REMEMBERED:
            return known[0]
        resource = {"group": kind.group, "resource": kind.plural, "version": kind.version, "verb": verb}  # fmt: skip
        try:
            answer = await self._client.review(
                SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": resource}
            )
        except KubeError:
            if known is not None:
                return known[0]
            raise
        self._known[kind, verb] = (answer.get("allowed") is True, now)
        return self._known[kind, verb][0]
