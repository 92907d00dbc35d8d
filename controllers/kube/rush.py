"""How much is asked of late (objects that are new, requests that are decided): whoever can wait stands back while it is much.

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
"""How many a second are a rush."""

PATIENCE: Final = 30.0
"""Seconds of a rush after which nobody stands back as before: as long as upstream lets reports gather."""

_MEMORY = 1.0


class Rush:
    """Is told of each, and tells how many there are."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._level, self._level_at = 0.0, clock.monotonic()
        self._resting = 0

    @property
    def rate(self) -> float:
        """About how many there are a second, of late."""
        passed = self._clock.monotonic() - self._level_at
        return self._level * math.exp(-passed / _MEMORY) / _MEMORY

    @property
    def is_full(self) -> bool:
        """Tell whether there are so many that they should not be kept waiting."""
        return self.rate >= RUSH

    @property
    def is_on(self) -> bool:
        """Tell whether to stand back: there are so many, or were, and a watch that rested has not seen yet what is there."""
        return self._resting > 0 or self.is_full

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Have the rush last as long as the block."""
        self._resting += 1
        try:
            yield
        finally:
            self._resting -= 1

    def count(self, number: int = 1) -> None:
        """Note that there were some more."""
        self._level = self.rate * _MEMORY + number
        self._level_at = self._clock.monotonic()
