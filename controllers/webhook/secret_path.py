"""A path that only the API server is told, for clusters whose API server shows webhooks no certificate (security.md T0).

It is in the webhook configurations, which administrators may read, and in what the API server says to users when a call fails
(A11). Therefore it is another one each day; the one of the day before is accepted until the configurations have followed. It
stands in for a certificate only together with the NetworkPolicy that is shipped.
"""

from __future__ import annotations

import hmac
from base64 import b32encode
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_DAY: Final = 86_400
_LENGTH: Final = 32
_SKEWED: Final = (0, -1, 1)
"""Days that are accepted, from today's: clocks of replicas may differ around midnight."""


class SecretPath:
    """The paths of these days; `key` is the one that all replicas share."""

    def __init__(self, key: bytes, now: Callable[[], datetime]) -> None:
        self._key = hmac.digest(key, b"kpolicy webhook path", "sha256")
        self._now = now

    def __repr__(self) -> str:
        return "<SecretPath>"

    @property
    def current(self) -> str:
        """What begins the paths that the API server is to call now."""
        return f"/{self._of(self._day())}"

    def inner(self, path: str) -> str | None:
        """Return the path behind the secret one, None where a path does not begin with it; compared in constant time."""
        first, slash, rest = path[1:].partition("/")
        day = self._day()
        given = first.encode("utf-8", "surrogatepass")
        good = [hmac.compare_digest(self._of(day + ago).encode(), given) for ago in _SKEWED]
        return f"/{rest}" if slash and any(good) else None

    def _day(self) -> int:
        return int(self._now().timestamp()) // _DAY

    def _of(self, day: int) -> str:
        digest = hmac.digest(self._key, str(day).encode(), "sha256")
        return b32encode(digest).decode().lower()[:_LENGTH]
