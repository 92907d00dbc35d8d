"""Calls of functions: which overload, with which checks, at which cost.

Names and numbers of arguments are settled when compiling; types when calling, since data has no declared types. A
function that one overload serves (most) is called with two type checks and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError

from .arithmetic import located
from .ast import Call, Ident, Literal, Node, Select
from .errors import CelError, no_operator, no_overload
from .functions.registry import KINDS, Overload
from .selection import optional_chain, path_of
from .values import type_name

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from .compiler import Closure, Compiler, Frame

_LONG: Final = 64
"""Length from which on a text or list costs more than the call itself."""
_SIZED: Final = (str, list, dict, bytes)


def compile_call(compiler: Compiler, node: Call) -> Closure:
    """Compile a call. Raises CelSyntaxError for functions that do not exist."""
    if node.name == "orValue" and len(node.arguments) == 1 and node.target is not None:
        chain = optional_chain(compiler, node.target, node.arguments[0])
        if chain is not None:
            return chain
    overloads, arguments = resolved(compiler.functions, node, compiler.locals)
    if not overloads:
        text = f"undeclared reference to '{node.name}' (in container '')"
        raise compiler.error(text, node)
    closures = tuple(compiler.compile(argument) for argument in arguments)
    fitting = tuple(overload for overload in overloads if overload.accepts(len(closures)))
    if not fitting:
        raise compiler.error(f"found no matching overload for '{node.name}'", node)
    if node.name == "size":
        return _size(closures[0], fitting, node)
    only = fitting[0]
    if len(fitting) == 1 and not (only.env or only.variadic or only.cost):
        if len(closures) == 1:
            return _one(closures[0], only, node)
        if len(closures) == 2:
            return _two(closures[0], closures[1], only, node)
    return _any(closures, fitting, node)


def resolved(
    functions: Mapping[tuple[str, bool], tuple[Overload, ...]], node: Call, local: Container[str]
) -> tuple[tuple[Overload, ...], list[Node]]:
    """Return what a call may mean, nothing where no function has its name, and its arguments, the receiver of a method first.

    A dotted name before it is a namespace if there is such a function and no `local` name begins it.
    """
    if node.target is None:
        return functions.get((node.name, False), ()), node.arguments
    prefix = _namespace(node.target, local)
    if prefix:
        found = functions.get((f"{prefix}.{node.name}", False))
        if found is not None:
            return found, node.arguments
    return functions.get((node.name, True), ()), [node.target, *node.arguments]


def _namespace(target: Node, local: Container[str]) -> str:
    """Return the dotted name before a call, if it can be a namespace: no local name at its root."""
    root = target
    while isinstance(root, Select) and not root.optional and not root.test:
        root = root.operand
    if isinstance(root, Ident) and (root.absolute or root.name not in local):
        return path_of(target)
    return ""


def _types(overload: Overload, index: int) -> tuple[type, ...]:
    return KINDS[overload.kinds[index]]


_BY_FIRST: Final = frozenset(("size", "matches"))
_READ_BEFORE: Final = frozenset(("matches", "find", "findAll"))
"""Functions whose expressions are read when the call is compiled, and which then say nothing of what they do not take."""
_UNNAMED: Final = frozenset(("startsWith", "endsWith", "contains"))
"""Functions that check the types of their arguments themselves, and do not say their name where these are wrong."""


def _refused(overload: Overload, node: Call, values: list[Any]) -> CelError:
    if overload.name in _READ_BEFORE and isinstance(node.arguments[0], Literal):
        return no_overload("", node.at)
    if overload.name in _BY_FIRST:
        return no_operator(overload.name, values[0], node.at)
    if overload.name in _UNNAMED:
        return no_overload("", node.at)
    shown = ", ".join(type_name(value) for value in values)
    name = node.name if overload.is_method else overload.name
    return no_overload(f"{name}({shown})", node.at)


def failed(error: EvaluationError, at: int) -> CelError:
    """Return an error of a function as one of the expression, with its position."""
    return located(error if isinstance(error, CelError) else CelError(error.message), at)


def _size(argument: Closure, overloads: tuple[Overload, ...], node: Call) -> Closure:
    careful = _any((argument,), overloads, node)

    def call(frame: Frame) -> int:
        value = argument(frame)
        if type(value) in _SIZED:
            return len(value)
        return int(careful(frame))

    return call


def _one(argument: Closure, overload: Overload, node: Call) -> Closure:
    types, run = _types(overload, 0), overload.run

    def call(frame: Frame) -> Any:
        value = argument(frame)
        if types and type(value) not in types and not overload.fits([value]):
            raise _refused(overload, node, [value])
        if type(value) in _SIZED and len(value) > _LONG:
            frame[1].charge(len(value) // _LONG)
        try:
            return run(value)
        except EvaluationError as error:
            raise failed(error, node.at) from error

    return call


def _two(first: Closure, second: Closure, overload: Overload, node: Call) -> Closure:
    types, second_types, run = _types(overload, 0), _types(overload, 1), overload.run

    def call(frame: Frame) -> Any:
        one, other = first(frame), second(frame)
        is_fitting = type(one) in types and type(other) in second_types
        if not is_fitting and not overload.fits([one, other]):
            raise _refused(overload, node, [one, other])
        if type(one) in _SIZED and len(one) > _LONG:
            frame[1].charge(len(one) // _LONG)
        try:
            return run(one, other)
        except EvaluationError as error:
            raise failed(error, node.at) from error

    return call


def _any(arguments: tuple[Closure, ...], overloads: tuple[Overload, ...], node: Call) -> Closure:
    def call(frame: Frame) -> Any:
        values = [argument(frame) for argument in arguments]
        for overload in overloads:
            if overload.fits(values):
                break
        else:
            raise _refused(overloads[0], node, values)
        sizes = sum(len(value) for value in values if type(value) in _SIZED)
        frame[1].charge(overload.cost + sizes // _LONG)
        try:
            return overload.run(frame[1], *values) if overload.env else overload.run(*values)
        except EvaluationError as error:
            raise failed(error, node.at) from error

    return call
