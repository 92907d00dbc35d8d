"""No module imports itself through others, not even inside a function: what a reader opens first can be read first.

Imports for type checkers alone are no circle at run time; the knots that they tie are listed, so that none comes unseen.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from .source import ROOT, modules, tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

KNOTS_OF_TYPES: dict[str, int] = {}
"""The first module of each knot, and how many modules are in it at most."""


_SANDBOX = ("controllers", "sandbox")


def parts(path: Path, root: Path = ROOT) -> tuple[str, ...]:
    """Return a module's path as imports know it: what is in the sandbox's folder is at the top of its own distribution."""
    found = path.relative_to(root).with_suffix("").parts
    return found[2:] if found[:2] == _SANDBOX else found


def named(path: Path) -> str:
    return ".".join(parts(path)).removesuffix(".__init__")


def imported(path: Path, root: Path = ROOT) -> Iterator[tuple[str, str, bool]]:
    """Yield what a module imports, wherever in it: from where, which name, and whether for type checkers alone."""
    package = parts(path, root)[:-1]
    syntax = tree(path)
    for_types = {
        id(inner)
        for node in ast.walk(syntax)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(syntax):
        if isinstance(node, ast.Import):
            yield from ((one.name, "", id(node) in for_types) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((base, one.name, id(node) in for_types) for one in node.names)


def graph(paths: Mapping[str, Path], root: Path = ROOT, *, types: bool) -> dict[str, set[str]]:
    """Return which of the modules each of them imports, with or without what is for type checkers alone."""
    made: dict[str, set[str]] = {}
    for name, path in paths.items():
        targets = {
            inner if (inner := f"{base}.{word}") in paths else base
            for base, word, is_type in imported(path, root)
            if types or not is_type
        }
        made[name] = {one for one in targets if one in paths and one != name}
    return made


def knots(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that all reach each other (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(edges):
        if name not in order:
            visit(name)
    return sorted(found)


def test_no_module_imports_itself_through_others() -> None:
    paths = {named(path): path for path in modules()}

    assert knots(graph(paths, types=False)) == []


def test_knots_of_types_are_listed_and_do_not_grow() -> None:
    paths = {named(path): path for path in modules()}
    found = {group[0]: len(group) for group in knots(graph(paths, types=True))}

    assert set(found) <= set(KNOTS_OF_TYPES), found
    assert {name: size for name, size in found.items() if size > KNOTS_OF_TYPES[name]} == {}
    assert set(KNOTS_OF_TYPES) == set(found), "strike what is untied"


@pytest.mark.parametrize("way", ["from . import b", "from .b import x", "import p.b", "def f():\n    from p import b"])  # fmt: skip
def test_a_circle_is_found_however_it_is_closed(tmp_path, way: str) -> None:
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "a.py").write_text(f"{way}\n")
    (folder / "b.py").write_text("from .a import y\n")
    paths = {f"p.{name}": folder / f"{name}.py" for name in ("a", "b")} | {"p": folder / "__init__.py"}  # fmt: skip

    assert knots(graph(paths, tmp_path, types=False)) == [["p.a", "p.b"]]


def test_imports_for_types_alone_are_a_knot_and_no_circle(tmp_path) -> None:
    (tmp_path / "a.py").write_text("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import b\n")  # fmt: skip
    (tmp_path / "b.py").write_text("import a\n")
    paths = {name: tmp_path / f"{name}.py" for name in ("a", "b")}

    assert knots(graph(paths, tmp_path, types=False)) == []
    assert knots(graph(paths, tmp_path, types=True)) == [["a", "b"]]
