"""Multi-selects, compiled: `[a, b]` and `{a: b}`. Missing keys become null inside them (row V-20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .values import Missing, spend

if TYPE_CHECKING:
    from engine.model import Json

    from .env import Env
    from .values import Run


def list_of(runs: list[Run]) -> Run:
    """Return the closure of `[a, b]`; null stays null."""

    def run(value: Json, env: Env) -> Json:
        if value is None:
            return None
        spend(env, len(runs))
        built: list[Any] = []
        for each in runs:
            given = each(value, env)
            built.append(None if given.__class__ is Missing else given)
        return built

    return run


def object_of(pairs: list[tuple[str, Run]]) -> Run:
    """Return the closure of `{a: b}`; null stays null."""

    def run(value: Json, env: Env) -> Json:
        if value is None:
            return None
        spend(env, len(pairs))
        built: dict[str, Any] = {}
        for key, each in pairs:
            given = each(value, env)
            built[key] = None if given.__class__ is Missing else given
        return built

    return run
