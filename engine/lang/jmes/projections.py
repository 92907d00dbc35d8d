"""Projections, compiled: `[*]`, `[]`, `[?…]`, `.*`.

What follows a projection is evaluated per element; null and missing keys drop out. The left side of a flatten, a filter
and a value projection turns any error into null, that of `[*]` only a missing key (row V-20); running out of budget
is never turned into null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import EvaluationError, LimitError

from .values import ItemList, Missing, is_false, spend

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.model import Json

    from .env import Env
    from .values import Run


def projected(left: Run, each: Run | None) -> Run:
    """Return the closure of `left[*]each`, also of a slice and what follows it."""

    def run(value: Json, env: Env) -> Json:
        elements = left(value, env)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        return _collected(elements, each, env)

    return run


def flattened(left: Run, each: Run | None) -> Run:
    """Return the closure of `left[]each`; without `each` that of the flattened list alone, nulls included."""

    def run(value: Json, env: Env) -> Json:
        elements = _or_null(left, value, env)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        flat: list[Json] = []
        for element in elements:
            if element.__class__ is list or element.__class__ is ItemList:
                flat.extend(element)
                spend(env, len(element))
            else:
                flat.append(element)
        if each is None:
            spend(env, len(elements))
            return flat
        return _collected(flat, each, env)

    return run


def filtered(left: Run, condition: Run, each: Run | None) -> Run:
    """Return the closure of `left[?condition]each`."""

    def run(value: Json, env: Env) -> Json:
        elements = _or_null(left, value, env)
        if elements.__class__ is not list and elements.__class__ is not ItemList:
            return None
        spend(env, len(elements))
        kept: list[Json] = []
        for element in elements:
            verdict = condition(element, env)
            if verdict.__class__ is Missing or is_false(verdict):
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
        members = _or_null(left, value, env)
        if members.__class__ is not dict:
            return None
        return _collected(members.values(), each, env)

    return run


def _collected(elements: Iterable[Json], each: Run | None, env: Env) -> list[Json]:
    if each is None:
        kept = [element for element in elements if element is not None]
        spend(env, len(kept))
        return kept
    kept = []
    count = 0
    for element in elements:
        count += 1
        given = each(element, env)
        if given is not None and given.__class__ is not Missing:
            kept.append(given)
    spend(env, count)
    return kept


def _or_null(left: Run, value: Json, env: Env) -> Json:
    try:
        return left(value, env)
    except LimitError:
        raise
    except EvaluationError:
        return None
