"""The faults that checks report, with Kyverno's words for each; apart from the checks so that those stay readable."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Literal

from engine.errors import LimitError
from engine.lang import gotext

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json


def differs(value: Json, pattern: Json) -> Fault:
    """Report a value that a scalar pattern does not allow."""
    return Fault(
        lambda path: (
            f"resource value '{_shown(value)}' does not match '{_shown(pattern)}' at path {path}"
        )
    )


def not_a_map(value: Json) -> Fault:
    """Report something else where the pattern has a map."""
    return Fault(
        lambda path: (
            f"pattern and resource have different structures. Path: {path}. "
            f"Expected map[string]interface {{}}, found {_type_name(value)}"
        )
    )


def not_a_list() -> Fault:
    """Report something else where the pattern has a list."""
    return Fault(
        lambda path: (
            f"validation rule failed at path {path}, resource does not satisfy the expected overlay pattern"
        )
    )


def empty_pattern() -> Fault:
    """Report a list that meets an empty list pattern, which nothing satisfies (row P-14)."""
    return Fault(lambda _path: "pattern Array empty")


def too_short(found: int, wanted: int) -> Fault:
    """Report a list with fewer elements than a pattern that goes by position (row P-14)."""
    return Fault(
        lambda _path: (
            f"validate Array failed, array length mismatch, resource Array len is {found} "
            f"and pattern Array len is {wanted}"
        ),
        placed=False,
    )


def not_found(key: str) -> Fault:
    """Report a key that must be there and not null (row P-11); the path stays that of the map around it."""
    return Fault(lambda path: f"{path}/{key} not found")


def condition_missing(key: str) -> Fault:
    """Report that the key of a condition is absent (row P-01)."""
    return Fault(lambda _path: "conditional anchor key doesn't exist in the resource", key)


def not_allowed(key: str) -> Fault:
    """Report a key that must be absent (row P-04)."""
    return Fault(lambda path: f"negation anchor matched in resource: {path} is not allowed", key)


def no_element_fits() -> Fault:
    """Report a list of which no element satisfies an existence anchor (row P-05)."""
    return Fault(lambda path: f"existence anchor validation failed at path {path}")


def unsuitable(what: str, value: Json, expected: str) -> Fault:
    """Report a `resource` or `pattern` of a type that an existence anchor cannot work with."""
    return Fault(lambda _path: f"invalid {what} type {_type_name(value)}: {expected}")


def _shown(value: Json) -> str:
    # A mismatch must stay a mismatch, so a value that cannot be written out does not turn it into an error.
    try:
        return gotext.plain(value)
    except LimitError as error:
        return f"({error.message})"


def _type_name(value: Json) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    return {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")


# How a pattern reports that an object does not fit: built from the leaf upwards, and only then.
#
# A check that passes returns None and makes nothing. A leaf that fails makes a `Fault`; every level above it adds its own
# segment, so no path is carried downwards. `Miss` is what callers outside get.


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
