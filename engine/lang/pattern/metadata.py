"""Wildcards in label and annotation keys of a pattern (row P-15).

They count only below a `metadata` key, because that is where keys are the users' own names. A wildcard key stands for the
first key of the object, in alphabetical order, that it fits; where none fits it is looked up as it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang import wildcard

from .anchors import parse_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Object

_TAGS: Final = ("labels", "annotations")
_METADATA: Final = "metadata"


def role_below(role: str, name: str) -> str:
    """Return the role of the value under a bare key: `metadata`, `tags` for a map of labels or annotations, or none."""
    if name == _METADATA:
        return _METADATA
    return "tags" if role == _METADATA and name in _TAGS else ""


def has_wild_keys(pattern: Object, role: str) -> bool:
    """Tell whether keys of this map pattern are wildcards."""
    return role == "tags" and any(map(wildcard.has_wildcard, pattern))


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
