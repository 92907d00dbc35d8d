"""Patches without variables, made ready once for all objects.

For mutate rules whose patch is the same for every object. Most of them set a few fields, some of them only where they are
absent; these need no private copy and no search for anchors. All others go the general way of `handler`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from engine.lang.pattern import Anchor, parse_key

from .conditions import CONDITIONS
from .handler import apply_json6902, apply_strategic
from .operations import Operation, parse_patch

if TYPE_CHECKING:
    from engine.model import Json, Object


Patcher = Callable[["Object"], "Object"]
_Entry = tuple[str, bool, "Json", "_Entries | None"]
"""A bare key, whether it counts only where the object lacks it, its value, and the entries of a value that is a map."""

_Entries = tuple[_Entry, ...]
_DEEPEST: Final = 20
"""Levels of a patch that is made ready; a deeper one goes the general way."""


def ready_strategic(patch: Json) -> Patcher:
    """Return what merges a patchStrategicMerge free of variables; raises as `apply_strategic` when it is called."""
    entries = _entries(patch, 0)
    if entries is None:
        return lambda resource: apply_strategic(patch, resource)
    known = entries

    def apply(resource: Object) -> Object:
        settled = _settled(known, resource)
        # most objects have what a patch adds where it is missing
        return apply_strategic(settled, resource, is_plain=True) if settled else resource

    return apply


def ready_json6902(patch: Json) -> Patcher:
    """Return what applies a patchesJson6902 free of variables; raises as `apply_json6902` when it is called.

    A text is read with the first object, because reading it takes longer than most commands have to start.
    """
    if not isinstance(patch, str):
        return lambda resource: apply_json6902(patch, resource)
    read: list[Sequence[Operation]] = []

    def apply(resource: Object) -> Object:
        if read:
            return apply_json6902(read[0], resource)
        # a text that cannot be read says so where it is applied
        patched = apply_json6902(patch, resource)
        read.append(parse_patch(patch))
        return patched

    return apply


def _entries(patch: Json, depth: int) -> _Entries | None:
    """Take a map apart into entries, additions last as anchors leave them; None for what goes the general way."""
    if not isinstance(patch, dict) or depth >= _DEEPEST:
        return None
    plain: list[_Entry] = []
    additions: list[_Entry] = []
    for key, value in patch.items():
        anchor, bare = parse_key(key)
        is_addition = anchor is Anchor.ADDITION
        inner = _entries(value, depth + 1) if isinstance(value, dict) else None
        if anchor in CONDITIONS or not (inner is not None or _is_simple(value)):
            return None
        name = bare if is_addition else key
        (additions if is_addition else plain).append((name, is_addition, value, inner))
    made = (*plain, *additions)
    return made if len({entry[0] for entry in made}) == len(made) else None


def _is_simple(value: Json) -> bool:
    """Tell whether a value holds nothing in which anchors could stand."""
    if isinstance(value, list):
        return not any(isinstance(item, dict | list) for item in value)
    return not isinstance(value, dict)


def _settled(entries: _Entries, resource: Json) -> Object:
    """Return the patch without anchors, additions decided, and without maps that are empty."""
    made: Object = {}
    found = resource if isinstance(resource, dict) else {}
    for key, is_addition, value, inner in entries:
        if is_addition and key in found:
            continue
        if inner is None:
            made[key] = value
        elif below := _settled(inner, found.get(key)):
            made[key] = below
    return made
