"""A compiled expression, and the cache of them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from engine.errors import EvaluationError, LimitError
from engine.lang.lazy_regex import regex

from .compiler import Compiler, fresh
from .errors import ExpressionError, UnknownKeyError
from .values import Env, ExpRef, Missing, spend_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.model import Json

    from .parser import Tree

_CACHED_LENGTH: Final = 2_000
_UNCHECKED_GROWTH: Final = 16
_GROWING: Final = frozenset(("multi_select_list", "multi_select_dict"))
_UNBOUNDED: Final = frozenset(
    ("add", "subtract", "multiply", "divide", "round", "sum", "to_number", "avg")
)
"""Functions whose result may be infinite or not a number, which JSON cannot carry."""


class Query:
    """A compiled expression. Call it with a value and the inputs of the evaluation.

    `text` is the expression, `names` all keys that it mentions, for callers that load data only when it is needed.
    """

    __slots__ = ("_careful", "_checked", "_reorders", "_run", "names", "text")

    def __init__(self, text: str) -> None:
        tree = tree_of(text)
        nodes = list(_nodes(tree))
        self.text = text
        self.names = frozenset(node["value"] for node in nodes if node["type"] == "field")
        called = {node["value"] for node in nodes if node["type"] == "function_expression"}
        # INVARIANT: `sort_by` works in place, so expressions that call it get data of their own.
        self._reorders = "sort_by" in called
        growing = sum(node["type"] in _GROWING for node in nodes)
        self._checked = growing > _UNCHECKED_GROWTH or not called.isdisjoint(_UNBOUNDED)
        self._careful = self._reorders or self._checked
        self._run = Compiler(fresh_literals=self._reorders).run_of(tree)

    def __repr__(self) -> str:
        return f"Query({self.text!r})"

    def __call__(self, data: Json, env: Env) -> Json:
        """Return the value that the expression has on `data`, which is never changed; the value may share its parts.

        Raises UnknownKeyError where a key is missing (row V-20), EvaluationError with upstream's text where a function
        fails, LimitError when the evaluation takes too many steps.
        """
        try:
            result = self._with_care(data, env) if self._careful else self._run(data, env)
        except RecursionError:
            raise LimitError("the value is nested too deeply") from None
        except UnicodeError:
            raise EvaluationError("a text holds half of a surrogate pair") from None
        if result.__class__ is Missing:
            raise UnknownKeyError(result.key)
        return {} if result.__class__ is ExpRef else result

    def _with_care(self, data: Json, env: Env) -> Json:
        result = self._run(fresh(data) if self._reorders else data, env)
        if self._checked:
            _check(result, env)
        return result


def tree_of(text: str) -> Tree:
    """Return the tree of an expression. Raises ExpressionError for a text that is none."""
    plain = plain_tree(text)
    if plain is not None:
        return plain
    from .parser import parse  # here: most policies have no expression that needs it

    return parse(text)


def compile(expression: str) -> Query:  # noqa: A001 - the verb of the language's facade
    """Return the compiled expression, from a bounded cache where it is short. Raises ExpressionError."""
    return _cached(expression) if len(expression) <= _CACHED_LENGTH else _compiled(expression)


def _compiled(expression: str) -> Query:
    try:
        return Query(expression)
    except RecursionError:
        raise ExpressionError("the expression nests too deeply") from None


_cached = lru_cache(maxsize=4096)(_compiled)


def _nodes(tree: Tree) -> Iterator[Tree]:
    pending: list[Any] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(node["children"])


def _check(result: Json, env: Env) -> None:
    """Refuse a result that JSON cannot carry, or that is far larger written out than in memory."""
    if result.__class__ in (list, dict):
        spend_size(result, env)
    pending = [result]
    while pending:
        value = pending.pop()
        if value.__class__ is float and not math.isfinite(value):
            shown = "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
            raise EvaluationError(f"json: unsupported value: {shown}")
        if value.__class__ is list:
            pending.extend(value)
        elif value.__class__ is dict:
            pending.extend(value.values())


# Trees of the expressions that most policies have: a path of names, then some names, with a text for where there is nothing.
#
# Apart from the parser, because that loads the `jmespath` package, which takes as long as all else that a short command does. What
# is read here has the very tree that the parser gives it; everything else is left to the parser.

_NAME: Final = "[A-Za-z_][A-Za-z0-9_]*"
_PLAIN: Final = regex(
    rf"({_NAME}(?:\.{_NAME})*)(?:\.\[({_NAME}(?:, *{_NAME})*)\])?(\[\])?(?: *\|\| *'([^'\\]*)')?"
)


def plain_tree(text: str) -> dict[str, Any] | None:
    """Return the tree of `a.b.[c, d][] || 'text'`, of which all but the path may be missing; None for any other expression."""
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    path, chosen, flattened, default = found.groups()
    steps = _fields(path.split("."))
    if chosen is not None:
        names = chosen.replace(" ", "").split(",")
        steps.append({"type": "multi_select_list", "children": _fields(names)})
    tree = steps[0] if len(steps) == 1 else {"type": "subexpression", "children": steps}
    if flattened is not None:
        identity = {"type": "identity", "children": []}
        tree = {"type": "projection", "children": [{"type": "flatten", "children": [tree]}, identity]}  # fmt: skip
    if default is None:
        return tree
    literal: dict[str, Any] = {"type": "literal", "value": default, "children": []}
    return {"type": "or_expression", "children": [tree, literal]}


def _fields(names: list[str]) -> list[dict[str, Any]]:
    return [{"type": "field", "children": [], "value": name} for name in names]
