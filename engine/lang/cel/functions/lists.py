"""Functions on lists: those of Kubernetes (`sum`, `min`, `indexOf`…) and of the lists extension (`sort`, `flatten`…)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engine.lang.cel.arithmetic import OPERATIONS
from engine.lang.cel.comparisons import NUMBERS, check_sortable, comparable, equal
from engine.lang.cel.errors import CelError, no_overload
from engine.lang.cel.values import NONE, Optional

from .registry import Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library()
_MOST: Final = 1_000_000


@LIBRARY.add("list(A).indexOf(A) -> int", env=True)
def _index_of(env: CelEnv, items: list[Any], wanted: Any) -> int:
    env.charge(len(items))
    return next((at for at, item in enumerate(items) if equal(item, wanted, env)), -1)


@LIBRARY.add("list(A).lastIndexOf(A) -> int", env=True)
def _last_index_of(env: CelEnv, items: list[Any], wanted: Any) -> int:
    env.charge(len(items))
    last = len(items) - 1
    return next(
        (last - at for at, item in enumerate(reversed(items)) if equal(item, wanted, env)), -1
    )


def _check_order(items: list[Any], name: str) -> None:
    if items and not all(comparable(items[0], item) for item in items):
        raise no_overload(name)


@LIBRARY.add("list.isSorted() -> bool", env=True)
def _is_sorted(env: CelEnv, items: list[Any]) -> bool:
    env.charge(len(items))
    _check_order(items, "isSorted")
    return all(items[at] <= items[at + 1] for at in range(len(items) - 1))


def _extreme(env: CelEnv, items: list[Any], *, run: Callable[[list[Any]], Any]) -> Any:
    env.charge(len(items))
    if not items:
        raise CelError(f"{run.__name__} called on empty list")
    _check_order(items, run.__name__)
    return run(items)


for _run in (min, max):
    LIBRARY.add(f"list(A).{_run.__name__}() -> A", env=True)(partial(_extreme, run=_run))


@LIBRARY.add("list(A).sum() -> A", env=True)
def _sum(env: CelEnv, items: list[Any]) -> Any:
    env.charge(len(items))
    if not items:
        return 0
    total = items[0]
    if type(total) not in NUMBERS and not hasattr(total, "ns"):
        raise no_overload("sum")
    for item in items[1:]:
        total = OPERATIONS["+"](total, item, env)
    return total


@LIBRARY.add("list(A).sort() -> list(A)", env=True)
def _sort(env: CelEnv, items: list[Any]) -> list[Any]:
    env.charge(len(items) * len(items).bit_length())
    check_sortable(items)
    return sorted(items)


@LIBRARY.add("list(A).distinct() -> list(A)", env=True)
def _distinct(env: CelEnv, items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        env.charge(len(found) + 1)
        if not any(equal(item, other, env) for other in found):
            found.append(item)
    return found


@LIBRARY.add("list(list(A)).flatten() -> list(A)", "list.flatten(int) -> list", env=True)
def _flatten(env: CelEnv, items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    env.charge(len(items))
    built: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            built.extend(_flatten(env, item, depth - 1))
        else:
            built.append(item)
    return built


@LIBRARY.add("list(A).slice(int, int) -> list(A)")
def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@LIBRARY.add("lists.range(int) -> list(int)", env=True)
def _range(env: CelEnv, size: int) -> list[int]:
    if size > _MOST:
        raise CelError(f"range of more than {_MOST} numbers")
    env.charge(max(size, 0))
    return list(range(size))


LIBRARY.declare(
    {
        "list(A).reverse() -> list(A)": lambda items: items[::-1],
        "list(A).first() -> optional_type(A)": lambda items: Optional(items[0]) if items else NONE,
        "list(A).last() -> optional_type(A)": lambda items: Optional(items[-1]) if items else NONE,
    }
)
