"""How many attestors must agree: sets with a count, nested sets, and the reasons put together.

For manifests and images alike, which differ only in what one entry is asked. A set passes as soon as enough entries
have; otherwise errors outweigh failures, and an empty set never passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError, PolicyError
from engine.record import field, record

from .attestors import Attestor, compile_attestor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine.model import Block, Json

_MAX_NESTING = 8
_MAX_ENTRIES = 100
_KINDS = ("keys", "certificates", "keyless", "attestor")


@record
class Entry:
    """One entry of a set: its place among the entries, what the object must be annotated with, who or which set it is."""

    path: str
    attestor: Attestor | AttestorSet | None
    annotations: Mapping[str, str] = field(default_factory=dict)
    repository: str = ""
    problem: str = ""


@record
class AttestorSet:
    """Entries, and how many of them must agree."""

    entries: tuple[Entry, ...]
    required: int


@record
class Answer:
    """What a set or an entry came to: agreed, or not, with the reasons; `errors` make the rule an error."""

    agreed: bool
    reason: str = ""
    errors: tuple[str, ...] = ()


def compile_sets(
    blocks: Json, path: str = "", *, any_hash: bool = False
) -> tuple[AttestorSet, ...]:
    """Return the attestor sets of a rule; raise PolicyError for structures that no count can satisfy.

    `any_hash` as in `compile_attestor`.
    """
    if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
        raise PolicyError(f"`{path}attestors` must be a list of attestor sets")
    return tuple(
        compile_set(block, f"{path}.attestors[{index}]", any_hash=any_hash)
        for index, block in enumerate(blocks)
    )


def compile_set(block: Block, path: str, depth: int = 0, *, any_hash: bool = False) -> AttestorSet:
    """Return one attestor set; parameters and errors as `compile_sets`."""
    if depth > _MAX_NESTING:
        raise LimitError(f"attestors nested deeper than {_MAX_NESTING} levels")
    blocks = block.get("entries") or []
    if not isinstance(blocks, list) or not all(isinstance(one, dict) for one in blocks):
        raise PolicyError(f"`{path}.entries` must be a list of attestors")
    if not blocks:
        raise PolicyError(f"`{path}.entries`: at least one entry is required")
    for index, entry in enumerate(blocks):
        _check_kind(entry, f"{path}.entries[{index}]")
    entries: list[Entry] = []
    for entry in blocks:
        entries.extend(_entries(entry, path, len(entries), depth, any_hash))
    if len(entries) > _MAX_ENTRIES:
        raise LimitError(f"`{path}` has more than {_MAX_ENTRIES} attestors")
    return AttestorSet(tuple(entries), _required(block.get("count"), len(entries), path))


def ask_set(wanted: AttestorSet, ask: Callable[[Entry], Answer], noun: str) -> Answer:
    """Ask the entries in order until enough agree; `noun` is what messages call the thing verified."""
    agreed: list[str] = []
    refused: list[str] = []
    errors: list[str] = []
    for entry in wanted.entries:
        answer = _ask_entry(entry, ask, noun)
        if answer.agreed:
            agreed.append(answer.reason)
        elif answer.errors:
            errors.extend(answer.errors)
        else:
            refused.append(answer.reason)
        if len(agreed) >= wanted.required:
            return Answer(True, _counted(noun, "succeeded", len(agreed), wanted, agreed))
    if errors:
        return Answer(False, errors=tuple(errors))
    return Answer(False, _counted(noun, "failed", len(agreed), wanted, refused))


def _ask_entry(entry: Entry, ask: Callable[[Entry], Answer], noun: str) -> Answer:
    if entry.problem:
        return Answer(False, errors=(f"{entry.path}: {entry.problem}",))
    if not isinstance(entry.attestor, AttestorSet):
        return ask(entry)
    answer = ask_set(entry.attestor, ask, noun)
    if not answer.errors:
        return answer
    combined = "; ".join(answer.errors)
    return Answer(False, errors=(f"failed to verify signature; {entry.path}: {combined}",))


def _entries(block: Block, path: str, first: int, depth: int, any_hash: bool) -> list[Entry]:
    annotations = block.get("annotations") or {}
    stated = {str(key): str(text) for key, text in annotations.items()}
    repository = str(block.get("repository") or "")
    nested = block.get("attestor")
    place = f"{path}.entries[{first}]"
    if nested is not None:
        place += ".attestor"
        if not isinstance(nested, dict):
            return [Entry(place, None, problem="failed to unmarshal nested attestor")]
        inner = compile_set(nested, place, depth + 1, any_hash=any_hash)
        return [Entry(place, inner, stated, repository)]
    try:
        found = compile_attestor(block, any_hash=any_hash)
    except EvaluationError as error:
        return [Entry(place, None, problem=error.message)]
    return [
        Entry(f"{path}.entries[{first + index}].{one.label}", one, stated, repository)
        for index, one in enumerate(found)
    ]


def _check_kind(entry: Block, path: str) -> None:
    stated = [kind for kind in _KINDS if entry.get(kind) is not None]
    if len(stated) != 1:
        raise PolicyError(f"`{path}` must have exactly one of {', '.join(_KINDS)}")


def _required(count: Json, available: int, path: str) -> int:
    if count is None or count == 0:
        return available
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= available:
        raise PolicyError(
            f"`{path}.count` must be a number from 1 to the number of entries, {available}"
        )
    return count


def _counted(noun: str, how: str, agreed: int, wanted: AttestorSet, reasons: Sequence[str]) -> str:
    return (
        f"{noun} verification {how}; verifiedCount {agreed}; "
        f"requiredCount {wanted.required}; message {','.join(reasons)}"
    )
