"""Pipes and boolean operators, compiled. All absorb missing keys but the last operand of `&&` (row V-20)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .values import Missing, is_false

if TYPE_CHECKING:
    from engine.model import Json

    from .env import Env
    from .values import Run


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
