"""Reading of JSON patches (RFC 6902): YAML or JSON text in, checked operations out (row A-82).

Apart from `json6902` because texts are read once, when a policy is compiled, and applied often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import DocumentError, EvaluationError, LimitError
from engine.lang.gotext import compact_json
from engine.lang.yaml import load
from engine.record import record

from .values import thawed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.model import Json

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


def refusal(operations: Sequence[Operation]) -> str | None:
    """Return the first path that does not begin with a slash, None where all do; policies with such a path are refused."""
    return next((op.path for op in operations if not op.path.startswith("/")), None)


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
