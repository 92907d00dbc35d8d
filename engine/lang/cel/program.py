"""Compiled expressions: from text to something that can be called.

Apart from the compiler because here is the border: whatever goes wrong inside leaves as CelError, and texts that were
compiled before are not compiled again.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from . import arithmetic, ast, calls, comprehensions, construction, selection
from .checker import OBJECTS, Checked, Rule, check
from .compiler import (
    Closure,
    Compiler,
    Maker,
    compile_choice,
    compile_ident,
    compile_literal,
    compile_logic,
)
from .env import CelEnv
from .errors import CelError, CelSyntaxError
from .functions import NAMES, table
from .parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .types import Type

ALL_LIBRARIES: Final = frozenset(NAMES)
_FOREIGN: Final = (
    ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError,
)  # fmt: skip
_MAKERS: Final[dict[type[ast.Node], Maker]] = {
    ast.Literal: compile_literal,
    ast.Ident: compile_ident,
    ast.Select: selection.compile_select,
    ast.Index: selection.compile_index,
    ast.Call: calls.compile_call,
    ast.Unary: arithmetic.compile_unary,
    ast.Chain: arithmetic.compile_chain,
    ast.Logic: compile_logic,
    ast.Choice: compile_choice,
    ast.ListLiteral: construction.compile_list,
    ast.MapLiteral: construction.compile_map,
    ast.MessageLiteral: construction.compile_message,
    ast.Comprehension: comprehensions.compile_comprehension,
    ast.Bind: comprehensions.compile_bind,
}


class Program:
    """A compiled expression; calling it evaluates it. Immutable, so threads may share it."""

    __slots__ = ("_closure", "_functions", "_spare", "names", "size", "source", "tree")

    def __init__(self, source: str, tree: ast.Node, compiler: Compiler) -> None:
        self.source = source
        self.tree = tree
        self.size = tree.size
        self._closure: Closure = compiler.compile(tree)
        self._functions = compiler.functions
        self._spare = [None] * (compiler.slots - 2)
        self.names = frozenset(compiler.free)
        """Names that the expression reads from its bindings; types among them when they are named."""

    def __repr__(self) -> str:
        return f"Program({self.source!r})"

    def check(self, names: Mapping[str, Type] = OBJECTS) -> Checked:
        """Return the type of the expression where `names` have these types, and what is wrong with it."""
        return check(self.tree, self._functions, names)

    def __call__(self, bindings: Mapping[str, Any], env: CelEnv | None = None) -> Any:
        """Return the value for these bindings. Raises CelError, or what `env.ask` or a lazy binding raised."""
        env = CelEnv() if env is None else env
        env.budget -= self.size
        if env.budget < 0:
            env.charge(0)
        try:
            return self._closure([bindings, env, *self._spare])
        except RecursionError as error:
            raise CelError("data nests too deep to be evaluated") from error
        except MemoryError as error:
            raise CelError("not enough memory to evaluate") from error
        except _FOREIGN as error:
            raise CelError(f"internal error: {type(error).__name__}: {error}") from error


def compile(  # noqa: A001 - the verb of this package, as in `re`
    expression: str, libraries: Iterable[str] = ALL_LIBRARIES, *, qualified: Iterable[str] = ()
) -> Program:
    """Return the program of an expression, from a cache if it was compiled before. Raises CelSyntaxError.

    `libraries` are names of `functions.NAMES`; `qualified` are names of bindings that contain dots.
    """
    return _compiled(expression, frozenset(libraries), frozenset(qualified))


def readable(text: object) -> Program | None:
    """Return the program of what a policy has as an expression, None where it is none: whoever compiles the policy says so."""
    try:
        return compile(str(text or "").strip())
    except CelSyntaxError:
        return None


@lru_cache(maxsize=4096)
def _compiled(expression: str, libraries: frozenset[str], qualified: frozenset[str]) -> Program:
    functions = table(libraries)
    try:
        tree = parse(expression)
        try:
            program = Program(expression, tree, Compiler(expression, functions, _MAKERS, qualified))
        except CelSyntaxError as error:
            raise _with_types(error, check(tree, functions, {})) from None
        for fault in program.check({}).faults:
            if fault.rule is Rule.LANGUAGE:
                raise CelSyntaxError(fault.message, expression, fault.at)
        return program
    except RecursionError as error:
        raise CelSyntaxError("expression nests too deep", expression) from error


def _with_types(error: CelSyntaxError, found: Checked) -> CelSyntaxError:
    """Return an error of a call with the types that it is given, where a check says more of the same."""
    for fault in found.faults:
        if fault.at == error.position and fault.message.startswith(error.message):
            error.message = fault.message
    return error
