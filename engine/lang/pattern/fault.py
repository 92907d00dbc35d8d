"""How a pattern reports that an object does not fit: built from the leaf upwards, and only then.

A check that passes returns None and makes nothing. A leaf that fails makes a `Fault`; every level above it adds its own
segment, so no path is carried downwards. `Miss` is what callers outside get.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(Enum):
    """What a fault means to the levels above it."""

    FAIL = "fail"
    CONDITION = "conditional anchor mismatch: "
    GLOBAL = "global anchor mismatch: "


class Miss:
    """Why an object does not satisfy a pattern.

    `skip` means that the pattern does not apply to the object; `error` is a failure without a place (row P-42).
    `path` is the slash form of row P-49, empty unless `kind` is `fail`.
    """

    __slots__ = ("_fault", "kind", "path")

    def __init__(self, kind: Literal["fail", "skip", "error"], path: str, fault: Fault) -> None:
        self.kind = kind
        self.path = path
        self._fault = fault

    def __repr__(self) -> str:
        return f"Miss({self.kind!r}, {self.path!r})"

    @property
    def message(self) -> str:
        """Kyverno's text of the mismatch, written only when somebody asks."""
        return self._fault.text("/")


class Fault:
    """A mismatch on its way up: what is wrong, the segments collected so far, and what the anchors above made of it."""

    __slots__ = ("kind", "parts", "placed", "prefix", "segments", "words")

    def __init__(
        self,
        words: Callable[[str], str] | None = None,
        *segments: str,
        parts: tuple[Fault, ...] = (),
        placed: bool = True,
    ) -> None:
        self.words = words
        self.segments = list(segments)
        self.parts = parts
        self.placed = placed
        self.kind = Kind.FAIL
        self.prefix = ""

    def under(self, segment: str) -> Fault:
        """Add the segment of the level above and return the fault itself."""
        self.segments.append(segment)
        return self

    def turned(self, kind: Kind) -> Fault:
        """Make the fault a skip of the given anchor, whatever it was, and return it."""
        self.kind = kind
        self.prefix = kind.value + self.prefix
        return self

    def miss(self) -> Miss:
        """Return the finished report of a whole pattern."""
        if self.kind is not Kind.FAIL:
            return Miss("skip", "", self)
        return Miss("fail", self._path("/"), self) if self.placed else Miss("error", "", self)

    def _path(self, base: str) -> str:
        return "".join([base, *(f"{segment}/" for segment in reversed(self.segments))])

    def text(self, base: str) -> str:
        """Return the words of the mismatch, with paths that begin at `base`."""
        path = self._path(base)
        if self.words is not None:
            return self.prefix + self.words(path)
        return self.prefix + "; ".join([part.text(path) for part in self.parts])


def combined(faults: list[Fault]) -> Fault:
    """Join the skips of several keys or elements into one; a single one stays itself in effect."""
    whole = Fault(parts=tuple(faults))
    whole.kind = faults[0].kind
    return whole
