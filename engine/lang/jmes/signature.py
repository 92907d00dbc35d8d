"""What a function takes and gives, declared by the line that `jp function` prints.

`@table.function("truncate(string, number) string", "...")` above a Python function makes it callable from expressions:
the declared types are checked before it runs, with upstream's texts, so bodies hold no checks of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engine.errors import EvaluationError
from engine.lang import gotext
from engine.record import record

from .values import Env, ExpRef, ItemList, Missing, Run, is_number, spend, spend_size, spent

if TYPE_CHECKING:
    from engine.model import Json


_F = TypeVar("_F", bound=Callable[..., Any])
_LINE: Final = re.compile(r"(?P<name>\w+)\((?P<parameters>[^)]*)\) (?P<result>.+)")

Check = Callable[[Any], bool]

CHECKS: Final[dict[str, Check]] = {
    "any": lambda value: True,  # noqa: ARG005 - the shape of all argument tests
    "string": lambda value: value.__class__ is str,
    "number": is_number,
    "array": lambda value: value.__class__ is list or value.__class__ is ItemList,
    "object": lambda value: value.__class__ is dict,
    "expref": lambda value: value.__class__ is ExpRef,
    "array[number]": lambda value: value.__class__ is list and all(map(is_number, value)),
    "array[string]": lambda value: (
        value.__class__ is list and all(element.__class__ is str for element in value)
    ),
}

_TAKEN: Final[dict[str, tuple[type, ...]]] = {
    "any": (str, int, float, bool, list, dict, type(None)),
    "string": (str,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


@record
class Function:
    """A function of the language; `body` gets the inputs of the evaluation first, then the arguments."""

    name: str
    parameters: tuple[tuple[str, ...], ...]
    variadic: bool
    result: str
    note: str
    body: Callable[..., Any]

    @property
    def signature(self) -> str:
        """The line that `jp function` prints: `truncate(string, number) string`."""
        types = ["|".join(parameter) for parameter in self.parameters]
        dots = "..." if self.variadic else ""
        return f"{self.name}({', '.join(types)}{dots}) {self.result}"

    def checks(self) -> tuple[tuple[frozenset[type], Check], ...]:
        """Return per parameter the classes it takes without a look, and the test for all others."""
        return tuple((_classes(parameter), _either(parameter)) for parameter in self.parameters)

    def refuse_count(self, count: int) -> str:
        """Return upstream's text when so many arguments are wrong, else an empty text."""
        if self.variadic:
            return "Invalid arity." if count < len(self.parameters) else ""
        return (
            "incorrect number of args" if self.parameters and count != len(self.parameters) else ""
        )

    def wrong_type(self, place: int, value: Json, env: Env) -> EvaluationError:
        """Return the error for an argument that its parameter does not take."""
        spend_size(value, env)
        types = ", ".join(f'"{name}"' for name in self.parameters[place])
        return EvaluationError(
            f"Invalid type for: {gotext.plain(value)}, expected: []jmespath.JpType{{{types}}}"
        )


class Table:
    """The functions that one module declares."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def function(self, line: str, note: str) -> Callable[[_F], _F]:
        """Declare the decorated function under the name, parameter types and result type of `line`."""
        found = _LINE.fullmatch(line)
        assert found is not None, line
        listed = found["parameters"]
        variadic = listed.endswith("...")
        names = [name for name in listed.removesuffix("...").split(", ") if name]
        parameters = tuple(tuple(name.split("|")) for name in names)

        def declare(body: _F) -> _F:
            self.functions[found["name"]] = Function(
                found["name"], parameters, variadic, found["result"], note, body
            )
            return body

        return declare


def fail(name: str, text: str) -> EvaluationError:
    """Return an error from inside the function `name`, in upstream's form."""
    return EvaluationError(f"JMESPath function '{name}': {text}")


def _classes(types: tuple[str, ...]) -> frozenset[type]:
    return frozenset(kind for name in types for kind in _TAKEN.get(name, ()))


def _either(types: tuple[str, ...]) -> Check:
    checks = [CHECKS[name] for name in types]
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)
    return lambda value: any(check(value) for check in checks)


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
