"""The tree's own source as data for the contracts: files, syntax trees, functions, comments."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "controllers", "kubectl_kpolicy")


@cache
def modules() -> tuple[Path, ...]:
    """Return every module of the three packages, and of the sandbox, whose folder lies in one of them."""
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


@cache
def all_files() -> tuple[Path, ...]:
    """Return every Python file, tests included."""
    return (*modules(), *sorted((ROOT / "tests").rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


@cache
def comments(path: Path) -> list[tuple[int, str]]:
    """Return line and text of every comment."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def shown(path: Path, line: int = 0) -> str:
    place = str(path.relative_to(ROOT))
    return f"{place}:{line}" if line else place
