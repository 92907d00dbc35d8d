"""Calls of functions, compiled: arguments evaluated first, then counted, then checked, then the body, as upstream does.

So an error inside an argument comes before a wrong count, and a wrong count before a wrong type. A missing key as an
argument is null (row V-20).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.errors import EvaluationError

from .values import Missing, spend, spent

if TYPE_CHECKING:
    from engine.model import Json

    from .errors import Env
    from .signature import Function
    from .values import Run

_TEXT_COST: Final = 6
"""Shift from characters of a result to budget: 64 characters cost as much as one list element."""


def compile_call(name: str, function: Function | None, arguments: list[Run]) -> Run:
    """Return the closure of a call; `function` is None for a name that no function has."""
    if function is None:
        return _failing(arguments, f"unknown function: {name}")
    refusal = function.refuse_count(len(arguments))
    if refusal:
        return _failing(arguments, refusal)
    if not function.variadic and len(function.parameters) == 1:
        return _call_1(function, arguments[0])
    if not function.variadic and len(function.parameters) == 2:
        return _call_2(function, arguments[0], arguments[1])
    return _call_n(function, arguments)


def _failing(arguments: list[Run], text: str) -> Run:
    def run(value: Json, env: Env) -> Json:
        for argument in arguments:
            argument(value, env)
        raise EvaluationError(text)

    return run


def _call_1(function: Function, argument: Run) -> Run:
    body = function.body
    ((classes, check),) = function.checks()

    def run(value: Json, env: Env) -> Json:
        given = argument(value, env)
        if given.__class__ is Missing:
            given = None
        if given.__class__ not in classes and not check(given):
            raise function.wrong_type(0, given, env)
        return _counted(body(env, given), env)

    return run


def _call_2(function: Function, first: Run, second: Run) -> Run:
    body = function.body
    (classes, check), (classes_2, check_2) = function.checks()

    def run(value: Json, env: Env) -> Json:
        one = first(value, env)
        if one.__class__ is Missing:
            one = None
        other = second(value, env)
        if other.__class__ is Missing:
            other = None
        if one.__class__ not in classes and not check(one):
            raise function.wrong_type(0, one, env)
        if other.__class__ not in classes_2 and not check_2(other):
            raise function.wrong_type(1, other, env)
        return _counted(body(env, one, other), env)

    return run


def _call_n(function: Function, arguments: list[Run]) -> Run:
    body = function.body
    checks = () if function.variadic else function.checks()

    def run(value: Json, env: Env) -> Json:
        given: list[Json] = []
        for argument in arguments:
            result = argument(value, env)
            given.append(None if result.__class__ is Missing else result)
        for place, (classes, check) in enumerate(checks):
            if given[place].__class__ not in classes and not check(given[place]):
                raise function.wrong_type(place, given[place], env)
        if not function.parameters:
            given.clear()
        return _counted(body(env, *given), env)

    return run


def _counted(result: Json, env: Env) -> Json:
    if result.__class__ is str:
        spend(env, 1 + (len(result) >> _TEXT_COST))
        return result
    env.budget -= 1
    if env.budget < 0:
        raise spent()
    return result
