"""Strategic merge patch as the API server applies it to built-in kinds: lists merge by key where their type says so.

Understands the directives that clients really send: `$patch`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…` and
`$retainKeys`. Values are path-copied, neither the object nor the patch is changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kpolicy_sandbox.errors import bad_request

if TYPE_CHECKING:
    from .shapes import Shape

_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"


def strategic_merge(shape: Shape, current: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """Return `current` with the patch applied."""
    return _map(shape, current if isinstance(current, dict) else {}, patch)


def _map(shape: Shape, current: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    mode = patch.get("$patch")
    if mode == "delete":
        return {}
    if mode == "replace":
        return {key: value for key, value in patch.items() if not key.startswith("$")}
    made = dict(current)
    if (retained := patch.get(_RETAIN)) is not None:
        made = {key: value for key, value in made.items() if key in retained}
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = key[len(_DELETE) :]
            made[name] = [item for item in made.get(name) or () if item not in value]
        elif not key.startswith("$"):
            _entry(shape.child(key), made, key, value)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            name = key[len(_ORDER) :]
            made[name] = _ordered(shape.child(name), made.get(name), order)
            if made[name] is None:
                del made[name]
    return made


def _entry(shape: Shape, made: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        made.pop(key, None)
    elif isinstance(value, dict):
        current = made.get(key)
        made[key] = _map(shape, current if isinstance(current, dict) else {}, value)
    elif isinstance(value, list):
        made[key] = _list(shape, made.get(key), value)
    else:
        made[key] = value


def _list(shape: Shape, current: Any, patch: list[Any]) -> list[Any]:
    field = shape.field
    if field is None or "merge" not in field.strategy or not isinstance(current, list):
        return _fresh(shape, patch)
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    if not field.merge_key:
        return [*current, *(item for item in patch if item not in current)]
    return _by_key(shape, field.merge_key, current, patch)


def _fresh(shape: Shape, patch: list[Any]) -> list[Any]:
    """Return the list of a patch where there is nothing to merge with, without directives."""
    inner = shape.item()
    return [
        _map(inner, {}, item) if isinstance(item, dict) else item
        for item in patch
        if not (isinstance(item, dict) and item.get("$patch") in {"delete", "replace"})
    ]


def _by_key(shape: Shape, key: str, current: list[Any], patch: list[Any]) -> list[Any]:
    made = list(current)
    inner = shape.item()
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next(
            (
                n
                for n, old in enumerate(made)
                if isinstance(old, dict) and old.get(key) == item[key]
            ),
            None,
        )
        if item.get("$patch") == "delete":
            made = [old for old in made if not isinstance(old, dict) or old.get(key) != item[key]]
        elif place is None:
            made.append(_map(inner, {}, item))
        else:
            made[place] = _map(inner, made[place], item)
    return made


def _ordered(shape: Shape, held: Any, order: list[Any]) -> list[Any] | None:
    """Put listed items into the given order; items that the order does not name keep their place relative to one before them."""
    if not isinstance(held, list):
        return None
    key = shape.field.merge_key if shape.field else ""
    wanted = [entry.get(key) if isinstance(entry, dict) else entry for entry in order]

    def name_of(item: Any) -> Any:
        return item.get(key) if isinstance(item, dict) and key else item

    named = sorted(
        (item for item in held if name_of(item) in wanted), key=lambda i: wanted.index(name_of(i))
    )
    rest = iter(named)
    return [next(rest) if name_of(item) in wanted else item for item in held]
