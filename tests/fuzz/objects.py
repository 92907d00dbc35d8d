"""Targets that read trees: patterns on objects, JSON patches. An input is a JSON list of two: what is applied, and to what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from engine.errors import DocumentError, EvaluationError, LimitError
from engine.lang.pattern import compile_pattern
from engine.mutate.handler import apply_json6902, apply_strategic
from engine.mutate.operations import diff
from tests.fuzz import trees
from tests.fuzz.corpora import seeds_of
from tests.fuzz.target import Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_KINDS: Final = ("add", "remove", "replace", "move", "copy", "test")


def _pair(data: bytes) -> tuple[Any, Any]:
    """Return the two halves of an input; raises DocumentError."""
    try:
        both = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DocumentError("no JSON") from error
    if not isinstance(both, list) or len(both) != 2:
        raise DocumentError("not two")
    return both[0], both[1]


def _pattern(data: bytes) -> str:
    """A pattern in front of an object; it is checked twice, and says the same twice."""
    pattern, obj = _pair(data)
    compiled = compile_pattern(pattern)
    before = trees.packed(obj)
    first, second = compiled.check(obj), compiled.check(obj)
    assert repr(first) == repr(second), "another answer the second time"
    assert trees.packed(obj) == before, "the object was changed"
    return "fits" if first is None else "misses"


def _patch(data: bytes) -> str:
    """A patch in front of an object: a list or text is a JSON patch, a map a strategic one; its difference leads to the same."""
    patch, obj = _pair(data)
    if not isinstance(obj, dict):
        raise DocumentError("no object")
    before = trees.packed(obj)
    if isinstance(patch, dict):
        after: Any = apply_strategic(patch, obj)
    elif isinstance(patch, list | str):
        after = apply_json6902(patch, obj)
    else:
        raise DocumentError("no patch")
    assert trees.packed(obj) == before, "the object was changed"
    if not isinstance(after, dict):
        return "no object"
    operations = diff(obj, after)
    try:
        again = apply_json6902(operations, obj)
    except LimitError:
        return "deep"
    except EvaluationError as error:
        raise AssertionError(f"the difference does not apply: {error.message[:100]}") from error
    assert again == after, "the difference leads elsewhere"
    return "changed" if operations else "same"


def _from_seeds(name: str) -> Callable[[Random], bytes]:
    def made(chance: Random) -> bytes:
        pair = orjson.loads(chance.choice(seeds_of(name)))
        if chance.random() < 0.3:
            pair[0] = orjson.loads(chance.choice(seeds_of(name)))[0]
        return trees.packed(trees.changed(chance, pair))

    return made


def _made_patch(chance: Random) -> bytes:
    if chance.random() < 0.5:
        return _changed_patch(chance)
    _, obj = orjson.loads(chance.choice(seeds_of("patch")))
    pointers = _pointers(obj)
    operations = []
    for _ in range(chance.choice((1, 2, 4, 12))):
        one = {"op": chance.choice(_KINDS), "path": _pointer(chance, pointers)}
        if one["op"] in ("move", "copy"):
            one["from"] = _pointer(chance, pointers)
        elif chance.random() < 0.9:
            one["value"] = trees.grown(chance, 2)
        operations.append(one)
    patch: Any = operations
    if chance.random() < 0.2:
        patch = orjson.dumps(operations).decode()
    return trees.packed([patch, obj])


def _pointers(root: Any, path: str = "") -> list[str]:
    found = [path]
    parts = root.items() if isinstance(root, dict) else enumerate(root) if isinstance(root, list) else ()  # fmt: skip
    for key, part in parts:
        found += _pointers(part, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    return found


def _pointer(chance: Random, pointers: list[str]) -> str:
    path = chance.choice(pointers)
    if chance.random() < 0.3:
        path += chance.choice(("/-", "/0", "/-1", "/new", "/a/b/c", "/99999", "/~1", "/~2", "//", "/" * 300, "/9999999999"))  # fmt: skip
    return path


_changed_patch = _from_seeds("patch")
TARGETS: Final = (
    Target("pattern", _pattern, _from_seeds("pattern")),
    Target("patch", _patch, _made_patch),
)
