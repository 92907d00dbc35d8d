"""Fields, indexes and slices, compiled. Most of what policies write is a row of fields, so a row is one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError

from .values import Env, ItemList, Missing, Run, is_false, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json


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


# Projections, compiled: `[*]`, `[]`, `[?…]`, `.*`.
#
# What follows a projection is evaluated per element; null and missing keys drop out. The left side of a flatten, a filter
# and a value projection turns any error into null, that of `[*]` only a missing key (row V-20); running out of budget
# is never turned into null.


def projected(left: Run, each: Run | None) -> Run:
    """Return the closure of `left[*]each`, also of a slice and what follows it."""

    def run(value: Json, env: Env) -> Json:
        elements = left(value, env)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        spend(env, len(elements))
        return _kept(elements, each, env)

    return run


def flattened(left: Run, each: Run | None) -> Run:
    """Return the closure of `left[]each`; without `each` that of the flattened list alone, nulls included."""

    def run(value: Json, env: Env) -> Json:
        try:
            elements = left(value, env)
        except EvaluationError as error:
            return _null_for(error)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        flat: list[Json] = []
        for element in elements:
            if element.__class__ is list or element.__class__ is ItemList:
                flat.extend(element)
            else:
                flat.append(element)
        spend(env, len(elements) + len(flat))
        return flat if each is None else _kept(flat, each, env)

    return run


def filtered(left: Run, condition: Run, each: Run | None) -> Run:
    """Return the closure of `left[?condition]each`."""

    def run(value: Json, env: Env) -> Json:
        try:
            elements = left(value, env)
        except EvaluationError as error:
            return _null_for(error)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        spend(env, len(elements))
        kept: list[Json] = []
        for element in elements:
            verdict = condition(element, env)
            if verdict.__class__ is Missing or (not verdict and is_false(verdict)):
                continue
            if each is not None:
                element = each(element, env)
            if element is not None and element.__class__ is not Missing:
                kept.append(element)
        return kept

    return run


def values_projected(left: Run, each: Run | None) -> Run:
    """Return the closure of `left.*each`."""

    def run(value: Json, env: Env) -> Json:
        try:
            members = left(value, env)
        except EvaluationError as error:
            return _null_for(error)
        if members.__class__ is not dict:
            return None
        spend(env, len(members))
        return _kept(members.values(), each, env)

    return run


def _kept(elements: Iterable[Json], each: Run | None, env: Env) -> list[Json]:
    if each is None:
        return [element for element in elements if element is not None]
    kept = []
    for element in elements:
        given = each(element, env)
        if given is not None and given.__class__ is not Missing:
            kept.append(given)
    return kept


def _null_for(error: EvaluationError) -> None:
    """Turn an error into null, but not the end of the budget."""
    if isinstance(error, LimitError):
        raise error
