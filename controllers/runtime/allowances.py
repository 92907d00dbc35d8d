"""How much time for heavy evaluations each tenant has: a leaky bucket for every namespace, for cluster-scoped objects every user.

Without it one tenant's heavy objects would take the time of all others; with it they take that of their own namespace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

CAPACITY: Final = 3.0
"""Seconds that a tenant may use at once."""
REFILL: Final = 0.25
"""Seconds that it gets back each second: a quarter of a core."""
FLOOR: Final = -1.0
"""Debt from which on nothing of a tenant's is evaluated at all."""
_MOST: Final = 4096


class Allowances:
    """What is left to whom. `now` is a monotonic clock. Tenants that have used nothing lately are not remembered."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._left: dict[str, tuple[float, float]] = {}

    @property
    def are_untouched(self) -> bool:
        """Whether nobody has used anything lately."""
        return not self._left

    def left(self, tenant: str) -> float:
        """Return the seconds that a tenant has, less than zero where it owes some."""
        found = self._left.get(tenant)
        if found is None:
            return CAPACITY
        seconds, at = found
        seconds += (self._now() - at) * REFILL
        if seconds < CAPACITY:
            return seconds
        del self._left[tenant]
        return CAPACITY

    def take(self, tenant: str, seconds: float) -> None:
        """Take seconds from a tenant; less than zero gives some back."""
        if len(self._left) >= _MOST and tenant not in self._left:
            self._forget()
        self._left[tenant] = (self.left(tenant) - seconds, self._now())

    def _forget(self) -> None:
        """Make room: by those that have all again, else by the one that has most."""
        for tenant in list(self._left):
            self.left(tenant)
        if len(self._left) >= _MOST:
            del self._left[max(self._left, key=self.left)]
