"""How many objects are new of late: whoever can wait stands back while somebody creates many.

One for all that stands back together. Watches that rest count what they do not see (see `reflector`).
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .clock import Clock

RUSH: Final = 10.0
"""Objects a second from which on it is a rush."""

PATIENCE: Final = 30.0
"""Seconds of a rush after which nobody stands back as before: as long as upstream lets reports gather."""

_MEMORY = 1.0


class Rush:
    """Is told of every new object, and tells how many there are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._level, self._level_at = 0.0, clock.monotonic()
        self._resting = 0

    def __repr__(self) -> str:
        return f"<Rush {self.rate:.0f} objects a second>"

    @property
    def rate(self) -> float:
        """About how many objects a second are new, of late."""
        passed = self._clock.monotonic() - self._level_at
        return self._level * math.exp(-passed / _MEMORY) / _MEMORY

    @property
    def is_full(self) -> bool:
        """Tell whether so many are new that others should not be kept waiting."""
        return self.rate >= RUSH

    @property
    def is_on(self) -> bool:
        """Tell whether to stand back: so many are new, or were, and a watch that rested has not seen yet what is there."""
        return self._resting > 0 or self.is_full

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Have the rush last as long as the block."""
        self._resting += 1
        try:
            yield
        finally:
            self._resting -= 1

    def created(self, count: int = 1) -> None:
        """Note that objects are new."""
        self._level = self.rate * _MEMORY + count
        self._level_at = self._clock.monotonic()
