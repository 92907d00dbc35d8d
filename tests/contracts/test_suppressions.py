"""Suppressions: rare, each with the code it silences and the reason why."""

from __future__ import annotations

import re

from .source import all_files, comments, lines_of, modules, shown

SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:|pylint:|pyright:)")
NAMED = re.compile(
    r"# (?:noqa: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*|type: ignore\[[a-z, -]+\])\s*(?:- |# ).+"
)


def found(paths):
    return [
        (path, line, text)
        for path in paths
        for line, text in comments(path)
        if SUPPRESSION.search(text)
    ]


def test_at_most_one_line_in_a_thousand_is_suppressed() -> None:
    thousands = sum(map(lines_of, modules())) / 1000
    places = [shown(path, line) for path, line, _ in found(modules())]

    assert len(places) <= max(thousands, 1), places


def test_every_suppression_names_its_code_and_its_reason() -> None:
    assert [
        f"{shown(path, line)} {text}"
        for path, line, text in found(all_files())
        if not NAMED.search(text)
    ] == []
