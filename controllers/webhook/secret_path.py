"""Paths that only the API server is told, for clusters whose API server shows webhooks no certificate.

They are in the webhook configurations, which administrators may read, and in what the API server says to users when a call
fails (A11). Therefore they are drawn by chance, another one for each place that is called, and others after every outage, start
and hour; the ones before are accepted until the configurations have followed, and the plain ones never after that.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.digest import spelled
from engine.lang import rfc3339
from engine.model.kinds import CEL_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLACES: Final = (
    "validate", "mutate", "policyvalidate", "policymutate", "exceptionvalidate", "celexception",
    "cleanupvalidate", "grantvalidate", "auditnote", "globalcontextvalidate", "verifymutate", "verifyttl",
    *(kind.route for kind in CEL_KINDS if kind.route),
)  # fmt: skip
"""First segments of the paths that reviews are posted to: each has a secret of its own before it."""
OVERLAP: Final = timedelta(seconds=10)
"""How long API servers may take to follow the configurations."""
_LENGTH: Final = 32


@dataclass(frozen=True, slots=True)
class Shared:
    """What replicas share of how callers prove themselves.

    `current` and `previous` are what paths follow from, `written_at` is when the configurations had all of the current ones.
    `authority` (PEM) signed the certificate that the API server shows, if it ever was named; `names` are the common names.
    """

    current: bytes = field(default=b"", repr=False)
    previous: bytes = field(default=b"", repr=False)
    rotated_at: datetime | None = None
    written_at: datetime | None = None
    was_written: bool = False
    authority: bytes = field(default=b"", repr=False)
    names: tuple[str, ...] = ()
    certified_at: datetime | None = None

    def prefix(self, place: str, *, previous: bool = False) -> str:
        """Return what begins the path of a place; never empty."""
        seed = self.previous if previous else self.current
        digest = hmac.digest(seed, f"kpolicy webhook path {place}".encode(), "sha256")
        return spelled(digest, _LENGTH)

    def hide(self, text: str) -> str:
        """Return a text of somebody else's without the paths that it may name."""
        for seed_is_old in (False, True):
            for place in PLACES:
                text = text.replace(self.prefix(place, previous=seed_is_old), "...")
        return text

    def packed(self) -> str:
        """Return it as a text for a Secret or for a worker."""
        made = {
            "current": base64.b64encode(self.current).decode(),
            "previous": base64.b64encode(self.previous).decode(),
            "rotatedAt": self.rotated_at.isoformat() if self.rotated_at else "",
            "writtenAt": self.written_at.isoformat() if self.written_at else "",
            "wasWritten": self.was_written,
            "authority": base64.b64encode(self.authority).decode(),
            "names": list(self.names),
            "certifiedAt": self.certified_at.isoformat() if self.certified_at else "",
        }
        return base64.b64encode(orjson.dumps(made)).decode()


def unpacked(text: str) -> Shared | None:
    """Return what a text holds, None where it was not written by us."""
    try:
        made = orjson.loads(base64.b64decode(text, validate=True))
        current = _bytes(made, "current")
        if len(current) < _LENGTH:
            return None
        return Shared(
            current=current,
            previous=_bytes(made, "previous"),
            rotated_at=rfc3339.read(made.get("rotatedAt")),
            written_at=rfc3339.read(made.get("writtenAt")),
            was_written=made.get("wasWritten") is True,
            authority=_bytes(made, "authority"),
            names=tuple(map(str, made.get("names") or ())),
            certified_at=rfc3339.read(made.get("certifiedAt")),
        )
    except (ValueError, TypeError, AttributeError, binascii.Error):
        return None


class Paths:
    """The paths that are accepted now; `take` over what replicas share of them."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._good: Mapping[str, tuple[bytes, ...]] = {}
        self._ends: datetime | None = None
        self._certificate_from: datetime | None = None
        self.are_known = False

    def __repr__(self) -> str:
        return "<Paths>"

    def take(self, shared: Shared) -> None:
        """Accept the paths of now, and those before until the configurations have followed."""
        seeds = (False, True) if shared.previous else (False,)
        self._good = {
            place: tuple(shared.prefix(place, previous=is_old).encode() for is_old in seeds)
            for place in PLACES
        }
        written = shared.written_at
        self._ends = written + OVERLAP if shared.previous and written else None
        self._certificate_from = shared.certified_at if shared.was_written else None
        self.are_known = shared.was_written

    def inner(self, path: str) -> str | None:
        """Return the path behind the secret one, None where a path does not begin with that of its place; in constant time."""
        first, _, rest = path[1:].partition("/")
        place, _, _ = rest.partition("/")
        expected = self._good.get(place)
        if expected is None:
            return None
        if self._ends is not None and self._now() >= self._ends:
            self._good = {name: known[:1] for name, known in self._good.items()}
            self._ends, expected = None, expected[:1]
        given = first.encode("utf-8", "surrogatepass")
        good = [hmac.compare_digest(one, given) for one in expected]
        return f"/{rest}" if any(good) else None

    def outlive_certificate(self) -> bool:
        """Tell whether connections without a certificate may still end what they began, just after one became known."""
        began = self._certificate_from
        return began is not None and self._now() < began + OVERLAP


def _bytes(made: Mapping[str, Any], name: str) -> bytes:
    return base64.b64decode(made.get(name) or "", validate=True)
