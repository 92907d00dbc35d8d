"""Syntax trees to closures: one Python function per node, called with a frame.

A frame is a list: bindings, environment, then one slot for each local name, so that reading a name costs one index.
What the nodes mean stands in the modules beside this one; here are the table of them and what is known while compiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import arithmetic, calls, comprehensions, construction, logic, selection
from .ast import (
    Bind,
    Call,
    Chain,
    Choice,
    Comprehension,
    Ident,
    Index,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    Unary,
)
from .errors import CelSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .frames import Closure
    from .functions.registry import Overload


class Compiler:
    """What is known while one expression is compiled: functions, local names, names of bindings.

    `qualified` are names of bindings that have dots in them; `free` collects the names that bindings must have.
    """

    def __init__(
        self,
        source: str,
        functions: Mapping[tuple[str, bool], tuple[Overload, ...]],
        qualified: frozenset[str] = frozenset(),
    ) -> None:
        self.source = source
        self.functions = functions
        self.qualified = qualified
        self.free: set[str] = set()
        self.slots = 2
        self._locals: dict[str, tuple[int, bool]] = {}

    def compile(self, node: Node) -> Closure:
        """Return the closure of a node. Raises CelSyntaxError."""
        return _COMPILERS[type(node)](self, node)

    def new_slot(self) -> int:
        """Return the index of a new place in the frame."""
        self.slots += 1
        return self.slots - 1

    def within(self, names: Mapping[str, tuple[int, bool]], node: Node) -> Closure:
        """Compile a node that knows more local names: their slots, and whether they are filled only when read."""
        outer = self._locals
        self._locals = {**outer, **names}
        try:
            return self.compile(node)
        finally:
            self._locals = outer

    def local(self, name: str) -> tuple[int, bool] | None:
        """Return the slot of a local name and whether it is filled only when read; None when it is not local."""
        return self._locals.get(name)

    def error(self, message: str, node: Node) -> CelSyntaxError:
        """Make the error of a node that cannot be compiled."""
        return CelSyntaxError(message, self.source, node.at)


def _literal(_compiler: Compiler, node: Literal) -> Closure:
    value = node.value
    return lambda _frame: value


_COMPILERS: Final[dict[type[Node], Callable[[Compiler, Any], Closure]]] = {
    Literal: _literal,
    Ident: selection.compile_ident,
    Select: selection.compile_select,
    Index: selection.compile_index,
    Call: calls.compile_call,
    Unary: arithmetic.compile_unary,
    Chain: arithmetic.compile_chain,
    Logic: logic.compile_logic,
    Choice: logic.compile_choice,
    ListLiteral: construction.compile_list,
    MapLiteral: construction.compile_map,
    MessageLiteral: construction.compile_message,
    Comprehension: comprehensions.compile_comprehension,
    Bind: comprehensions.compile_bind,
}
