"""What generating policies could not do, until they could: for their status.

An Event says it once and a report says it of one trigger; the status says it of the policy for as long as it holds. Kept in
memory: work that failed is tried again by every leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.fields import part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.model import Policy

    from .origin import Origin

MOST = 100
"""Triggers remembered of one policy."""


class Failures:
    """The last error of each trigger, by policy; `on_change` are told when the first comes or the last goes.

    A policy that is made anew under the name of another one has failed in nothing yet.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[Origin, str]] = {}
        self.on_change: list[Callable[[], None]] = []

    def put(self, policy: Policy, origin: Origin, message: str) -> None:
        """Remember that a policy failed for a trigger."""
        found = self._known.setdefault(_key(policy), {})
        is_first = not found
        if origin in found or len(found) < MOST:
            found[origin] = message
        self._tell(is_news=is_first)

    def clear(self, policy: Policy, origin: Origin) -> None:
        """Forget what failed for a trigger, because it did not this time."""
        found = self._known.get(_key(policy), {})
        is_known = found.pop(origin, None) is not None
        if is_known and not found:
            del self._known[_key(policy)]
            self._tell(is_news=True)

    def keep(self, policies: Iterable[Policy]) -> None:
        """Forget what all other policies failed in."""
        kept = set(map(_key, policies))
        self._known = {key: found for key, found in self._known.items() if key in kept}

    def message(self, policy: Policy) -> str:
        """Return what is wrong with a policy's work now, empty when nothing is."""
        found = self._known.get(_key(policy))
        if not found:
            return ""
        origin, message = next(iter(found.items()))
        place = f"{origin.kind} in namespace {origin.namespace}" if origin.namespace else origin.kind  # fmt: skip
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"not carried out for {place}{others}: {message}"

    def _tell(self, *, is_news: bool) -> None:
        for listener in self.on_change if is_news else ():
            listener()


def _key(policy: Policy) -> tuple[str, str]:
    return policy.identity, str(part(policy.raw, "metadata").get("uid") or "")
