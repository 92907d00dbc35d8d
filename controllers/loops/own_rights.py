"""What an account of ours may do, asked of the API server as that account and remembered for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube import KubeError
from controllers.kube.kinds import SELF_SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controllers.kube import Client, Clock

REMEMBERED: Final = 30.0
"""Seconds after which a right is asked about again."""

Right = tuple[str, str, str, str]
"""Verb, group, version, and resource with its subresource."""


class OwnRights:
    """Answers to "may we", each remembered for some seconds; `client` speaks as the account in question."""

    def __init__(self, client: Client, clock: Clock, remembered: float = REMEMBERED) -> None:
        self._client, self._clock, self._remembered = client, clock, remembered
        self._known: dict[Right, tuple[str | None, float]] = {}

    def refused(self) -> Iterator[Right]:
        """Yield the rights that are known to be refused."""
        yield from (right for right, (refusal, _) in self._known.items() if refusal is not None)

    def forget(self, group: str, plural: str) -> None:
        """Forget what is known of a resource, because an answer turned out to be wrong or the resource is gone."""
        for right in [one for one in self._known if (one[1], one[3]) == (group, plural)]:
            del self._known[right]

    async def refusal(self, right: Right) -> str | None:
        """Return why a right is refused, None where it is given; raises KubeError when nobody says, or has said before."""
        known, now = self._known.get(right), self._clock.monotonic()
        if known is not None and now - known[1] < self._remembered:
            return known[0]
        verb, group, version, resource = right
        plural, _, subresource = resource.partition("/")
        asked = {"verb": verb, "group": group, "version": version, "resource": plural}
        if subresource:
            asked["subresource"] = subresource
        try:
            answer = await self._client.review(
                SELF_SUBJECT_ACCESS_REVIEWS, {"resourceAttributes": asked}
            )
        except KubeError:
            if known is not None:
                return known[0]
            raise
        refusal = None if answer.get("allowed") is True else str(answer.get("reason") or "")
        self._known[right] = (refusal, now)
        return refusal
