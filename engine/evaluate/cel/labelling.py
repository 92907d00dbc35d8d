"""Whether mutations may write a label by which objects are deleted, or what decides about policies, as far as their expressions say it.

Whoever may change an object but not delete it must not have it deleted by a label. What cannot be read counts as writing the label:
the form of a patch is known only as far as it is written out, and only places below which no label can be are passed over.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from engine.cleanup.ttl import LABELLED, has_deleted
from engine.lang import cel
from engine.lang.cel import ast
from engine.vocabulary import decides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.model import Block

    Path = tuple[str, ...]

_NOTED: Final = ("annotations", "labels")
_OPEN: Final = "\0"
"""Stands for the rest of a path that only an evaluation decides."""


def may_label(spec: Block) -> bool:
    """Tell whether a mutation of a policy's spec may write the label, or cannot be read."""
    return any(_may_label(one) for one in spec.get("mutations") or ())


def _may_label(block: Block) -> bool:
    tree = _expression(block)
    if tree is None:
        return True
    if any(map(_says_label, ast.walk(tree))):
        return True
    return (
        _any_patch(tree, _patch_writes_label) if "jsonPatch" in block else _writes_label(tree, ())
    )


def _expression(block: Block) -> ast.Node | None:
    """Return the tree of a mutation's expression, None where it cannot be read."""
    mutation = block.get("jsonPatch" if "jsonPatch" in block else "applyConfiguration") or {}
    program = cel.readable(mutation.get("expression"))
    return None if program is None else program.tree


def is_about_metadata(spec: Block) -> bool:
    """Tell whether the mutations of a policy's spec write nothing but metadata that decides nothing: labels, annotations and the like."""
    return not any(_may_leave_metadata(one) for one in spec.get("mutations") or ())


def _may_leave_metadata(block: Block) -> bool:
    tree = _expression(block)
    if tree is None:
        return True
    return (
        _any_patch(tree, _patch_leaves_metadata) if "jsonPatch" in block else _leaves_metadata(tree)
    )


def _leaves_metadata(node: ast.Node) -> bool:
    if isinstance(node, ast.Choice):
        return any(map(_leaves_metadata, node.outcomes))
    if not isinstance(node, ast.MessageLiteral):
        return True
    return any(name != "metadata" or _decides(value) for name, value in _entries(node))


def _patch_leaves_metadata(node: ast.Node) -> bool:
    said = {name: value for name, value, _, _ in getattr(node, "entries", ())}
    if not isinstance(node, ast.MessageLiteral) or "path" not in said:
        return True
    # what is moved is taken away from where it was
    return any(_leads_elsewhere(_pointer(said[name])) for name in ("path", "from") if name in said)


def _leads_elsewhere(path: Path) -> bool:
    """Tell whether a pointer may be to more than metadata that decides nothing; all of it at once may be."""
    match path:
        case ("metadata", name, key, *_) if name in _NOTED:
            return key == _OPEN or decides(key)
        case ("metadata", name, *_):
            return name in _NOTED or name == _OPEN
        case _:
            return True


def _decides(metadata: ast.Node) -> bool:
    """Tell whether metadata that is written may hold what decides what a policy does."""
    if isinstance(metadata, ast.Choice):
        return any(map(_decides, metadata.outcomes))
    if not isinstance(metadata, ast.MessageLiteral | ast.MapLiteral):
        return not isinstance(metadata, ast.Literal)
    return any(
        name is None
        or (name in _NOTED and any(key is None or decides(key) for key in _keys(value)))
        for name, value in _entries(metadata)
    )


def _says_label(node: ast.Node) -> bool:
    """Tell whether a value that is written out has labels, wherever it is put, that are the label or not known."""
    if not isinstance(node, ast.MessageLiteral | ast.MapLiteral):
        return False
    entries = list(_entries(node))
    return any(has_deleted(key or "") for key, _ in entries) or any(
        name is None or has_deleted(name)
        for key, value in entries
        if key == "labels"
        for name in _keys(value)
    )


def _writes_label(node: ast.Node, path: Path) -> bool:
    """Tell whether a value that stands at a path of the object may hold the label."""
    if path in LABELLED:
        return not all(key is not None and not has_deleted(key) for key in _keys(node))
    if not any(place[: len(path)] == path for place in LABELLED):
        return False
    match node:
        case ast.MessageLiteral() | ast.MapLiteral():
            return any(
                key is None or _writes_label(value, (*path, key)) for key, value in _entries(node)
            )
        case ast.Choice():
            return any(_writes_label(one, path) for one in node.outcomes)
        case ast.Literal():
            return False
        case _:
            return True


def _keys(node: ast.Node) -> Iterable[str | None]:
    """Return the keys of a value of labels; None for what is not known."""
    if isinstance(node, ast.Choice):
        return chain.from_iterable(map(_keys, node.outcomes))
    if isinstance(node, ast.MessageLiteral | ast.MapLiteral):
        return [key for key, _ in _entries(node)]
    return () if isinstance(node, ast.Literal) else (None,)


def _entries(node: ast.MessageLiteral | ast.MapLiteral) -> Iterator[tuple[str | None, ast.Node]]:
    """Yield the entries with a value that is written out; an optional one may be anything."""
    if isinstance(node, ast.MessageLiteral):
        for name, value, is_optional, _ in node.entries:
            yield name, _given(value) if is_optional else value
        return
    for key, value, is_optional in node.entries:
        yield _text(key), _given(value) if is_optional else value


def _given(value: ast.Node) -> ast.Node:
    """Return what `optional.of(value)` holds; another optional is itself, which nobody can read."""
    is_of = isinstance(value, ast.Call) and value.name == "of" and len(value.arguments) == 1
    return value.arguments[0] if isinstance(value, ast.Call) and is_of else value


def _any_patch(node: ast.Node, test: Callable[[ast.Node], bool]) -> bool:
    """Tell whether one of a list of JSON patches meets a test, or the list cannot be read."""
    match node:
        case ast.ListLiteral():
            return any(_any_outcome(item, test) for item, _ in node.items)
        case ast.Chain(is_sum=True, operands=parts) | ast.Choice(outcomes=parts):
            return any(_any_patch(part, test) for part in parts)
        case ast.Comprehension() if node.kind == "map":
            return _any_outcome(node.body, test)
        case ast.Bind() if node.kind not in ("optMap", "optFlatMap"):
            return _any_patch(node.body, test)
        case _:
            return True


def _any_outcome(node: ast.Node, test: Callable[[ast.Node], bool]) -> bool:
    if isinstance(node, ast.Choice):
        return any(_any_outcome(one, test) for one in node.outcomes)
    return test(node)


def _patch_writes_label(node: ast.Node) -> bool:
    """Tell whether one JSON patch may write the label."""
    if not isinstance(node, ast.MessageLiteral) or any(
        is_optional for _, _, is_optional, _ in node.entries
    ):
        return True
    said = {name: value for name, value, _, _ in node.entries}
    if "op" in said and _text(said["op"]) in ("remove", "test"):
        return False
    path = _pointer(said["path"]) if "path" in said else (_OPEN,)
    known = path[:-1] if path and path[-1] == _OPEN else path
    for place in LABELLED:
        if known[: len(place)] == place:
            if len(path) == len(place):
                continue
            if len(path) == len(place) + 1 and not (path[-1] == _OPEN or has_deleted(path[-1])):
                continue
            return True
        if place[: len(known)] == known and known != path:
            return True
    if not any(place[: len(path)] == path for place in LABELLED):
        return False
    return "value" not in said or _writes_label(said["value"], path)


def _pointer(node: ast.Node) -> Path:
    """Return the parts of a JSON pointer; OPEN stands at the end for a part, and all after it, that is not known."""
    text = ""
    for part in node.operands if isinstance(node, ast.Chain) else (node,):
        known = _text(part)
        if known is None:
            text = text.rpartition("/")[0] + "/" + _OPEN
            break
        text += known
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _text(node: ast.Node) -> str | None:
    """Return the text that an expression always comes to, if that can be read."""
    match node:
        case ast.Literal(value=str(text)):
            return text
        case ast.Chain(is_sum=True, operands=operands):
            parts = [_text(one) for one in operands]
            return None if None in parts else "".join(part or "" for part in parts)
        case ast.Call(name="jsonpatch.escapeKey" | "escapeKey", arguments=[only]):
            inner = _text(only)
            return None if inner is None else inner.replace("~", "~0").replace("/", "~1")
    return None
