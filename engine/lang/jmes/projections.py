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
