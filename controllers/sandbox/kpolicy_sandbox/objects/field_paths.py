"""Places in an object as FieldsV1 names them, by which it is told who owns what.

A path is a tuple of FieldsV1 words (`f:spec`, `k:{"name":"a"}`, `v:"x"`); a set of paths is what a manager owns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .shapes import Shape

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
