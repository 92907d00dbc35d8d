"""The JSON patch (RFC 6902) that turns one object into another: what the webhook answers with.

Parts that are the very same value are not looked at, so the cost follows the size of the change. Patches are correct, not the
shortest possible: of lists only the stretch between the first and the last difference is compared, place by place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import pointer
from .values import DEEPEST, same

if TYPE_CHECKING:
    from engine.model import Json

    Path = tuple[str | int, ...]
    Operations = list[dict[str, Json]]


def diff(before: Json, after: Json) -> list[dict[str, Json]]:
    """Return the operations (`add`, `remove`, `replace`) that make `before` into `after`; none when they are the same.

    Operations hold parts of `after` itself. What differs below the deepest level is replaced as a whole.
    """
    found: Operations = []
    _compare(before, after, (), found)
    return found


def _compare(before: Json, after: Json, path: Path, found: Operations) -> None:
    if before is after:
        return
    if len(path) < DEEPEST and isinstance(before, dict) and isinstance(after, dict):
        _compare_maps(before, after, path, found)
    elif len(path) < DEEPEST and isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, found)
    elif not same(before, after):
        found.append(_operation("replace", path, after))


def _compare_maps(before: Json, after: Json, path: Path, found: Operations) -> None:
    for key in sorted(before.keys() | after.keys()):
        inner = (*path, key)
        if key not in after:
            found.append({"op": "remove", "path": pointer.join(inner)})
        elif key not in before:
            found.append(_operation("add", inner, after[key]))
        else:
            _compare(before[key], after[key], inner, found)


def _compare_lists(before: Json, after: Json, path: Path, found: Operations) -> None:
    start = _common(before, after)
    tail = _common(before[start:][::-1], after[start:][::-1])
    old_end, new_end = len(before) - tail, len(after) - tail
    both_end = min(old_end, new_end)
    for index in range(start, both_end):
        _compare(before[index], after[index], (*path, index), found)
    for index in range(old_end - 1, both_end - 1, -1):
        found.append({"op": "remove", "path": pointer.join((*path, index))})
    for index in range(both_end, new_end):
        found.append(_operation("add", (*path, index), after[index]))


def _common(before: list[Json], after: list[Json]) -> int:
    """Return how many elements at the start of two lists are the same."""
    for count, (one, other) in enumerate(zip(before, after, strict=False)):
        if not same(one, other):
            return count
    return min(len(before), len(after))


def _operation(kind: str, path: Path, value: Json) -> dict[str, Json]:
    return {"op": kind, "path": pointer.join(path), "value": value}
