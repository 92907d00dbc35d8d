"""Kinds as policies write them, from `Pod` to `group/version/Kind/subresource` (row A-32).

Rules, exceptions, cleanup policies and webhook configurations all read kinds through this module, so that a kind that
reaches the webhook is a kind that a rule can match. Whether a text names a version is decided by its form alone, as
upstream does, never by asking a cluster.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from engine.lang import wildcard
from engine.lang.lazy_regex import regex
from engine.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.model import Review

_VERSION = regex(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?|\*")


@record
class KindFilter:
    """One kind to look for; every part may hold wildcards, and `*` is any.

    An empty `subresource` is the object itself only; `*` is the object and all its subresources.
    """

    group: str
    version: str
    kind: str
    subresource: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether nothing but an exact kind is asked for."""
        return (
            self.group == "*"
            and self.version == "*"
            and not self.subresource
            and not wildcard.has_wildcard(self.kind)
        )

    def matches(self, group: str, version: str, kind: str, subresource: str = "") -> bool:
        """Tell whether an object of this group, version and kind is meant.

        Updates of `pods/ephemeralcontainers` count as updates of the Pod (row A-40).
        """
        return (
            wildcard.match(self.kind, kind)
            and wildcard.match(self.group, group)
            and wildcard.match(self.version, version)
            and (
                wildcard.match(self.subresource, subresource)
                or (not self.subresource and _is_part_of_pod(kind, subresource))
            )
        )


NO_KIND = KindFilter("", "", "", "")
"""What a text with too many segments means; it matches nothing because no object has an empty kind."""


@lru_cache(maxsize=2048)
def parse_kind(text: str) -> KindFilter:
    """Read one entry of a `kinds` list (row A-32).

    `*/sub` is told from `*/Kind` by its lower-case letters, and `version/Kind/sub` from `group/version/Kind` by whether
    the first segment looks like a version; so `*/*/Kind` names a subresource, as upstream reads it.
    """
    head, slash, last = text.rpartition("/")
    parts = [*head.split("/"), *last.split(".")] if slash else last.split(".")
    match parts:
        case [kind]:
            return KindFilter("*", "*", kind)
        case ["*", last] if last == last.lower():
            return KindFilter("*", "*", "*", last)
        case [version, kind] if is_version(version):
            return KindFilter("*", version, kind)
        case [kind, subresource]:
            return KindFilter("*", "*", kind, subresource)
        case [version, kind, subresource] if is_version(version):
            return KindFilter("*", version, kind, subresource)
        case [group, version, kind]:
            return KindFilter(group, version, kind)
        case [group, version, kind, subresource]:
            return KindFilter(group, version, kind, subresource)
    return NO_KIND


def is_version(segment: str) -> bool:
    """Tell whether a segment of a kind is read as an API version."""
    return _VERSION.fullmatch(segment) is not None


def _is_part_of_pod(kind: str, subresource: str) -> bool:
    return subresource == "ephemeralcontainers" and kind == "Pod"


def plain_kinds(filters: Iterable[KindFilter]) -> frozenset[str] | None:
    """Return the kind names that the filters can match at most; None when any of them holds a wildcard."""
    names = [item.kind for item in filters]
    return None if any(map(wildcard.has_wildcard, names)) else frozenset(names)


def compile_kinds(filters: tuple[KindFilter, ...]) -> Callable[[Review], bool]:
    """Compile kinds into one test; a list of plain kinds is one set look-up."""
    if all(item.is_plain for item in filters):
        return _among(frozenset(item.kind for item in filters))
    names = plain_kinds(filters)
    matchers = tuple(item.matches for item in filters)

    def among(review: Review) -> bool:
        kind = review.kind
        if names is not None and kind not in names:
            return False
        group, version, subresource = review.group, review.version, review.subresource
        return any(matches(group, version, kind, subresource) for matches in matchers)

    return among


def _among(names: frozenset[str]) -> Callable[[Review], bool]:
    def among(review: Review) -> bool:
        kind = review.kind
        return kind in names and (
            not review.subresource or _is_part_of_pod(kind, review.subresource)
        )

    return among
