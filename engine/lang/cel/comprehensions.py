"""Macros over elements: one closure per macro, a plain loop inside.

The cost of a loop is known before it starts (elements times size of the body), so it is charged once; nested loops charge
themselves.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from .comparisons import check_sortable
from .compiler import Closure, Compiler, Deferred, Frame
from .errors import BudgetError, CelError, no_overload
from .values import NONE, Optional, as_key, from_key, go_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ast import Bind, Comprehension


def compile_comprehension(compiler: Compiler, node: Comprehension) -> Closure:
    """Compile a macro over the elements of a list or the keys of a map."""
    source = compiler.compile(node.source)
    first = compiler.new_slot()
    names = {node.first: (first, False)}
    second = 0
    if node.second:
        second = compiler.new_slot()
        names[node.second] = (second, False)
    body = compiler.within(names, node.body)
    kept = compiler.within(names, node.filter) if node.filter is not None else None
    walk = _walk_pairs(source, second, node) if node.second else _walk(source, node)
    return _MACROS[node.kind](walk, first, body, kept, node)


def _walk(source: Closure, node: Comprehension) -> Closure:
    """Return a closure that gives the elements to go through, and charges for them."""
    weight = node.size - node.source.size

    def walk(frame: Frame) -> Any:
        items = source(frame)
        if not isinstance(items, list):
            items = _keys(items, node)
        env = frame[1]
        env.budget -= len(items) * weight
        if env.budget < 0:
            env.charge(0)
        return items

    return walk


def _keys(value: Any, node: Comprehension) -> list[Any]:
    if isinstance(value, dict):
        return [from_key(key) for key in value]
    if type(value) is Optional:
        return [value.value] if value.present else []
    raise CelError(f"got '{go_type(value)}', expected iterable type", node.at)


def _walk_pairs(source: Closure, second: int, node: Comprehension) -> Closure:
    """Return a closure over pairs: index and element, or key and value; the second goes straight into its slot."""
    weight = node.size - node.source.size

    def pairs(frame: Frame) -> Any:
        items = source(frame)
        if isinstance(items, list):
            found = list(enumerate(items))
        elif isinstance(items, dict):
            found = [(from_key(key), value) for key, value in items.items()]
        else:
            raise CelError(f"unsupported comprehension range type: {go_type(items)}", node.at)
        frame[1].charge(len(found) * weight)
        return _filling(found, frame, second)

    return pairs


def _filling(pairs: list[tuple[Any, Any]], frame: Frame, second: int) -> Any:
    for key, value in pairs:
        frame[second] = value
        yield key


def _quantifier(
    walk: Closure, slot: int, body: Closure, _kept: Closure | None, node: Any, *, decides: bool
) -> Closure:
    """`all` and `exists`: one deciding element wins over errors of others, else the first error stands."""
    other = not decides

    def run(frame: Frame) -> Any:
        failure: CelError | None = None
        for item in walk(frame):
            frame[slot] = item
            try:
                value = body(frame)
            except BudgetError:
                raise
            except CelError as error:
                failure = failure or error
                continue
            if value is other:
                continue
            if value is decides:
                return decides
            failure = failure or no_overload("", node.body.at)
        if failure is not None:
            raise failure
        return other

    return run


def _exists_one(
    walk: Closure, slot: int, body: Closure, _kept: Closure | None, node: Any
) -> Closure:
    test = _predicate(body, node.body.at)

    def run(frame: Frame) -> bool:
        count = 0
        for item in walk(frame):
            frame[slot] = item
            count += test(frame)
        return count == 1

    return run


def _predicate(closure: Closure, at: int) -> Callable[[Frame], bool]:
    def test(frame: Frame) -> bool:
        value = closure(frame)
        if value is True or value is False:
            return bool(value)
        raise no_overload("", at)

    return test


def _filter(walk: Closure, slot: int, body: Closure, _kept: Closure | None, node: Any) -> Closure:
    test = _predicate(body, node.body.at)

    def run(frame: Frame) -> list[Any]:
        found = []
        for item in walk(frame):
            frame[slot] = item
            if test(frame):
                found.append(item)
        return found

    return run


def _map(walk: Closure, slot: int, body: Closure, kept: Closure | None, node: Any) -> Closure:
    test = _predicate(kept, node.filter.at) if kept is not None else None

    def run(frame: Frame) -> list[Any]:
        found = []
        for item in walk(frame):
            frame[slot] = item
            if test is None or test(frame):
                found.append(body(frame))
        return found

    return run


def _transform_map(
    walk: Closure, slot: int, body: Closure, kept: Closure | None, node: Any
) -> Closure:
    test = _predicate(kept, node.filter.at) if kept is not None else None

    def run(frame: Frame) -> dict[Any, Any]:
        found = {}
        for item in walk(frame):
            frame[slot] = item
            if test is None or test(frame):
                found[as_key(item)] = body(frame)
        return found

    return run


def _transform_entries(
    walk: Closure, slot: int, body: Closure, kept: Closure | None, node: Any
) -> Closure:
    """`transformMapEntry`: each body gives a map whose entries are added; the same key twice is an error."""
    test = _predicate(kept, node.filter.at) if kept is not None else None

    def run(frame: Frame) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for item in walk(frame):
            frame[slot] = item
            if test is not None and not test(frame):
                continue
            entries = body(frame)
            if not isinstance(entries, dict):
                raise no_overload("transformMapEntry", node.body.at)
            for key, value in entries.items():
                if key in found:
                    raise CelError(f"insert failed: key {from_key(key)} already exists", node.at)
                found[key] = value
        return found

    return run


def _sort_by(walk: Closure, slot: int, body: Closure, _kept: Closure | None, node: Any) -> Closure:
    def run(frame: Frame) -> list[Any]:
        keyed = []
        for item in walk(frame):
            frame[slot] = item
            keyed.append((body(frame), item))
        check_sortable([key for key, _ in keyed], node.at)
        frame[1].charge(len(keyed) * len(keyed).bit_length())
        return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]

    return run


_MACROS: Final[dict[str, Callable[..., Closure]]] = {
    "all": partial(_quantifier, decides=False),
    "exists": partial(_quantifier, decides=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "sortBy": _sort_by,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entries,
}


def compile_bind(compiler: Compiler, node: Bind) -> Closure:
    """Compile `cel.bind` (computed when first read), `optMap` and `optFlatMap`."""
    value = compiler.compile(node.value)
    slot = compiler.new_slot()
    is_lazy = node.kind == "bind"
    body = compiler.within({node.name: (slot, is_lazy)}, node.body)
    if is_lazy:

        def bind(frame: Frame) -> Any:
            frame[slot] = Deferred(value)
            return body(frame)

        return bind
    return _optional_map(value, slot, body, node)


def _optional_map(value: Closure, slot: int, body: Closure, node: Bind) -> Closure:
    is_flat = node.kind == "optFlatMap"

    def run(frame: Frame) -> Optional:
        found = value(frame)
        if type(found) is not Optional:
            raise no_overload(node.kind, node.at)
        if not found.present:
            return NONE
        frame[slot] = found.value
        made = body(frame)
        if not is_flat:
            return Optional(made)
        if type(made) is not Optional:
            raise no_overload(node.kind, node.at)
        return made

    return run
