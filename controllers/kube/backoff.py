"""Pauses that grow: how long to wait after the first, second, … failure in a row."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

chance: Callable[[], float] = random.SystemRandom().random
"""Numbers from 0 to 1, for spreading requests; nothing secret depends on them."""


@dataclass(slots=True)
class Backoff:
    """Doubling pauses between `least` and `most` seconds, of which the upper half is left to chance.

    The spread keeps many clients that lost one server from coming back at the same instant.
    """

    least: float = 0.8
    most: float = 30.0
    chance: Callable[[], float] = field(default=chance, repr=False)
    failures: int = 0

    def next(self) -> float:
        """Count a failure and return the seconds to wait."""
        pause = min(self.least * 2.0 ** min(self.failures, 64), self.most)
        self.failures += 1
        return pause * (0.5 + 0.5 * self.chance())

    def reset(self) -> None:
        """Start again from the shortest pause."""
        self.failures = 0
