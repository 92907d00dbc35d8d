"""Counts of wrong codes and of codes handed out, per user and in memory: what a guesser or a loop is slowed down by.

Each replica counts by itself, so that the limits are per replica; the length of a code is what guessing fails at.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

WINDOW: Final = 60.0
MOST_WRONG: Final = 10
MOST_MINTED: Final = 30
_MOST_USERS: Final = 4096


class Throttle:
    """How often something happened to a user within the last minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: OrderedDict[str, deque[datetime]] = OrderedDict()

    def is_exhausted(self, user: str, now: datetime) -> bool:
        """Tell whether it happened too often."""
        seen = self._seen.get(user)
        if seen is None:
            return False
        while seen and (now - seen[0]).total_seconds() >= WINDOW:
            seen.popleft()
        return len(seen) >= self._most

    def count(self, user: str, now: datetime) -> None:
        """Note that it happened."""
        seen = self._seen.setdefault(user, deque(maxlen=self._most))
        self._seen.move_to_end(user)
        seen.append(now)
        if len(self._seen) > _MOST_USERS:
            self._seen.popitem(last=False)
