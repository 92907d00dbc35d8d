"""What a mutate rule answers for one object: status, message and the object as it is afterwards (rows A-81, A-82, A-86).

For the rule evaluator, which replaces variables, walks `foreach` and finds the targets of mutate-existing rules; it calls
`mutate_outcome` for a plain rule and the `apply_…` functions for each element of a `foreach`. Messages are Kyverno's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError
from engine.model import Outcome, Status
from engine.record import record

from .json6902 import apply_patch
from .merge import strategic_merge
from .operations import Operation, parse_patch, read_operations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.model import Block, Json, Object

NOTHING_APPLIED: Final = "no patches applied"
"""Message of a skip: the patch leaves the object as it is."""

NO_ELEMENTS: Final = "0 elements processed"
"""Message of a skip: a `foreach` found no element to work on."""

_STRATEGIC: Final = "patchStrategicMerge"
_JSON: Final = "patchesJson6902"


@record
class Mutated:
    """The answer of a mutate rule, and the object afterwards: the very same one unless the status is pass."""

    outcome: Outcome
    object: Object


def mutate_outcome(mutate: Block, obj: Object) -> Mutated:
    """Apply the patch of a `mutate` block, free of variables, to an object; a patch that fails is an outcome, not an error.

    `mutate` may as well be one entry of a `foreach`. Where both kinds of patch are present the strategic one counts.
    """
    try:
        patched = apply(mutate, obj)
    except EvaluationError as error:
        return Mutated(Outcome(Status.ERROR, error.message), obj)
    if patched is obj:
        return Mutated(Outcome(Status.SKIP, NOTHING_APPLIED), obj)
    return Mutated(Outcome(Status.PASS, mutated_message(patched)), patched)


def apply(mutate: Block, obj: Object) -> Object:
    """Apply whichever patch a block holds; the very same object when there is none or nothing changes."""
    if mutate.get(_STRATEGIC) is not None:
        return apply_strategic(mutate[_STRATEGIC], obj)
    if mutate.get(_JSON):
        return apply_json6902(mutate[_JSON], obj)
    return obj


def apply_strategic(patch: Json, obj: Object, *, is_plain: bool = False) -> Object:
    """Merge a patchStrategicMerge into an object; `is_plain` says that its anchors have been resolved.

    Raises EvaluationError `failed to patch resource: …`; the object is never changed, and returned itself when nothing changes.
    """
    try:
        return strategic_merge(patch, obj, is_plain=is_plain)
    except EvaluationError as error:
        raise _failed(error) from error


def apply_json6902(patch: str | Sequence[Operation] | Sequence[Block], obj: Object) -> Object:
    """Apply a patchesJson6902, given as text, as read operations or as a decoded list; errors as `apply_strategic`."""
    try:
        return apply_patch(_operations(patch), obj)
    except EvaluationError as error:
        raise _failed(error) from error


def mutated_message(patched: Object) -> str:
    """Return the message of a pass: `mutated Kind/name in namespace ns`, without the namespace where there is none."""
    metadata = patched.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    name = _text(metadata.get("name")) or _text(metadata.get("generateName"))
    namespace = _text(metadata.get("namespace"))
    place = f" in namespace {namespace}" if namespace else ""
    return f"mutated {_text(patched.get('kind'))}/{name}{place}"


def is_descending(entry: Block) -> bool:
    """Tell whether a `foreach` entry works from the last element to the first (row A-83).

    Without `order` that is so for strategic merges, which put new list items in front.
    """
    order = entry.get("order")
    return bool(order == "Descending" if order else entry.get(_STRATEGIC) is not None)


def ordered_elements(found: Json, entry: Block) -> Iterator[tuple[int, Json]]:
    """Yield index and value of what a `foreach` works on, in its order; indexes are those of the list as found.

    Anything but a list is a list of that one value; nulls are passed over.
    """
    elements = found if isinstance(found, list) else [found]
    indexes = range(len(elements))
    for index in reversed(indexes) if is_descending(entry) else indexes:
        if elements[index] is not None:
            yield index, elements[index]


def _operations(patch: str | Sequence[Operation] | Sequence[Block]) -> Sequence[Operation]:
    if isinstance(patch, str):
        return parse_patch(patch)
    ready = [entry for entry in patch if isinstance(entry, Operation)]
    return ready if len(ready) == len(patch) else read_operations(patch)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _failed(error: EvaluationError) -> EvaluationError:
    return type(error)(f"failed to patch resource: {error.message}", at=error.at, help=error.help)
