"""Reading of JSON patches (RFC 6902): YAML or JSON text in, checked operations out (row A-82).

Apart from `json6902` because texts are read once, when a policy is compiled, and applied often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import DocumentError, EvaluationError, LimitError
from engine.lang.gotext import compact_json
from engine.lang.yaml import load
from engine.record import record

from . import pointer
from .values import DEEPEST, same, thawed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.model import Json

    Path = tuple[str | int, ...]
    Operations = list[dict[str, Json]]

_KINDS: Final = frozenset({"add", "remove", "replace", "move", "copy", "test"})
_WITH_VALUE: Final = frozenset({"add", "replace"})
_WITH_SOURCE: Final = frozenset({"move", "copy"})
_MOST_OPERATIONS: Final = 10_000


@record
class Operation:
    """One checked operation; `path` and `source` as written, for messages."""

    kind: str
    path: str
    source: str = ""
    value: Json = None


def parse_patch(text: str) -> list[Operation]:
    """Read a patch from YAML or JSON text.

    Raises EvaluationError for text that is no list of operations, in Kyverno's words where the operations are at fault.
    """
    try:
        document = load(text)
    except DocumentError as error:
        raise EvaluationError(
            f"failed to convert patchesJSON6902 to JSON: {error.message}"
        ) from error
    return read_operations([] if document is None else document)


def read_operations(document: Json) -> list[Operation]:
    """Check a decoded patch; raises EvaluationError for anything but a list of operations."""
    if not isinstance(document, list):
        raise EvaluationError("failed to decode patches: a patch is a list of operations")
    if len(document) > _MOST_OPERATIONS:
        raise LimitError(f"patch has more than {_MOST_OPERATIONS} operations")
    return [_read(entry) for entry in document]


def _read(entry: Json) -> Operation:
    if not isinstance(entry, dict):
        raise EvaluationError("failed to decode patches: an operation is a map")
    fault = _fault(entry)
    if fault:
        raise EvaluationError(f"invalid operation {compact_json(entry)}: {fault}")
    kind = entry["op"]
    return Operation(
        kind,
        entry["path"],
        entry["from"] if kind in _WITH_SOURCE else "",
        thawed(entry.get("value")),
    )


def _fault(entry: Mapping[str, Json]) -> str | None:
    kind = entry.get("op")
    if not isinstance(kind, str) or kind not in _KINDS:
        return "unsupported operation"
    if kind in _WITH_VALUE and "value" not in entry:
        return "failed to decode 'value': operation missing value field: missing value"
    if kind in _WITH_SOURCE and not isinstance(entry.get("from"), str):
        return "failed to decode 'from': operation missing from field: missing value"
    if not isinstance(entry.get("path"), str):
        return "failed to decode 'path': operation missing path field: missing value"
    return None


# The JSON patch (RFC 6902) that turns one object into another: what the webhook answers with.
#
# Parts that are the very same value are not looked at, so the cost follows the size of the change. Patches are correct, not the
# shortest possible: of lists only the stretch between the first and the last difference is compared, place by place.


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
