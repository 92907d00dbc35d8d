"""Tests of one key of a map, one maker per anchor (rows P-01 to P-06).

A maker takes the bare key and the compiled check of its value, so that wildcard keys can be bound to a key of the object
without compiling the value again. Each test looks itself whether it is given a map, so that it is the whole test of a map
pattern with no other key: most levels of most patterns are, and a call costs more than a look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import mismatches
from .anchors import Anchor
from .mismatches import Fault, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    Check = Callable[[Json], Fault | None]
    Entry = Callable[[Json], Fault | None]


def plain(key: str, check: Check) -> Entry:
    """Make the test of an ordinary key: an absent one counts as null (row P-10)."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        fault = check(resource.get(key))
        return None if fault is None else fault.under(key)

    return entry


def present(key: str) -> Entry:
    """Make the test of the pattern `"*"`: the key is there and not null (row P-11)."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        return mismatches.not_found(key) if resource.get(key) is None else None

    return entry


def if_present(key: str, check: Check) -> Entry:
    """Make the test of an equality or existence anchor: the value counts only where the key is there."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        if key not in resource:
            return None
        fault = check(resource[key])
        return None if fault is None else fault.under(key)

    return entry


def condition(key: str, check: Check) -> Entry:
    """Make the test of a conditional anchor: absent or different means that the map is not applicable."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        if key not in resource:
            return mismatches.condition_missing(key).turned(Kind.CONDITION)
        fault = check(resource[key])
        return None if fault is None else fault.under(key).turned(Kind.CONDITION)

    return entry


def anywhere(key: str, check: Check) -> Entry:
    """Make the test of a global anchor: present and different means that the rule is not applicable."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        if key not in resource:
            return None
        fault = check(resource[key])
        return None if fault is None else fault.under(key).turned(Kind.GLOBAL)

    return entry


def absent(key: str) -> Entry:
    """Make the test of a negation anchor: the key must not be there, whatever its value."""

    def entry(resource: Json) -> Fault | None:
        if not isinstance(resource, dict):
            return mismatches.not_a_map(resource)
        return mismatches.not_allowed(key) if key in resource else None

    return entry


MAKERS: Final = {
    Anchor.NONE: plain,
    Anchor.ADDITION: plain,
    Anchor.EQUALITY: if_present,
    Anchor.EXISTENCE: if_present,
    Anchor.CONDITION: condition,
    Anchor.GLOBAL: anywhere,
}
