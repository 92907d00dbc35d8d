"""Lists as sets: `sets.contains`, `sets.equivalent`, `sets.intersects`, by the language's equality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.lang.cel.comparisons import contains

from .registry import Library

if TYPE_CHECKING:
    from engine.lang.cel.env import CelEnv

LIBRARY: Final = Library()


@LIBRARY.add("sets.contains(list(A), list(A)) -> bool", env=True)
def _contains(env: CelEnv, whole: list[Any], part: list[Any]) -> bool:
    env.charge(len(part))
    return all(contains(whole, item, env) for item in part)


@LIBRARY.add("sets.equivalent(list(A), list(A)) -> bool", env=True)
def _equivalent(env: CelEnv, one: list[Any], other: list[Any]) -> bool:
    return _contains(env, one, other) and _contains(env, other, one)


@LIBRARY.add("sets.intersects(list(A), list(A)) -> bool", env=True)
def _intersects(env: CelEnv, one: list[Any], other: list[Any]) -> bool:
    env.charge(len(other))
    return any(contains(one, item, env) for item in other)
