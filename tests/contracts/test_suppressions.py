"""Suppressions: rare, each with the code it silences and the reason why; lines that the formatter passes over become fewer."""

from __future__ import annotations

import re

import pytest

from .source import all_files, comments, lines_of, modules, shown

SUPPRESSION = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:|pylint:|pyright:)")
NAMED = re.compile(
    r"# (?:noqa: [A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*|type: ignore\[[a-z, -]+\])\s*(?:- |# ).+"
)

PASSED_OVER = re.compile(r"#\s*fmt:\s*(?:skip|off)")
CEILINGS = {"product": 760, "tests": 1470}
"""How many statements the formatter may pass over. Lowered as they go, never raised."""


def found(paths, wanted=SUPPRESSION):
    return [
        (path, line, text) for path in paths for line, text in comments(path) if wanted.search(text)
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


@pytest.mark.parametrize("part", CEILINGS)
def test_ever_fewer_statements_are_passed_over_by_the_formatter(part: str) -> None:
    product = modules()
    paths = product if part == "product" else [one for one in all_files() if one not in product]
    places = found(paths, PASSED_OVER)

    assert CEILINGS[part] - 60 < len(places) <= CEILINGS[part], "lower CEILINGS, or format"


def test_what_is_passed_over_is_told_apart_from_what_is_said_of_it(tmp_path) -> None:
    path = tmp_path / "one.py"
    path.write_text('a = "# fmt: skip"\nb = 1  # fmt: skip\n# fmt: off\n')

    assert [line for _, line, _ in found([path], PASSED_OVER)] == [2, 3]
