"""Trees to closures with upstream's semantics of missing keys.

Every node becomes a function of a value and the evaluation's inputs. A key that an object does not have comes back as a
`Missing` value; each closure here decides, as row V-20 lists, whether it passes on or turns into null. Nothing is
allocated for a missing key, and fields in a row become one loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError

from . import paths
from .errors import ExpressionError
from .functions import table
from .logic import all_true, compile_comparison, either_of, first_true, negated, piped
from .signature import compile_call
from .values import Env, ExpRef, Missing, Run, spend

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.model import Json

    from .parser import Tree

MAX_DEPTH: Final = 200
"""How many closures may stand inside each other; keeps the evaluation far from Python's recursion limit."""


class Compiler:
    """One walk over a tree; `fresh_literals` makes literals new at each use, for expressions that reorder lists."""

    def __init__(self, *, fresh_literals: bool = False) -> None:
        self._depth = 0
        self.fresh_literals = fresh_literals

    def run_of(self, tree: Tree) -> Run:
        """Return the closure of a node. Raises ExpressionError when nodes nest too deeply."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ExpressionError(f"the expression nests deeper than {MAX_DEPTH} levels")
        run = _MAKERS[tree["type"]](self, tree)
        self._depth -= 1
        return run

    def runs_of(self, trees: list[Tree]) -> list[Run]:
        """Return the closures of several nodes."""
        return [self.run_of(tree) for tree in trees]


def _literal(compiler: Compiler, tree: Tree) -> Run:
    value = tree["value"]
    if compiler.fresh_literals and value.__class__ in (list, dict):
        return lambda _value, _env: fresh(value)
    return lambda _value, _env: value


def _subexpression(compiler: Compiler, tree: Tree) -> Run:
    run: Run | None = None
    names: list[str] = []
    for child in tree["children"]:
        if child["type"] == "field":
            names.append(child["value"])
            continue
        run = _then(_with_names(run, names), compiler.run_of(child))
        names = []
    return _with_names(run, names) or _same


def _index_expression(compiler: Compiler, tree: Tree) -> Run:
    left, right = tree["children"]
    if left["type"] == "identity":
        return compiler.run_of(right)
    return _then(compiler.run_of(left), compiler.run_of(right))


def _projection(compiler: Compiler, tree: Tree) -> Run:
    left, right, *condition = tree["children"]
    each = None if right["type"] == "identity" else compiler.run_of(right)
    if left["type"] == "flatten" and not condition:
        return paths.flattened(compiler.run_of(left["children"][0]), each or _same)
    before = compiler.run_of(left)
    if condition:
        return paths.filtered(before, compiler.run_of(condition[0]), each)
    project = paths.projected if tree["type"] == "projection" else paths.values_projected
    return project(before, each)


def _comparator(compiler: Compiler, tree: Tree) -> Run:
    left, right = tree["children"]
    literal = right["value"] if right["type"] == "literal" else None
    return compile_comparison(tree["value"], compiler.run_of(left), compiler.run_of(right), literal)


def _or_expression(compiler: Compiler, tree: Tree) -> Run:
    runs = compiler.runs_of(_flat(tree, "or_expression"))
    return either_of(runs[0], runs[1]) if len(runs) == 2 else first_true(runs)


def _multi_select_dict(compiler: Compiler, tree: Tree) -> Run:
    pairs = [(pair["value"], compiler.run_of(pair["children"][0])) for pair in tree["children"]]
    return object_of(pairs)


def _expref(compiler: Compiler, tree: Tree) -> Run:
    reference = ExpRef(compiler.run_of(tree["children"][0]))
    return lambda _value, _env: reference


def _function_expression(compiler: Compiler, tree: Tree) -> Run:
    name = tree["value"]
    return compile_call(name, table().get(name), compiler.runs_of(tree["children"]))


_MAKERS: Final[dict[str, Callable[[Compiler, Tree], Run]]] = {
    "and_expression": lambda made, tree: all_true(made.runs_of(_flat(tree, "and_expression"))),
    "comparator": _comparator,
    "current": lambda _, _tree: _same,
    "empty": lambda _, _tree: _empty,
    "expref": _expref,
    "field": lambda _, tree: paths.path((tree["value"],)),
    "filter_projection": _projection,
    "flatten": lambda made, tree: paths.flattened(made.run_of(tree["children"][0]), None),
    "function_expression": _function_expression,
    "identity": lambda _, _tree: _same,
    "index": lambda _, tree: paths.index(tree["value"]),
    "index_expression": _index_expression,
    "literal": _literal,
    "multi_select_dict": _multi_select_dict,
    "multi_select_list": lambda made, tree: list_of(made.runs_of(tree["children"])),
    "not_expression": lambda made, tree: negated(made.run_of(tree["children"][0])),
    "or_expression": _or_expression,
    "pipe": lambda made, tree: piped(made.runs_of(_flat(tree, "pipe"))),
    "projection": _projection,
    "slice": lambda _, tree: paths.slice_of(*tree["children"]),
    "subexpression": _subexpression,
    "value_projection": _projection,
}


def fresh(value: Json) -> Json:
    """Return a copy of lists and objects all the way down, for an evaluation that reorders lists in place."""
    if value.__class__ is list:
        return [fresh(element) for element in value]
    if value.__class__ is dict:
        return {key: fresh(member) for key, member in value.items()}
    return value


def _same(value: Json, _env: Env) -> Json:
    return value


def _empty(_value: Json, _env: Env) -> Json:
    raise EvaluationError("Unknown AST node: ASTEmpty")


def _with_names(run: Run | None, names: list[str]) -> Run | None:
    if not names:
        return run
    return paths.path(tuple(names)) if run is None else paths.path_after(run, tuple(names))


def _then(left: Run | None, right: Run) -> Run:
    if left is None:
        return right

    def run(value: Json, env: Env) -> Json:
        reached = left(value, env)
        return reached if reached.__class__ is Missing else right(reached, env)

    return run


def _flat(tree: Tree, kind: str) -> list[Tree]:
    """Return the operands of operators of one kind in a row, so that long rows do not nest."""
    operands: list[Tree] = []
    while tree["type"] == kind:
        tree, right = tree["children"]
        operands.append(right)
    operands.append(tree)
    operands.reverse()
    return operands


# Multi-selects, compiled: `[a, b]` and `{a: b}`. Missing keys become null inside them (row V-20).


def list_of(runs: list[Run]) -> Run:
    """Return the closure of `[a, b]`; null stays null."""

    def run(value: Json, env: Env) -> Json:
        if value is None:
            return None
        spend(env, len(runs))
        built: list[Any] = []
        for each in runs:
            given = each(value, env)
            built.append(None if given.__class__ is Missing else given)
        return built

    return run


def object_of(pairs: list[tuple[str, Run]]) -> Run:
    """Return the closure of `{a: b}`; null stays null."""

    def run(value: Json, env: Env) -> Json:
        if value is None:
            return None
        spend(env, len(pairs))
        built: dict[str, Any] = {}
        for key, each in pairs:
            given = each(value, env)
            built[key] = None if given.__class__ is Missing else given
        return built

    return run
