"""The mutations of a policy, compiled once and applied in their order, each to what the one before left.

A mutation's expression gives an apply configuration (`Object{…}`) or a list of JSON patches. Native policies and those of
Kyverno share this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, LimitError, PolicyError
from engine.lang.cel.functions.encodings import plain
from engine.lang.cel.values import Structure, type_name
from engine.mutate.json6902 import apply_patch
from engine.mutate.operations import Operation, read_operations
from engine.mutate.pointer import split
from engine.mutate.shapes import Shape, shape_of
from engine.mutate.typed import KEY_DEFAULTS, check_configuration, check_original, type_of
from engine.mutate.values import same
from engine.record import record

from .expressions import compile_expression

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from engine.lang.cel import Program
    from engine.model import Block, Json, Object

    from .bindings import Bindings


# JSON patches of policies written in CEL: RFC 6902 to the letter, as `evanphx/json-patch` applies it for the API server.
#
# Stricter than the patches of classic policies (`engine.mutate.json6902`), which make parents and pass over what is not there.

_SOURCED: Final = frozenset({"copy", "move"})


class _TestFailed(Exception):  # noqa: N818 - no mistake: the patch is not for this object
    """A `test` operation does not hold."""


def apply_patches(patches: Any, obj: Object) -> Object:
    """Return an object with patches applied; the very same one where nothing changes or a `test` operation does not hold.

    Raises EvaluationError `JSON Patch: …` for what is no list of patches and for an operation that does not apply.
    """
    if not isinstance(patches, list):
        raise EvaluationError("a JSON patch expression must give a list of patches")
    try:
        patched = obj
        for operation in read_operations(patches):
            patched = _applied(operation, patched)
    except _TestFailed:
        return obj
    except EvaluationError as error:
        raise error.reworded(f"JSON Patch: {error.message}") from error
    return obj if same(obj, patched) else patched


def _applied(operation: Operation, obj: Object) -> Object:
    if operation.kind == "test":
        if not _holds(operation, obj):
            raise _TestFailed
        return obj
    if operation.kind in _SOURCED:
        parent, key = _parent(operation, operation.source, obj, "from path")
        _require(operation, operation.source, parent, key)
    parent, key = _parent(operation, operation.path, obj, "path")
    if operation.kind in ("remove", "replace"):
        _require(operation, operation.path, parent, key)
    return apply_patch([operation], obj)


def _holds(operation: Operation, obj: Object) -> bool:
    try:
        parent, key = _parent(operation, operation.path, obj, "path")
    except EvaluationError:
        return False
    found, value = _member(parent, key)
    return same(value, operation.value) if found else operation.value is None


def _parent(operation: Operation, path: str, obj: Object, what: str) -> tuple[Json, str]:
    """Return the map or list that a path's last key is for, and the key; raises EvaluationError where there is none."""
    *parents, key = split(path) or [""]
    container: Json = obj
    for part in parents:
        found, container = _member(container, part)
        if not found or not isinstance(container, dict | list):
            text = f'doc is missing {what}: "{path}": missing value'
            raise EvaluationError(f"{operation.kind} operation does not apply: {text}")
    return container, key


def _require(operation: Operation, path: str, parent: Json, key: str) -> None:
    found, _ = _member(parent, key)
    if found:
        return
    if operation.kind == "remove":
        text = f"Unable to remove nonexistent key: {key}: missing value"
        raise EvaluationError(f"error in remove for path: '{path}': {text}")
    text = f"doc is missing key: {path}: missing value"
    raise EvaluationError(f"{operation.kind} operation does not apply: {text}")


def _member(container: Json, key: str) -> tuple[bool, Json]:
    """Return whether a map or list has a member, and the member."""
    if isinstance(container, dict):
        return key in container, container.get(key)
    if not isinstance(container, list) or not key.isdigit() or int(key) >= len(container):
        return False, None
    return True, container[int(key)]


# Apply configurations merged into objects, as server-side apply does for built-in kinds.
#
# Maps are merged; lists whose elements have merge keys are merged by them, new elements at the end; all other lists and
# values are replaced. Unlike Kyverno's strategic merge there are no anchors and no directives, and null is a value to set.

_DEEPEST: Final = 200
_NO_SHAPE: Final = Shape()


def apply_configuration(
    configuration: Any, obj: Object, *, may_replace: bool = False, is_stored: bool = False
) -> Object:
    """Return `obj` with a configuration applied; the very same object when nothing changes.

    `may_replace` lets it set lists and maps that change only as a whole. An object that `is_stored` comes from an API server, which
    has seen to its fields, and knows newer ones than we do. Raises EvaluationError for what is no configuration and for one that
    does not fit the kind, LimitError for one that is nested too deeply.
    """
    if not isinstance(configuration, dict):
        raise EvaluationError("an apply configuration expression must give an Object")
    kind = type_of(obj.get("apiVersion"), obj.get("kind"))
    if kind is not None:
        if not is_stored:
            check_original(obj, kind)
        check_configuration(configuration, kind, may_replace=may_replace)
    merged = _map(obj, configuration, shape_of(obj) or _NO_SHAPE, 0)
    return obj if merged == obj else merged


def _map(old: Object, new: Object, shape: Shape, depth: int) -> Object:
    if depth > _DEEPEST:
        raise LimitError("apply configuration is nested too deeply")
    made = dict(old)
    for key, value in new.items():
        made[key] = _value(old.get(key), value, shape.fields.get(key) or _NO_SHAPE, depth + 1)
    return made


def _value(old: Json, new: Json, shape: Shape, depth: int) -> Json:
    if isinstance(old, dict) and isinstance(new, dict):
        return _map(old, new, shape, depth)
    if isinstance(old, list) and isinstance(new, list) and shape.keys is not None:
        return _list(old, new, shape, depth)
    return new


def _list(old: list[Json], new: list[Json], shape: Shape, depth: int) -> list[Json]:
    if not shape.keys:
        return old + [item for item in new if item not in old]
    made = list(old)
    places = {key: index for index, item in enumerate(old) if (key := _key(item, shape.keys))}
    for item in new:
        key = _key(item, shape.keys)
        if not key:
            raise EvaluationError(f"an element of the list has no {' and '.join(shape.keys)}")
        if key in places:
            made[places[key]] = _map(made[places[key]], item, shape, depth + 1)
        else:
            places[key] = len(made)
            made.append(item)
    return made


def _key(item: Json, keys: Sequence[str]) -> tuple[str, ...]:
    """Return what tells an element from others, empty where it lacks the first key."""
    if not isinstance(item, dict) or item.get(keys[0]) is None:
        return ()
    return tuple(str(item.get(key) or KEY_DEFAULTS.get(key, "")) for key in keys)


def check_names(value: Any) -> None:
    """Raise EvaluationError for messages below a value that bear other names than their places.

    What stands in `spec` of an `Object` is an `Object.spec`; lists and maps in between have no names.
    """
    if isinstance(value, Structure) and value.type_name.startswith(CONFIGURATION):
        found = [
            f'unexpected type name "{name}", expected "{wanted}", which matches field name path from'
            " root Object type"
            for name, wanted in _misnamed(value, value.type_name)
        ]
        if found:
            raise EvaluationError("type mismatch: " + "\n".join(found))


def _misnamed(value: Any, wanted: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Structure):
        if value.type_name != wanted:
            yield value.type_name, wanted
        for name, part in value.items():
            yield from _misnamed(part, f"{wanted}.{name}")
    elif isinstance(value, list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _misnamed(part, wanted)


CONFIGURATION: Final = "Object"
"""The type of what is applied."""

FIELDS: Final = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
"""Where a mutation of each type of patch says its expression."""


@record
class Mutation:
    """One compiled mutation: a configuration, which `may_replace` what changes only as a whole, or patches."""

    program: Program
    is_configuration: bool
    may_replace: bool = False

    def applied(self, bindings: Bindings, obj: Object) -> Object:
        """Return `obj` mutated, the very same one where nothing changes; raises EvaluationError."""
        given = bindings.value_of(self.program)
        if not self.is_configuration:
            for patch in given if isinstance(given, list) else ():
                check_names(patch.get("value") if isinstance(patch, dict) else None)
            return apply_patches(plain(bindings.env, given), obj)
        if type_name(given) != CONFIGURATION:
            text = "unsupported return type from ApplyConfiguration expression"
            raise EvaluationError(f"{text}: {type_name(given)}")
        is_stored = bindings.inputs.is_stored
        if is_stored and not given:
            # what stays as the API server holds it is held against no type
            return obj
        check_names(given)
        wanted = plain(bindings.env, given)
        return apply_configuration(wanted, obj, may_replace=self.may_replace, is_stored=is_stored)


def compile_mutations(
    blocks: Iterable[Block], names: Collection[str], *, may_replace: bool = False
) -> tuple[Mutation, ...]:
    """Compile mutations that may read `names`; raises PolicyError for one that cannot work.

    `may_replace` lets configurations set lists and maps that change only as a whole.
    """
    return tuple(
        _compiled(index, block, names, may_replace=may_replace)
        for index, block in enumerate(blocks)
    )


def _compiled(index: int, block: Block, names: Collection[str], *, may_replace: bool) -> Mutation:
    kind = str(block.get("patchType"))
    source = (block.get(FIELDS[kind]) or {}).get("expression")
    place = f"mutations[{index}].{FIELDS[kind]}"
    if not source:
        raise PolicyError(f"`{place}.expression` is required")
    program = compile_expression(source, names, place=place)
    return Mutation(program, kind == "ApplyConfiguration", may_replace)


def mutated(
    mutations: Iterable[Mutation], bind: Callable[[Object], Bindings], obj: Object
) -> Object:
    """Return an object after all mutations; `bind` gives the variables as they are after earlier ones.

    Raises EvaluationError for the first that fails, and then nothing of it counts.
    """
    for mutation in mutations:
        obj = mutation.applied(bind(obj), obj)
    return obj
