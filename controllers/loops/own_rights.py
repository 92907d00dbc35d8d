"""What an account of ours may do, asked of the API server as that account and remembered for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controllers.kube.kinds import SELF_SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from controllers.kube import Client, Clock

REMEMBERED: Final = 30.0
"""Seconds after which a right is asked about again."""

Right = tuple[str, str, str, str]
"""Verb, group, version, and resource with its subresource."""


class OwnRights:
    """Answers to "may we"; `client` speaks as the account in question."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._known: dict[Right, tuple[str | None, float]] = {}

    async def refusal(self, right: Right) -> str | None:
        """Return why a right is refused, None where it is given; raises KubeError when nobody says."""
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
