"""What generating policies could not do, until they could: for their status.

An Event says it once and a report says it of one trigger; the status says it of the policy for as long as it holds. Kept in
memory: work that failed is tried again by every leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .origin import Origin

MOST = 100
"""Triggers remembered of one policy."""


class Failures:
    """The last error of each trigger, by the identity of the policy; `on_change` are told when the first comes or the last goes."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Origin, str]] = {}
        self.on_change: list[Callable[[], None]] = []

    def put(self, policy: str, origin: Origin, message: str) -> None:
        """Remember that a policy failed for a trigger."""
        found = self._known.setdefault(policy, {})
        is_first = not found
        if origin in found or len(found) < MOST:
            found[origin] = message
        self._tell(is_news=is_first)

    def clear(self, policy: str, origin: Origin) -> None:
        """Forget what failed for a trigger, because it did not this time."""
        found = self._known.get(policy, {})
        is_known = found.pop(origin, None) is not None
        if is_known and not found:
            del self._known[policy]
            self._tell(is_news=True)

    def message(self, policy: str) -> str:
        """Return what is wrong with a policy's work now, empty when nothing is."""
        found = self._known.get(policy)
        if not found:
            return ""
        origin, message = next(iter(found.items()))
        place = f"{origin.kind} in namespace {origin.namespace}" if origin.namespace else origin.kind  # fmt: skip
        others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"not carried out for {place}{others}: {message}"

    def _tell(self, *, is_news: bool) -> None:
        for listener in self.on_change if is_news else ():
            listener()
