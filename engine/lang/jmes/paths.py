"""Fields, indexes and slices, compiled. Most of what policies write is a row of fields, so a row is one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError

from .values import ItemList, Missing, spend

if TYPE_CHECKING:
    from engine.model import Json

    from .env import Env
    from .values import Run


def path(names: tuple[str, ...]) -> Run:
    """Return the closure of `a.b.c`: an object without the key gives Missing, anything else without fields null."""
    if len(names) == 1:
        return _field(names[0])
    front, last = names[:-1], names[-1]
    missing = Missing(last)
    steps = _steps(names)

    def run(value: Json, _env: Env) -> Json:
        start = value
        try:
            for name in front:
                value = value[name]
        except (KeyError, TypeError):
            return _walked(start, steps)
        return value.get(last, missing) if value.__class__ is dict else None

    return run


def path_after(before: Run, names: tuple[str, ...]) -> Run:
    """Return the closure of a row of fields on the result of `before`."""
    follow = path(names)

    def run(value: Json, env: Env) -> Json:
        value = before(value, env)
        return value if value.__class__ is Missing else follow(value, env)

    return run


def index(position: int) -> Run:
    """Return the closure of `[n]`; null outside the list and on anything else."""

    def run(value: Json, _env: Env) -> Json:
        if value.__class__ is not list and value.__class__ is not ItemList:
            return None
        if -len(value) <= position < len(value):
            return value[position]
        return None

    return run


def slice_of(start: int | None, stop: int | None, step: int | None) -> Run:
    """Return the closure of `[start:stop:step]`; null on anything but lists."""

    def run(value: Json, env: Env) -> Json:
        if value.__class__ is not list and value.__class__ is not ItemList:
            return None
        if step == 0:
            raise EvaluationError("Invalid slice, step cannot be 0")
        taken = list(value[start:stop:step])
        spend(env, len(taken))
        return taken

    return run


def _walked(value: Json, steps: tuple[tuple[str, Missing], ...]) -> Json:
    """Walk a row of fields whose middle is not all there, and say with what it ends: a missing key, or null."""
    for name, missing in steps:
        if value.__class__ is dict:
            value = value.get(name, missing)
        elif value.__class__ is Missing:
            return value
        else:
            return None
    return value


def _steps(names: tuple[str, ...]) -> tuple[tuple[str, Missing], ...]:
    return tuple((name, Missing(name)) for name in names)


def _field(name: str) -> Run:
    missing = Missing(name)

    def run(value: Json, _env: Env) -> Json:
        return value.get(name, missing) if value.__class__ is dict else None

    return run
