"""Comments say what holds now and why; what was before is the history's business."""

from __future__ import annotations

import ast
import re

from .source import all_files, comments, modules, shown, tree

HISTORY = re.compile(
    r"\b(used to (?!\w+ing\b)|previously|no longer|formerly|in the past|was changed|legacy code|TODO|FIXME|XXX|HACK)\b",
    re.IGNORECASE,
)
HERE = "test_comments.py"


def test_no_comment_tells_history() -> None:
    told = [
        f"{shown(path, line)} {text}"
        for path in all_files()
        if path.name != HERE
        for line, text in comments(path)
        if HISTORY.search(text)
    ]

    assert told == []


def test_every_module_says_what_it_is() -> None:
    assert [
        shown(path)
        for path in modules()
        if path.read_text().strip() and not ast.get_docstring(tree(path))
    ] == []
