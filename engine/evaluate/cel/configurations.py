"""Apply configurations merged into objects, as server-side apply does for built-in kinds.

Maps are merged; lists whose elements have merge keys are merged by them, new elements at the end; all other lists and
values are replaced. Unlike Kyverno's strategic merge there are no anchors and no directives, and null is a value to set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, LimitError
from engine.mutate.shapes import Shape, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.model import Json, Object

_DEEPEST: Final = 200
_NO_SHAPE: Final = Shape()
_WORKLOADS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"}
)
_TOP: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_DEFAULTS: Final = {"protocol": "TCP"}
"""What a merge key that is left out counts as."""


def apply_configuration(configuration: Any, obj: Object) -> Object:
    """Return `obj` with a configuration applied; the very same object when nothing changes.

    Raises EvaluationError for what is no configuration, LimitError for one that is nested too deeply.
    """
    if not isinstance(configuration, dict):
        raise EvaluationError("an apply configuration expression must give an Object")
    shape = shape_of(obj) or _NO_SHAPE
    if obj.get("kind") in _WORKLOADS:
        _check_fields(obj)
    _check_duplicates(configuration, shape, "")
    merged = _map(obj, configuration, shape, 0)
    return obj if merged == obj else merged


def _check_fields(obj: Object) -> None:
    """Raise EvaluationError for what no workload has, in the words of the API server's typed objects.

    Looked at are the fields at the top and the labels of a Pod template, which policies write most.
    """
    wrong = [f".{name}: field not declared in schema" for name in obj if name not in _TOP]
    labels: Json = obj
    for step in ("spec", "template", "metadata", "labels"):
        labels = labels.get(step) if isinstance(labels, dict) else None
    if isinstance(labels, str | int) and not isinstance(labels, bool):
        wrong.append(f".spec.template.metadata.labels: expected map, got &{{{labels}}}")
    if wrong:
        text = f"failed to convert original object to typed object: {wrong[0]}"
        raise EvaluationError(f"error applying patch: {text}")


def _check_duplicates(value: Json, shape: Shape, path: str) -> None:
    """Raise EvaluationError where two elements of a list have the same merge key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if (below := shape.fields.get(key)) is not None:
                _check_duplicates(inner, below, f"{path}.{key}")
    elif isinstance(value, list) and shape.keys:
        seen = set()
        for item in value:
            key = _key(item, shape.keys)
            shown = ",".join(
                f'{name}="{part}"' for name, part in zip(shape.keys, key, strict=False)
            )
            if key and key in seen:
                text = f"failed to convert patch object to typed object: {path}: duplicate entries for key [{shown}]"
                raise EvaluationError(f"error applying patch: {text}")
            seen.add(key)
            _check_duplicates(item, Shape(None, shape.fields), f"{path}[{shown}]")


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
    return tuple(str(item.get(key) or _DEFAULTS.get(key, "")) for key in keys)
