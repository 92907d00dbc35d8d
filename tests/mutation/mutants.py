"""Small changes of meaning in a module's source, one at a time.

Each mutant is the module with one operator, constant, condition or statement changed. Docstrings, annotations, lists of what is
exported and message texts of raised errors are left alone: a test that pins those would not show that a decision is checked.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed module: where, what was changed, and the whole new source."""

    path: str
    line: int
    change: str
    source: str


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module's source."""
    count = sum(1 for _ in _sites(ast.parse(source)))
    for number in range(count):
        tree = ast.parse(source)
        for index, (node, change, apply) in enumerate(_sites(tree)):
            if index == number:
                line = getattr(node, "lineno", 0)
                apply()
                yield Mutant(path, line, change, ast.unparse(ast.fix_missing_locations(tree)))
                break


def _sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str, object]]:
    for node in _code(tree):
        yield from _site(node)


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the tree without annotations, docstrings, imports and the arguments of raised errors."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(
                child, (ast.Import, ast.ImportFrom, ast.Raise)
            ):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__all__":
                continue
            yield child
            yield from _code(child)


def _site(node: ast.AST) -> Iterator[tuple[ast.AST, str, object]]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            other = _COMPARE.get(type(operator))
            if other:
                yield (
                    node,
                    f"{type(operator).__name__} -> {other.__name__}",
                    _set(node.ops, index, other()),
                )
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, f"-> {type(other).__name__}", _put(node, "op", other)
    elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        other = _ARITHMETIC[type(node.op)]()
        yield node, f"-> {type(other).__name__}", _put(node, "op", other)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "not removed", _unwrap(node)
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, (ast.If, ast.IfExp)):
        yield node, "condition negated", _put(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield node, "returns None", _put(node, "value", ast.Constant(None))
    elif isinstance(node, (ast.Continue, ast.Break)):
        yield node, f"{type(node).__name__} dropped", _become_pass(node)


def _constant(node: ast.Constant) -> Iterator[tuple[ast.AST, str, object]]:
    if isinstance(node.value, bool):
        yield node, f"-> {not node.value}", _put(node, "value", not node.value)
    elif isinstance(node.value, int):
        yield node, f"{node.value} -> {node.value + 1}", _put(node, "value", node.value + 1)
    elif isinstance(node.value, str) and node.value and " " not in node.value:
        yield node, f"{node.value!r} changed", _put(node, "value", node.value + "~")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _set(items: list, index: int, value: object):
    def apply() -> None:
        items[index] = value

    return apply


def _put(node: ast.AST, field: str, value: object):
    def apply() -> None:
        setattr(node, field, value)

    return apply


def _unwrap(node: ast.UnaryOp):
    """Turn `not x` into `not not x`: the truth of `x` itself."""

    def apply() -> None:
        node.operand = ast.UnaryOp(ast.Not(), node.operand)

    return apply


def _become_pass(node: ast.AST):
    def apply() -> None:
        node.__class__ = ast.Pass  # type: ignore[assignment] - turning the node into another kind is the point

    return apply
