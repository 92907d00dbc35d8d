"""The standard's functions over lists: sorting, extremes, mapping (row F-09)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.errors import EvaluationError, LimitError
from engine.lang.gotext import as_float
from engine.lang.work import charge

from .signature import Table
from .values import Env, ExpRef, ItemList, Missing, is_number, number, spend

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json


table = Table()

_NEITHER = "invalid type, must be number of string"


@table.function("avg(array[number]) number", "the mean of the numbers")
def avg(env: Env, numbers: list[float]) -> float | None:
    """Return the mean; of no numbers it is not a number, which JSON cannot carry."""
    spend(env, len(numbers))
    if not numbers:
        return float("nan")
    total = 0.0
    for each in numbers:
        total += as_float(each)
    return number(total / len(numbers))


@table.function("map(expref, array) array", "the expression's result for each element")
def mapped(env: Env, reference: ExpRef, elements: list[Json]) -> list[Json]:
    """Evaluate an expression on each element; nulls stay."""
    _refuse_items("map", elements)
    spend(env, len(elements))
    return [_null_for_missing(reference.run(element, env)) for element in elements]


@table.function("max(array[number]|array[string]) any", "the largest number or last text")
def maximum(env: Env, elements: list[Any]) -> Json:
    """Return the largest element, null of none."""
    spend(env, len(elements))
    return max(elements, key=_sort_key, default=None)


@table.function("min(array[number]|array[string]) any", "the smallest number or first text")
def minimum(env: Env, elements: list[Any]) -> Json:
    """Return the smallest element, null of none."""
    spend(env, len(elements))
    return min(elements, key=_sort_key, default=None)


@table.function("max_by(array, expref) any", "the element for which the expression is largest")
def max_by(env: Env, elements: list[Json], reference: ExpRef) -> Json:
    """Return the first element with the largest key."""
    return _best("max_by", env, elements, reference, lambda one, best: one > best)


@table.function("min_by(array, expref) any", "the element for which the expression is smallest")
def min_by(env: Env, elements: list[Json], reference: ExpRef) -> Json:
    """Return the first element with the smallest key."""
    return _best("min_by", env, elements, reference, lambda one, best: one < best)


@table.function("sort(array[string]|array[number]) array", "the elements in order")
def sort(env: Env, elements: list[Any]) -> list[Any]:
    """Return a sorted copy; texts by code point."""
    spend(env, len(elements))
    charge(len(elements) * 500)
    return sorted(elements, key=_sort_key)


@table.function("sort_by(array, expref) array", "the elements in the order of the expression")
def sort_by(env: Env, elements: list[Json], reference: ExpRef) -> list[Json]:
    """Sort in place and return the same list, as upstream does.

    # INVARIANT: an expression that calls this is evaluated on a copy of its data (see `Query`), so the caller's data
    # never changes.
    """
    _refuse_items("sort_by", elements)
    spend(env, len(elements))
    charge(len(elements) * 1_000)
    if len(elements) < 2:
        return elements
    first = _null_for_missing(reference.run(elements[0], env))
    wanted = _comparable(first)
    if wanted is None:
        raise EvaluationError(_NEITHER)
    keys = {
        place: _key_like(wanted, element, reference, env) for place, element in enumerate(elements)
    }
    order = sorted(keys, key=lambda place: _sort_key(keys[place]))
    elements[:] = [elements[place] for place in order]
    return elements


def _key_like(wanted: Callable[[Json], bool], element: Json, reference: ExpRef, env: Env) -> Any:
    try:
        key = reference.run(element, env)
    except LimitError:
        raise
    except EvaluationError:
        key = None
    if not wanted(key):
        raise EvaluationError("error in sort_by comparison")
    return key


def _best(
    name: str, env: Env, elements: list[Json], reference: ExpRef, better: Callable[[Any, Any], bool]
) -> Json:
    _refuse_items(name, elements)
    spend(env, len(elements))
    if len(elements) < 2:
        return elements[0] if elements else None
    best = elements[0]
    best_key = _null_for_missing(reference.run(best, env))
    wanted = _comparable(best_key)
    if wanted is None:
        raise EvaluationError(_NEITHER)
    best_order = _sort_key(best_key)
    for element in elements[1:]:
        key = reference.run(element, env)
        if not wanted(key):
            raise EvaluationError(
                f"invalid type, must be {'string' if best_key.__class__ is str else 'number'}"
            )
        order = _sort_key(key)
        if better(order, best_order):
            best, best_order = element, order
    return best


def _comparable(key: Json) -> Callable[[Json], bool] | None:
    """Return the test that all keys have to pass, by the class of the first; None where that cannot be a key."""
    if key.__class__ is str:
        return lambda given: given.__class__ is str
    return is_number if is_number(key) else None


def _sort_key(key: Any) -> Any:
    return key if key.__class__ is str else as_float(key)


def _null_for_missing(value: Json) -> Json:
    return None if value.__class__ is Missing else value


def _refuse_items(name: str, elements: list[Json]) -> None:
    if elements.__class__ is ItemList:
        raise EvaluationError(f"{name} does not take the result of items")
