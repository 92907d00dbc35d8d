"""What comments and docstrings cite is in this repository: rows, facts and invariants of `docs/semantics.md`, and files by name."""

from __future__ import annotations

import ast
import re
from functools import cache

from .source import ROOT, all_files, comments, shown, tree

PAGE = ROOT / "docs" / "semantics.md"
CURVES = {"P-256", "P-384"}
FILE = re.compile(r"[\w/-]+\.md\b")
IN_BRACKETS = re.compile(r"\(([^()]*)\)")
FACT = re.compile(r"\b[AIT]\d{1,2}\b")


@cache
def rows() -> frozenset[str]:
    return frozenset(
        re.findall(r"^- \*\*([A-Z]+-?\d+[a-z]?)\*\* \S", PAGE.read_text(), re.MULTILINE)
    )


@cache
def words() -> list[tuple[str, str]]:
    """Return the comments and docstrings of all files, each with its place."""
    found = []
    for path in all_files():
        found += [(shown(path, line), text) for line, text in comments(path)]
        found += [
            (shown(path, node.lineno), node.value.value)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ]
    return found


def test_every_row_that_is_cited_is_on_the_page() -> None:
    families = "|".join(sorted({row.partition("-")[0] for row in rows() if "-" in row}))
    cited = re.compile(
        rf"\b(?:{families})-\d+[a-z]?\b|(?<=[Rr]ow )[A-Z]+-\d+[a-z]?|(?<=[Rr]ows )[A-Z]+-\d+[a-z]?"
    )
    lost = [
        f"{place}: {row}"
        for place, text in words()
        for row in cited.findall(text)
        if row not in rows() | CURVES
    ]

    assert lost == []


def test_every_fact_and_invariant_that_is_cited_is_on_the_page() -> None:
    lost = [
        f"{place}: {fact}"
        for place, text in words()
        for within in IN_BRACKETS.findall(text)
        for fact in FACT.findall(within)
        if fact not in rows()
    ]

    assert lost == []


def test_every_page_that_is_cited_is_in_the_repository() -> None:
    names = {
        path.name
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/**/*.md")]
    }
    lost = [
        f"{place}: {name}"
        for place, text in words()
        for name in FILE.findall(text)
        if name.rpartition("/")[2] not in names
    ]

    assert lost == []


def test_no_row_is_on_the_page_twice() -> None:
    found = re.findall(r"^- \*\*([A-Z]+-?\d+[a-z]?)\*\*", PAGE.read_text(), re.MULTILINE)

    assert len(found) == len(set(found)) > 200
