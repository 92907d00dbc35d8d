"""What a patch still holds once its conditions have been tested: the conditions themselves, and maps that they leave empty.

Apart from `conditions` because it looks at the patch alone. Observed and kept: a map that is empty, or becomes so, leaves the
patch with its key (`emptyDir: {}` does nothing), and so does a list that only held elements with anchors; an empty list stays.
A condition whose value still holds something (`(hostPath): {path: "*"}`) becomes part of the patch under its bare key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.lang.pattern import Anchor, parse_key

if TYPE_CHECKING:
    from engine.model import Json

CONDITIONS: Final = frozenset({Anchor.CONDITION, Anchor.GLOBAL})
"""The anchors that ask for something; `+(k)` does not."""

_RESOLVED: Final = CONDITIONS | {Anchor.ADDITION}


def has_anchors(value: Json, kinds: frozenset[Anchor] = _RESOLVED) -> bool:
    """Tell whether a patch holds, anywhere, an anchor of these kinds; by default those that mean something in mutation."""
    if isinstance(value, dict):
        return any(
            parse_key(key)[0] in kinds or has_anchors(child, kinds) for key, child in value.items()
        )
    return isinstance(value, list) and any(has_anchors(item, kinds) for item in value)


def strip_anchors(patch: Json) -> bool:
    """Take anchors and what they leave empty out of a patch, in place; tell whether anything remains.

    INVARIANT: the caller owns the patch and has bounded its depth.
    """
    return not _strip(patch, scalars_go=False)


def _strip(node: Json, *, scalars_go: bool) -> bool:
    """Strip one value in place; True means that it should go altogether."""
    if isinstance(node, dict):
        return _strip_map(node)
    if isinstance(node, list):
        return _strip_list(node)
    return scalars_go


def _strip_map(node: dict[str, Json]) -> bool:
    kept = [key for key in _conditions(node) if not _drop(node, key, scalars_go=True)]
    if kept:
        _rename_anchors(node)
    for key in list(node):
        _drop(node, key, scalars_go=False)
    return not node


def _strip_list(node: list[Json]) -> bool:
    if not node:
        return False
    node[:] = [
        item for item in node if not has_anchors(item) and not _strip(item, scalars_go=False)
    ]
    return not node


def _conditions(node: dict[str, Json]) -> list[str]:
    return [key for key in node if parse_key(key)[0] in CONDITIONS]


def _drop(node: dict[str, Json], key: str, *, scalars_go: bool) -> bool:
    goes = _strip(node[key], scalars_go=scalars_go)
    if goes:
        del node[key]
    return goes


def _rename_anchors(node: dict[str, Json]) -> None:
    for key in list(node):
        anchor, bare = parse_key(key)
        if anchor in _RESOLVED:
            node[bare] = node.pop(key)
