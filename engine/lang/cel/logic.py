"""`&&`, `||`, `!` and `? :`, with the language's rule that a decided result absorbs errors.

`false && error` and `error && false` are both false (language definition, "Logical Operators").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import BudgetError, CelError, no_overload

if TYPE_CHECKING:
    from .ast import Choice, Logic
    from .compiler import Compiler
    from .frames import Closure, Frame


def compile_logic(compiler: Compiler, node: Logic) -> Closure:
    """Compile a chain of `&&` or `||`."""
    parts = tuple(compiler.compile(part) for part in node.parts)
    decides = node.operator == "||"
    if len(parts) == 2:
        return _pair(parts[0], parts[1], node, decides=decides)
    return _many(parts, node, decides=decides)


def _pair(left: Closure, right: Closure, node: Logic, *, decides: bool) -> Closure:
    other = not decides

    def run(frame: Frame) -> Any:
        try:
            value = left(frame)
        except BudgetError:
            raise
        except CelError as error:
            return _despite(error, right, frame)
        if value is decides:
            return decides
        if value is not other:
            return _despite(no_overload("", node.at), right, frame)
        value = right(frame)
        if value is decides or value is other:
            return value
        raise no_overload("", node.at)

    def _despite(failure: CelError, part: Closure, frame: Frame) -> Any:
        """Let the other part decide, else the failure stands."""
        try:
            value = part(frame)
        except BudgetError:
            raise
        except CelError:
            raise failure from None
        if value is decides:
            return decides
        raise failure

    return run


def _many(parts: tuple[Closure, ...], node: Logic, *, decides: bool) -> Closure:
    other = not decides

    def run(frame: Frame) -> Any:
        failure: CelError | None = None
        for part in parts:
            try:
                value = part(frame)
            except BudgetError:
                raise
            except CelError as error:
                failure = failure or error
                continue
            if value is decides:
                return decides
            if value is not other:
                failure = failure or no_overload("", node.at)
        if failure is not None:
            raise failure
        return other

    return run


def compile_choice(compiler: Compiler, node: Choice) -> Closure:
    """Compile `test ? value : otherwise`, also several in a row."""
    otherwise = compiler.compile(node.otherwise)
    cases = tuple((compiler.compile(test), compiler.compile(value)) for test, value in node.cases)

    def run(frame: Frame) -> Any:
        for test, value in cases:
            decided = test(frame)
            if decided is True:
                return value(frame)
            if decided is not False:
                raise no_overload("", node.at)
        return otherwise(frame)

    return run
