"""Syntax trees to closures: one Python function per node, called with a frame.

A frame is a list: bindings, environment, then one slot for each local name, so that reading a name costs one index.
What the nodes mean stands in the modules beside this one, and `program` has the table of them; here is what is known while
compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import BudgetError, CelError, CelSyntaxError, no_overload
from .values import TYPES

if TYPE_CHECKING:
    from . import ast
    from .functions.registry import Overload

Frame = list[Any]
"""Bindings at 0, the CelEnv at 1, local names from 2 on."""

Closure = Callable[[Frame], Any]
"""A compiled node."""

# `&&`, `||`, `!` and `? :`, with the language's rule that a decided result absorbs errors.
#
# `false && error` and `error && false` are both false (language definition, "Logical Operators").


def compile_logic(compiler: Compiler, node: ast.Logic) -> Closure:
    """Compile a chain of `&&` or `||`."""
    parts = tuple(compiler.compile(part) for part in node.parts)
    decides = node.operator == "||"
    if len(parts) == 2:
        return _pair(parts[0], parts[1], node, decides=decides)
    return _many(parts, node, decides=decides)


def _pair(left: Closure, right: Closure, node: ast.Logic, *, decides: bool) -> Closure:
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


def _many(parts: tuple[Closure, ...], node: ast.Logic, *, decides: bool) -> Closure:
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


def compile_choice(compiler: Compiler, node: ast.Choice) -> Closure:
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


class Compiler:
    """What is known while one expression is compiled: functions, local names, names of bindings.

    `makers` compile the nodes by their types. `qualified` are names of bindings that have dots in them; `free` collects the names
    that bindings must have.
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[tuple[str, bool], tuple[Overload, ...]],
        makers: Mapping[type[ast.Node], Maker],
        qualified: frozenset[str] = frozenset(),
    ) -> None:
        self._makers = makers
        self.source = source
        self.functions = functions
        self.qualified = qualified
        self.free: set[str] = set()
        self.slots = 2
        self.locals: dict[str, tuple[int, bool]] = {}

    def compile(self, node: ast.Node) -> Closure:
        """Return the closure of a node. Raises CelSyntaxError."""
        return self._makers[type(node)](self, node)

    def new_slot(self) -> int:
        """Return the index of a new place in the frame."""
        self.slots += 1
        return self.slots - 1

    def within(self, names: Mapping[str, tuple[int, bool]], node: ast.Node) -> Closure:
        """Compile a node that knows more local names: their slots, and whether they are filled only when read."""
        outer = self.locals
        self.locals = {**outer, **names}
        try:
            return self.compile(node)
        finally:
            self.locals = outer

    def local(self, name: str) -> tuple[int, bool] | None:
        """Return the slot of a local name and whether it is filled only when read; None when it is not local."""
        return self.locals.get(name)

    def error(self, message: str, node: ast.Node) -> CelSyntaxError:
        """Make the error of a node that cannot be compiled."""
        return CelSyntaxError(message, self.source, node.at)


def compile_literal(_compiler: Compiler, node: ast.Literal) -> Closure:
    """Compile a value that is written out."""
    value = node.value
    return lambda _frame: value


def compile_ident(compiler: Compiler, node: ast.Ident) -> Closure:
    """Compile a name: local, else of the bindings, else of a type."""
    local = None if node.absolute else compiler.local(node.name)
    if local is not None:
        slot, is_lazy = local
        return _lazy_local(slot) if is_lazy else lambda frame: frame[slot]
    return binding(compiler, node.name, node.at)


def _lazy_local(slot: int) -> Closure:
    def read(frame: Frame) -> Any:
        value = frame[slot]
        return value.read(frame, slot) if type(value) is Deferred else value

    return read


class Deferred:
    """A value that is computed when it is first read, or the error that came of it."""

    __slots__ = ("closure", "error")

    def __init__(self, closure: Closure) -> None:
        self.closure = closure
        self.error: CelError | None = None

    def read(self, frame: Frame, slot: int) -> Any:
        """Compute the value and keep it in its slot. Raises CelError, the same one each time."""
        if self.error is not None:
            raise self.error
        try:
            value = frame[slot] = self.closure(frame)
        except CelError as error:
            self.error = error
            raise
        return value


def binding(compiler: Compiler, name: str, at: int) -> Closure:
    """Compile a name that is read from the bindings, or is that of a type."""
    compiler.free.add(name)
    fallback = TYPES.get(name)

    def read(frame: Frame) -> Any:
        try:
            return frame[0][name]
        except KeyError:
            if fallback is None:
                raise CelError(f"no such attribute(s): {name}", at, name) from None
            return fallback

    return read


Maker = Callable[[Compiler, Any], Closure]
"""What makes a closure of a node."""
