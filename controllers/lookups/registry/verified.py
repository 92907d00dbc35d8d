"""Images that passed: for an hour the same question about the same digest needs no signatures gathered (row A-90b).

What is kept is that an image, by its digest, passed everything that one fingerprint stands for: whom a policy asks, about
what, with all variables put in. A policy that changes asks under another fingerprint, a tag that moves leads to another
digest, and only passes are kept, so that nothing here can be older than what it is an answer to. Upstream remembers by tag.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from controllers.kube.clock import SystemClock

if TYPE_CHECKING:
    from controllers.kube.clock import Clock

MOST_KEPT: Final = 1000
SECONDS: Final = 3600.0

_Key = tuple[str, str, str]


class VerifiedImages:
    """Fingerprint, repository and digest of what passed; the oldest goes when there is no room."""

    def __init__(
        self, clock: Clock | None = None, *, most: int = MOST_KEPT, seconds: float = SECONDS
    ) -> None:
        self._clock = clock or SystemClock()
        self._most = most
        self._seconds = seconds
        self._until: OrderedDict[_Key, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._until)

    def holds(self, fingerprint: str, repository: str, digest: str) -> bool:
        """Tell whether this passed, and not too long ago."""
        key = (fingerprint, repository, digest)
        until = self._until.get(key)
        if until is None:
            return False
        if until <= self._clock.monotonic():
            del self._until[key]
            return False
        return True

    def add(self, fingerprint: str, repository: str, digest: str) -> None:
        """Keep what passed just now; what is kept already does not live longer by it."""
        key = (fingerprint, repository, digest)
        if self.holds(*key):
            return
        if len(self._until) >= self._most:
            self._until.popitem(last=False)
        self._until[key] = self._clock.monotonic() + self._seconds
