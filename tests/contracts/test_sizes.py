"""Sizes: small modules, small functions, no drawers without a label."""

from __future__ import annotations

import ast
from statistics import median, quantiles
from typing import TYPE_CHECKING

from .source import functions, lines_of, modules, shown, tree

if TYPE_CHECKING:
    from pathlib import Path

MOST_IMPORTS = 7.5
"""Percent of the lines that import something, at most: with many small modules a reader goes from file to file."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def test_the_median_module_has_at_most_150_lines() -> None:
    assert median(size for path in modules() if (size := lines_of(path)) > 5) <= 150


def test_no_module_has_more_than_400_lines() -> None:
    assert [(shown(path), size) for path in modules() if (size := lines_of(path)) > 400] == []


def test_the_median_function_has_at_most_10_lines_and_19_of_20_at_most_40() -> None:
    sizes = [node.end_lineno - node.lineno + 1 for path in modules() for node in functions(path)]

    assert median(sizes) <= 10
    assert quantiles(sizes, n=20)[-1] <= 40


def test_at_most_so_many_of_the_lines_are_imports() -> None:
    imports = sum(len(imported_lines(path)) for path in modules())

    assert 100 * imports / sum(map(lines_of, modules())) <= MOST_IMPORTS


def imported_lines(path: Path) -> set[int]:
    """Return the lines on which an import statement stands, those inside functions too."""
    return {
        line
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def test_no_module_is_named_after_nothing() -> None:
    assert [
        shown(path) for path in modules() if path.stem in VAGUE or path.parent.name in VAGUE
    ] == []
