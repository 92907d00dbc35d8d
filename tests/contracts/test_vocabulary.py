"""The words that objects carry for us are spelled in one place, and instants are read and written in one place."""

from __future__ import annotations

import ast

from engine import vocabulary

from .source import ROOT, modules, shown, tree

WORDS = {
    value
    for name, value in vars(vocabulary).items()
    if name.isupper() and isinstance(value, str | tuple)
}
HOME = ROOT / "engine" / "vocabulary.py"
INSTANTS = {ROOT / "engine" / "lang" / "rfc3339.py", ROOT / "engine" / "lang" / "jmes" / "x509.py"}
"""The reader and writer, and what prints certificates as Go does."""


def ours() -> list:
    return [path for path in modules() if "kpolicy_sandbox" not in path.parts]


def test_no_module_spells_out_a_word_of_the_vocabulary() -> None:
    spelled = [
        shown(path, node.lineno)
        for path in ours()
        if path != HOME
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and node.value in WORDS
    ]

    assert len(WORDS) > 10
    assert spelled == []


def test_instants_are_read_and_written_in_one_place() -> None:
    elsewhere = [
        shown(path)
        for path in ours()
        if path not in INSTANTS
        and ("fromisoformat(" in (text := path.read_text()) or "%Y-%m-%dT%H:%M:%SZ" in text)
    ]

    assert elsewhere == []
