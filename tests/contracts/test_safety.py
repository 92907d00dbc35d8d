"""Calls that have no place here: running text as code, loading objects from bytes, shells, loose YAML."""

from __future__ import annotations

import ast

from .source import functions, modules, shown, tree

FORBIDDEN = {"eval", "exec", "compile", "__import__", "pickle.loads", "pickle.load", "marshal.loads", "yaml.load", "yaml.load_all",
             "yaml.unsafe_load", "os.system", "os.popen", "tempfile.mktemp"}  # fmt: skip
YAML_ROOMS = ("engine/lang/yaml/", "kpolicy_sandbox/http/yaml.py")
"""One for each distribution: the sandbox knows nothing of the engine."""


def name_of(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return f"{module}.{name}"
    return ""


def ours(path) -> set[str]:
    """Return functions that a module defines or imports itself under a forbidden name."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return imported | {node.name for node in functions(path)}


def test_no_text_is_run_as_code_and_no_shell_is_started() -> None:
    found = [
        shown(path, node.lineno)
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and (
            (name_of(node) in FORBIDDEN and name_of(node).partition(".")[0] not in ours(path))
            or any(
                word.arg == "shell" and getattr(word.value, "value", None) is not False
                for word in node.keywords
            )
        )
    ]

    assert found == []


def test_only_the_reader_knows_pyyaml() -> None:
    found = []
    for path in modules():
        for node in ast.walk(tree(path)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += (
                [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            )
            is_reader = any(room in str(path) for room in YAML_ROOMS)
            if any(name.partition(".")[0] == "yaml" for name in names) and not is_reader:
                found.append(shown(path, node.lineno))

    assert found == []
