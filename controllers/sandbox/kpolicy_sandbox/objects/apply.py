"""Server-side apply, and the record of who owns which field that plain writes leave behind.

The rules are the simple form of structured-merge-diff: what a manager applied before and leaves out now is removed unless
somebody else owns it; a field that another manager owns with another value is a conflict unless forced.

A path is a tuple of FieldsV1 words (`f:spec`, `k:{"name":"a"}`, `v:"x"`); a set of paths is what a manager owns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from kpolicy_sandbox.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .shapes import Shape


Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, and when, as `managedFields` record it."""

    manager: str
    api_version: str
    subresource: str
    stamp: str
    force: bool = False


def apply_object(shape: Shape, live: Object, applied: Object, writer: Writer) -> Object:
    """Return the live object (empty: a new one) with `applied` merged in; ApiError 409 naming every conflict."""
    wanted = leaves(shape, applied)
    held = leaves(shape, live)
    others = [one for one in entries(live) if not _is(one, writer, "Apply")]
    mine = next((one for one in entries(live) if _is(one, writer, "Apply")), None)
    conflicts = [
        (one, path)
        for one in others
        for path in sorted(from_fields(one.get("fieldsV1")) & wanted.keys())
        if wanted[path] is not ... and held.get(path, ...) != wanted[path]
    ]
    if conflicts and not writer.force:
        raise _conflict(conflicts)
    lost = {path for _, path in conflicts}
    kept = _without(others, lost)
    dropped = from_fields(mine.get("fieldsV1") if mine else {}) - wanted.keys()
    for one in kept:
        dropped -= from_fields(one.get("fieldsV1"))
    made = _merge(shape, live, applied)
    # an item of a list goes before its fields, by whose keys it is found
    for path in sorted(dropped, key=len):
        made = _remove(shape, made, path)
    record = entry(
        writer.manager, "Apply", writer.api_version, writer.subresource, writer.stamp, set(wanted)
    )
    if mine and mine.get("fieldsV1") == record["fieldsV1"]:
        record = mine
    return _with_entries(made, [record, *kept])


def record_update(shape: Shape, before: Object | None, after: Object, writer: Writer) -> Object:
    """Return `after` with `managedFields` that say what the writer changed since `before`."""
    old = leaves(shape, before) if before else {}
    new = leaves(shape, after)
    changed = {path for path, value in new.items() if old.get(path, _MISSING) != value}
    gone = old.keys() - new.keys()
    known = entries(before) if before else []
    if not changed and not gone:
        return _with_entries(after, known)
    mine = next((one for one in known if _is(one, writer, "Update")), None)
    others = _without([one for one in known if one is not mine], changed | gone)
    paths = ((from_fields(mine["fieldsV1"]) if mine else set()) - gone) | changed
    if not paths:
        return _with_entries(after, others)
    made = entry(
        writer.manager, "Update", writer.api_version, writer.subresource, writer.stamp, paths
    )
    return _with_entries(after, [*others, made])


_MISSING = object()


def _is(one: Object, writer: Writer, operation: str) -> bool:
    return (one.get("manager"), one.get("operation"), one.get("subresource", "")) == (
        writer.manager,
        operation,
        writer.subresource,
    )


def _without(known: list[Object], lost: set[Path]) -> list[Object]:
    made = []
    for one in known:
        paths = from_fields(one.get("fieldsV1"))
        if not paths & lost:
            made.append(one)
        elif left := paths - lost:
            fresh = entry("", "", "", "", "", left)["fieldsV1"]
            made.append({**one, "fieldsV1": fresh})
    return made


def _with_entries(obj: Object, known: list[Object]) -> Object:
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": {**meta, "managedFields": known} if known else meta}


def _conflict(conflicts: list[tuple[Object, Path]]) -> ApiError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{one.get("manager", "")}"'
            + (f" using {one['apiVersion']}" if one.get("operation") == "Update" else ""),
            "field": text_of(path),
        }
        for one, path in conflicts
    ]
    by_manager: dict[str, list[str]] = {}
    for cause in causes:
        by_manager.setdefault(cause["message"], []).append(cause["field"])
    if len(causes) == 1:
        text = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        parts = [
            "conflicts" + who.removeprefix("conflict") + ":\n- " + "\n- ".join(fields)
            for who, fields in by_manager.items()
        ]
        text = f"Apply failed with {len(causes)} conflicts: " + "\n".join(parts)
    return ApiError(409, "Conflict", text, {"causes": causes})


def _merge(shape: Shape, live: Any, applied: Any) -> Any:
    if isinstance(applied, dict) and isinstance(live, dict) and not shape.atomic:
        made = dict(live)
        for key, value in applied.items():
            made[key] = _merge(shape.child(key), made.get(key), value)
        return made
    if isinstance(applied, list) and isinstance(live, list) and shape.list_type != "atomic":
        held = {item_word(shape, item): item for item in live}
        inner = shape.item()
        for item in applied:
            word = item_word(shape, item)
            held[word] = _merge(inner, held[word], item) if word in held else item
        return list(held.values())
    return applied


def _remove(shape: Shape, value: Any, path: Path) -> Any:
    if not path:
        return value
    word, rest = path[0], path[1:]
    if word.startswith("f:"):
        key = word[2:]
        if not isinstance(value, dict) or key not in value:
            return value
        inner = _remove(shape.child(key), value[key], rest) if rest else None
        if inner is None or (rest and inner in ({}, [])):
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: inner}
    if not isinstance(value, list):
        return value
    made = []
    for item in value:
        if item_word(shape, item) != word:
            made.append(item)
        elif rest:
            made.append(_remove(shape.item(), item, rest))
    return made


Path = tuple[str, ...]
_UNOWNED = frozenset(
    [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generateName",
    ]
)


def leaves(shape: Shape, obj: dict[str, Any]) -> dict[Path, Any]:
    """Return every owned place of an object with its value; what the system writes is left out."""
    body = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
    if isinstance(meta := body.get("metadata"), dict):
        body["metadata"] = {key: value for key, value in meta.items() if key not in _UNOWNED}
        if not body["metadata"]:
            del body["metadata"]
    return dict(_walk(shape, body, ()))


def _walk(shape: Shape, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not shape.atomic:
        for key, item in value.items():
            yield from _walk(shape.child(key), item, (*path, f"f:{key}"))
    elif isinstance(value, list) and value and shape.list_type != "atomic":
        inner = shape.item()
        for item in value:
            word = item_word(shape, item)
            yield (*path, word), item if word.startswith("v:") else ...
            if word.startswith("k:"):
                yield from _walk(inner, item, (*path, word))
    else:
        yield path, value


def item_word(shape: Shape, item: Any) -> str:
    """Return the FieldsV1 word of a list's item: by keys, or by value."""
    if isinstance(item, dict) and shape.list_type == "map":
        keys = {key: item[key] for key in shape.list_keys if key in item}
        return "k:" + orjson.dumps(keys, option=orjson.OPT_SORT_KEYS).decode()
    return "v:" + orjson.dumps(item).decode()


def to_fields(paths: set[Path]) -> dict[str, Any]:
    """Return paths as a FieldsV1 tree."""
    root: dict[str, Any] = {}
    for path in sorted(paths):
        node = root
        for word in path:
            node = node.setdefault(word, {})
        if path and path[-1].startswith("k:"):
            node.setdefault(".", {})
    return root


def from_fields(tree: Any, path: Path = ()) -> set[Path]:
    """Return the paths of a FieldsV1 tree."""
    if not isinstance(tree, dict):
        return set()
    found: set[Path] = set()
    for word, below in tree.items():
        if word == ".":
            found.add(path)
        elif below:
            found |= from_fields(below, (*path, word))
        else:
            found.add((*path, word))
    return found


def entry(
    manager: str, operation: str, api_version: str, subresource: str, stamp: str, paths: set[Path]
) -> dict[str, Any]:
    """Return one entry of `managedFields`."""
    made = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields(paths),
    }
    return {**made, "subresource": subresource} if subresource else made


def entries(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an object's `managedFields`."""
    found = obj.get("metadata", {}).get("managedFields")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text_of(path: Path) -> str:
    """Return a path as conflicts name it: `.spec.template.spec.containers[name="a"].image`."""
    made = ""
    for word in path:
        mark, _, rest = word.partition(":")
        if mark == "f":
            made += f".{rest}"
        elif mark == "k":
            pairs = orjson.loads(rest).items()
            made += (
                "["
                + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in pairs)
                + "]"
            )
        else:
            made += f"[={rest}]"
    return made
