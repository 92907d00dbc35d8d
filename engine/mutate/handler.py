"""What the patch of a mutate rule makes of one object (rows A-81, A-82, A-86).

For the rule evaluator, which replaces variables, walks `foreach` and finds the targets of mutate-existing rules. Messages are Kyverno's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from engine.errors import EvaluationError

from .conditions import resolve_anchors
from .json6902 import apply_patch
from .lists import DIRECTIVE, directive_of, merge_keyed, merge_set, new_keyed, split_directive
from .operations import Operation, parse_patch, read_operations
from .shapes import Shape, shape_of
from .values import ABSENT, Absent, same, wrong_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Block, Json, Object


NOTHING_APPLIED: Final = "no patches applied"
"""Message of a skip: the patch leaves the object as it is."""


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
    return bool(order == "Descending" if order else entry.get("patchStrategicMerge") is not None)


def _operations(patch: str | Sequence[Operation] | Sequence[Block]) -> Sequence[Operation]:
    if isinstance(patch, str):
        return parse_patch(patch)
    ready = [entry for entry in patch if isinstance(entry, Operation)]
    return ready if len(ready) == len(patch) else read_operations(patch)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _failed(error: EvaluationError) -> EvaluationError:
    return type(error)(f"failed to patch resource: {error.message}", at=error.at, help=error.help)


# Kyverno's patchStrategicMerge: anchors first, then a strategic merge as kustomize does it (row A-81).
#
# Maps are merged key by key; null removes a key; `$patch: delete | replace | merge` says otherwise for one map or list. Lists are
# replaced, except those of built-in kinds that have merge keys (`shapes`), which `lists` merges; no other directive (`$retainKeys`,
# `$setElementOrder`) means anything, they are keys like others. What the patch does not name is handed on, not copied and not
# looked at, so that an object that does not change comes back as the same object.
#
# Kyverno's merge also walks the lists that a patch does not name and drops elements with equal merge keys there; here they stay,
# because a patch should not remove what it does not speak of.

_NO_SHAPE: Final = Shape()


def strategic_merge(patch: Json, resource: Object, *, is_plain: bool = False) -> Object:
    """Merge a patch, free of variables, into an object; return the very same object when nothing changes.

    `is_plain` says that the patch is what `resolve_anchors` would make of it, and not too deep.
    Neither argument is changed. Raises EvaluationError with Kyverno's text where a map, a list and a scalar meet, LimitError
    where the patch is too deep or too costly.
    """
    plain = patch if is_plain else resolve_anchors(patch, resource)
    merged: Object | Literal[Absent.ABSENT] = _walk(resource, plain, None)
    if merged is ABSENT:
        raise EvaluationError("patch removes the whole object")
    return merged


def _walk(old: Json, patch: Json, shape: Shape | None) -> Json:
    """Return what a value becomes under a patch: the very same value when nothing changes, ABSENT when it goes.

    INVARIANT: recursion goes only as deep as the patch, which `resolve_anchors` has bounded.
    """
    if patch is None:
        return ABSENT
    if old is None or old is ABSENT:
        return _adopt(patch, shape)
    if isinstance(old, dict):
        if not isinstance(patch, dict):
            raise wrong_kind("MappingNode", patch)
        return _walk_map(old, patch, shape)
    if isinstance(old, list):
        if not isinstance(patch, list):
            raise wrong_kind("SequenceNode", patch)
        return _walk_list(old, patch, shape)
    if isinstance(patch, dict | list):
        raise wrong_kind("ScalarNode", patch)
    return old if same(old, patch) else patch


def _walk_map(old: Object, patch: Object, shape: Shape | None) -> Json:
    directive = directive_of(patch)
    if directive == "delete":
        return ABSENT
    if directive == "replace":
        fresh = _adopt(patch, shape)
        return old if same(old, fresh) else fresh
    shape = shape or shape_of(old) or shape_of(patch) or _NO_SHAPE
    changed: Object | None = None
    for key in sorted(patch):
        before = old.get(key, ABSENT)
        after = before
        if key != DIRECTIVE:
            after = _walk(before, patch[key], shape.fields.get(key))
        if after is before:
            continue
        changed = changed if changed is not None else dict(old)
        if after is ABSENT:
            del changed[key]
        else:
            changed[key] = after
    return old if changed is None else changed


def _walk_list(old: list[Json], patch: list[Json], shape: Shape | None) -> Json:
    if shape is None or shape.keys is None:
        return old if same(old, patch) else patch
    directive, elements = split_directive(patch)
    if directive == "delete":
        return ABSENT
    if directive == "replace":
        fresh = _adopt(elements, shape)
        return old if same(old, fresh) else fresh
    if not shape.keys:
        return merge_set(old, elements)
    return merge_keyed(old, elements, shape.keys, lambda one, other: _walk(one, other, shape))


def _adopt(patch: Json, shape: Shape | None) -> Json:
    """Return what a patch becomes where there is nothing to merge it with: itself, without nulls and directives."""
    if isinstance(patch, dict):
        return _adopt_map(patch, shape)
    if isinstance(patch, list) and shape is not None and shape.keys is not None:
        return _adopt_list(patch, shape)
    return ABSENT if patch is None else patch


def _adopt_map(patch: Object, shape: Shape | None) -> Json:
    if directive_of(patch) == "delete":
        return ABSENT
    shape = shape or shape_of(patch) or _NO_SHAPE
    adopted: Object = {}
    for key, value in patch.items():
        kept = _adopt(value, shape.fields.get(key))
        if key != DIRECTIVE and kept is not ABSENT:
            adopted[key] = kept
    return adopted


def _adopt_list(patch: list[Json], shape: Shape) -> Json:
    directive, elements = split_directive(patch)
    if directive == "delete":
        return ABSENT
    if not shape.keys:
        return merge_set([], elements)
    adopted = [_adopt(element, shape) for element in elements]
    kept = [element for element in adopted if element is not ABSENT and element != {}]
    return new_keyed(kept, shape.keys)
