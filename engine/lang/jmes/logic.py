"""Pipes and boolean operators, compiled. All absorb missing keys but the last operand of `&&` (row V-20)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

from engine.lang.gotext import as_float

from .values import Env, Missing, Run, equal, is_false, is_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json


def piped(runs: list[Run]) -> Run:
    """Return the closure of operands joined by `|`; a missing key is null for what follows, and at the end."""

    def run(value: Json, env: Env) -> Json:
        for each in runs:
            value = each(value, env)
            if value.__class__ is Missing:
                value = None
        return value

    return run


def either_of(left: Run, right: Run) -> Run:
    """Return the closure of `left || right`."""

    def run(value: Json, env: Env) -> Json:
        given = left(value, env)
        if given.__class__ is not Missing and (given or not is_false(given)):
            return given
        given = right(value, env)
        return None if given.__class__ is Missing else given

    return run


def first_true(runs: list[Run]) -> Run:
    """Return the closure of operands joined by `||`."""
    *tried, last = runs

    def run(value: Json, env: Env) -> Json:
        for each in tried:
            given = each(value, env)
            if given.__class__ is not Missing and (given or not is_false(given)):
                return given
        given = last(value, env)
        return None if given.__class__ is Missing else given

    return run


def all_true(runs: list[Run]) -> Run:
    """Return the closure of operands joined by `&&`; a missing key of the last operand passes on."""
    *tried, last = runs

    def run(value: Json, env: Env) -> Json:
        for each in tried:
            given = each(value, env)
            if given.__class__ is Missing:
                return None
            if not given and is_false(given):
                return given
        return last(value, env)

    return run


def negated(operand: Run) -> Run:
    """Return the closure of `!operand`."""

    def run(value: Json, env: Env) -> Json:
        given = operand(value, env)
        return given.__class__ is Missing or (not given and is_false(given))

    return run


# Comparators, compiled. Order exists between numbers only and is null otherwise; a missing key compares as null.

_ORDERS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}


def compile_comparison(name: str, left: Run, right: Run, literal: Json) -> Run:
    """Return the closure of a comparator; `literal` is the right side where that is a literal."""
    if name in _ORDERS:
        return _ordered(_ORDERS[name], left, right)
    if literal.__class__ is str:
        return _equals_text(left, literal) if name == "eq" else _differs_from_text(left, literal)
    return _compared(left, right, unequal=name == "ne")


def _equals_text(left: Run, text: str) -> Run:
    def run(value: Json, env: Env) -> Json:
        given = left(value, env)
        return given.__class__ is str and given == text

    return run


def _differs_from_text(left: Run, text: str) -> Run:
    def run(value: Json, env: Env) -> Json:
        given = left(value, env)
        return given.__class__ is not str or given != text

    return run


def _compared(left: Run, right: Run, *, unequal: bool) -> Run:
    def run(value: Json, env: Env) -> Json:
        one = left(value, env)
        other = right(value, env)
        return unequal is not equal(
            None if one.__class__ is Missing else one,
            None if other.__class__ is Missing else other,
            env,
        )

    return run


def _ordered(decide: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    def run(value: Json, env: Env) -> Json:
        one = left(value, env)
        other = right(value, env)
        if not is_number(one) or not is_number(other):
            return None
        return decide(as_float(one), as_float(other))

    return run
