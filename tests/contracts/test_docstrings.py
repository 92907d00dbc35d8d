"""Docstrings: every public function and class of the three packages has one, and it is a sentence."""

from __future__ import annotations

import ast

from .source import modules, shown, tree

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def is_overload(node: DEFINITIONS) -> bool:
    """Tell whether a definition only adds a signature to the one below it, which carries the words."""
    return any(ast.unparse(item) == "overload" for item in node.decorator_list)


def public(path) -> list[DEFINITIONS]:
    """Return definitions that others can reach: of the module and of its public classes."""
    found = []
    for node in tree(path).body:
        if not isinstance(node, DEFINITIONS) or node.name.startswith("_") or is_overload(node):
            continue
        found.append(node)
        if isinstance(node, ast.ClassDef):
            found += [
                part
                for part in node.body
                if isinstance(part, DEFINITIONS) and not part.name.startswith("_")
            ]
    return found


def test_everything_public_says_what_it_does() -> None:
    silent = [
        shown(path, node.lineno)
        for path in modules()
        for node in public(path)
        if not ast.get_docstring(node)
    ]

    assert silent == []


def test_first_lines_end_like_sentences() -> None:
    open_ended = [
        shown(path, node.lineno)
        for path in modules()
        for node in public(path)
        if (text := ast.get_docstring(node)) and text.strip()[-1] not in ".:;)`…"
    ]

    assert open_ended == []
