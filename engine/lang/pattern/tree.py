"""Pattern trees compiled into nested closures over plain objects (rows P-07 to P-14).

Each closure takes the value at its place and returns None when it fits, else a `Fault`. The order of keys is Kyverno's
(row P-07), because the path in a message is that of the first mismatch.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from engine.lang import wildcard
from engine.record import record

from . import mismatches
from .anchors import Anchor, holds_anchor, parse_key
from .entries import MAKERS, absent, present
from .mismatches import Fault, Kind, combined
from .scalar import compile_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.model import Json, Object

    from .entries import Check, Entry

_Entries = tuple["tuple[Entry, ...]", "tuple[Entry, ...]", "tuple[Entry, ...]"]


@record
class _Slot:
    """One key of a map pattern: its group in the order of testing, and what makes its test for a bare name."""

    key: str
    name: str
    group: int
    make: Callable[[str], Entry]


def compile_element(pattern: Json, role: str = "") -> Check:
    """Compile a pattern of any shape; its depth must have been bounded before.

    `role` says whether the pattern stands for metadata or its labels, whose keys may be wildcards (row P-15).
    """
    if isinstance(pattern, dict):
        return _map(pattern, role)
    if isinstance(pattern, list):
        return _list(pattern)
    return _scalar(pattern)


def _scalar(pattern: Json) -> Check:
    fits = compile_scalar(pattern)

    def check(value: Json) -> Fault | None:
        if fits(value):
            return None
        if isinstance(value, list):
            for item in value:
                if not fits(item):
                    return mismatches.differs(value, pattern)
            return None
        return mismatches.differs(value, pattern)

    return check


def _map(pattern: Object, role: str) -> Check:
    slots = _slots(pattern, role)
    if role != "tags" or not any(map(wildcard.has_wildcard, pattern)):
        return _fixed_map(_ordered(slots))
    names_in = compile_names(pattern)

    def check(value: Json) -> Fault | None:
        if not isinstance(value, dict):
            return mismatches.not_a_map(value)
        names = names_in(value)
        known = [_Slot(slot.key, names[slot.key], slot.group, slot.make) for slot in slots]
        return _fixed_map(_ordered(known))(value)

    return check


def _slots(pattern: Object, role: str) -> list[_Slot]:
    slots = []
    for key, value in pattern.items():
        anchor, name = parse_key(key)
        make = _entry_maker(anchor, value, role_below(role, name))
        bare = key if anchor is Anchor.ADDITION else name
        slots.append(_Slot(key, bare, _group(anchor, value), make))
    return slots


def _group(anchor: Anchor, value: Json) -> int:
    if anchor is Anchor.CONDITION:
        return 0
    if anchor in (Anchor.EQUALITY, Anchor.NEGATION, Anchor.EXISTENCE):
        return 1
    return 2 if anchor is Anchor.GLOBAL or holds_anchor(value) else 3


def _ordered(slots: Iterable[_Slot]) -> _Entries:
    """Return the tests of conditions, of other anchors, and of all else, each in the order of testing (row P-07).

    Keys with anchors go up the alphabet, then global anchors and keys with anchors inside go down, then the rest up.
    """
    groups: list[list[Entry]] = [[], [], [], []]
    for slot in sorted(slots, key=lambda slot: slot.key):
        groups[slot.group].append(slot.make(slot.name))
    return tuple(groups[0]), tuple(groups[1]), (*reversed(groups[2]), *groups[3])


def _entry_maker(anchor: Anchor, pattern: Json, role: str) -> Callable[[str], Entry]:
    if anchor is Anchor.NEGATION:
        return absent
    if anchor in (Anchor.NONE, Anchor.ADDITION) and pattern == "*":
        return present
    check = _existence(pattern) if anchor is Anchor.EXISTENCE else compile_element(pattern, role)
    return partial(MAKERS[anchor], check=check)


def _fixed_map(entries: _Entries) -> Check:
    conditions, anchored, others = entries
    if len(anchored) > 1:
        rest = _anchored_map(anchored, _plain_map(others))
    else:
        rest = _plain_map((*anchored, *others))
    if not conditions:
        return rest

    def check(value: Json) -> Fault | None:
        if not isinstance(value, dict):
            return mismatches.not_a_map(value)
        skips: list[Fault] | None = None
        for entry in conditions:
            fault = entry(value)
            if fault is not None:
                skips = _added(skips, fault)
        return rest(value) if skips is None else combined(skips)

    return check


def _anchored_map(entries: tuple[Entry, ...], rest: Check) -> Check:
    """Compile keys with anchors, of which one that does not apply leaves the others their say (row P-07)."""

    def check(value: Json) -> Fault | None:
        if not isinstance(value, dict):
            return mismatches.not_a_map(value)
        skips: list[Fault] | None = None
        for entry in entries:
            fault = entry(value)
            if fault is None:
                continue
            if fault.kind is not Kind.CONDITION:
                return fault
            skips = _added(skips, fault)
        return rest(value) if skips is None or len(skips) < len(entries) else combined(skips)

    return check


def _plain_map(entries: tuple[Entry, ...]) -> Check:
    if len(entries) == 1:
        return entries[0]

    def check(value: Json) -> Fault | None:
        if not isinstance(value, dict):
            return mismatches.not_a_map(value)
        for entry in entries:
            fault = entry(value)
            if fault is not None:
                return fault
        return None

    return check


def _existence(pattern: Json) -> Check:
    """Compile the value of an existence anchor: each of its maps must fit at least one element (row P-05)."""
    wanted = pattern if isinstance(pattern, list) else []
    checks = [
        _some_element(compile_element(item)) if isinstance(item, dict) else _no_map(item)
        for item in wanted
    ]

    def check(value: Json) -> Fault | None:
        if not isinstance(value, list):
            expected = "Resource has to be a list for existence anchor ^()"
            return mismatches.unsuitable("resource", value, expected)
        if wanted is not pattern:
            expected = "Pattern has to be of list to compare against resource"
            return mismatches.unsuitable("pattern", pattern, expected)
        for fits_one in checks:
            fault = fits_one(value)
            if fault is not None:
                return fault
        return None

    return check


def _some_element(check: Check) -> Check:
    def fits_one(items: list[Json]) -> Fault | None:
        for item in items:
            if check(item) is None:
                return None
        return mismatches.no_element_fits()

    return fits_one


def _no_map(item: Json) -> Check:
    expected = "Pattern has to be of type map to compare against items in resource"
    return lambda _items: mismatches.unsuitable("pattern", item, expected)


def _list(pattern: list[Json]) -> Check:
    if not pattern:
        return _of_list(lambda _value: mismatches.empty_pattern())
    first = pattern[0]
    if isinstance(first, dict):
        return _list_of_maps(compile_element(first))
    if isinstance(first, list):
        return _of_list(_positional([compile_element(item) for item in pattern]))
    return _of_list(_scalar(first))


def _of_list(check: Check) -> Check:
    return lambda value: check(value) if isinstance(value, list) else mismatches.not_a_list()


def _list_of_maps(check: Check) -> Check:
    def check_all(value: Json) -> Fault | None:
        if not isinstance(value, list):
            return mismatches.not_a_list()
        skips: list[Fault] | None = None
        applied = False
        for place, item in enumerate(value):
            fault = check(item)
            if fault is None:
                applied = True
                continue
            fault.under(str(place))
            if fault.kind is Kind.FAIL:
                return fault
            skips = _added(skips, fault)
        return None if applied or skips is None else combined(skips)

    return check_all


def _positional(checks: list[Check]) -> Check:
    wanted = len(checks)

    def check_all(value: list[Json]) -> Fault | None:
        if len(value) < wanted:
            return mismatches.too_short(len(value), wanted)
        skips: list[Fault] | None = None
        for place, check in enumerate(checks):
            fault = check(value[place])
            if fault is None:
                continue
            fault.under(str(place))
            if fault.kind is Kind.FAIL:
                return fault
            skips = _added(skips, fault)
        return combined(skips) if skips and len(skips) == wanted else None

    return check_all


def _added(faults: list[Fault] | None, fault: Fault) -> list[Fault]:
    if faults is None:
        return [fault]
    faults.append(fault)
    return faults


# Wildcards in label and annotation keys of a pattern (row P-15).
#
# They count only below a `metadata` key, because that is where keys are the users' own names. A wildcard key stands for the
# first key of the object, in alphabetical order, that it fits; where none fits it is looked up as it is written.

_METADATA: Final = "metadata"


def role_below(role: str, name: str) -> str:
    """Return the role of the value under a bare key: `metadata`, `tags` for a map of labels or annotations, or none."""
    if name == _METADATA:
        return _METADATA
    return "tags" if role == _METADATA and name in ("labels", "annotations") else ""


def compile_names(pattern: Object) -> Callable[[Object], dict[str, str]]:
    """Compile a map pattern into a function that gives, for each of its keys, the bare name it means in one object."""
    bare = {key: parse_key(key)[1] for key in pattern}
    wild = {
        key: wildcard.compiled(name) for key, name in bare.items() if wildcard.has_wildcard(name)
    }

    def names(found: Object) -> dict[str, str]:
        if not all(isinstance(value, str) for value in found.values()):
            return bare
        present = sorted(found)
        meant = {}
        for key, fits in wild.items():
            meant[key] = next((name for name in present if fits(name)), bare[key])
        return {**bare, **meant}

    return names
