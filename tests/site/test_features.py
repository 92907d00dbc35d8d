"""The page of features: every line names where it is found and a test that is there; what it names in words of the program exists."""

from __future__ import annotations

import ast
import re

from controllers.manifests.crds.native import GRANT_POLICY
from kubectl_kpolicy import cli
from kubectl_kpolicy.actions.catalog import ALL
from kubectl_kpolicy.actions.prompt import understand
from tests.contracts.source import ROOT

ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split(" | "))
    for line in (ROOT / "docs" / "features.md").read_text().splitlines()
    if re.match(r"\| \d", line)
]
NAMED = {word for _, _, where, _ in ROWS for word in re.findall(r"`([^`]+)`", where)}


def test_all_features_are_numbered_through() -> None:
    """A feature may have several lines, each with its test."""
    assert [*dict.fromkeys(int(number) for number, *_ in ROWS)] == list(range(1, 63))


def test_every_feature_is_shown_by_a_test_that_is_there() -> None:
    missing = []
    for number, _, _, shown in ROWS:
        place, _, name = shown.strip("` |").partition("::")
        found = ast.parse((ROOT / place).read_text())
        if name not in {node.name for node in found.body if isinstance(node, ast.FunctionDef)}:
            missing.append((number, shown))
    assert missing == []


def test_keys_words_and_commands_that_are_named_exist() -> None:
    keys = {key for one in ALL for key in one.keys}
    letters = {word for word in NAMED if len(word) == 1 or word.startswith("ctrl+")}
    assert letters - keys - {":", "/"} == set()
    assert all(
        not understand(word[1:]).problem for word in NAMED if word[0] == ":" and len(word) > 1
    )
    words = {word for word in NAMED if re.match(r"[a-z]{3,}( |$)", word)} - keys
    fields = {word for word in words if word in GRANT_POLICY.fields}
    assert {word.split()[0] for word in words - fields} - set(cli.COMMANDS) == set()
