"""Wildcards: whole texts, exactly-one question marks, and no blow-up on many stars."""

from __future__ import annotations

import itertools
import re

import pytest

from engine.errors import LimitError
from engine.lang.wildcard import compiled, has_wildcard, match


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("**", "", True),
        ("?", "", False),
        ("?*", "", False),
        ("?*", "a", True),
        ("*?", "ab", True),
        ("?", "a", True),
        ("?", "ä", True),
        ("?", "ab", False),
        ("??", "a", False),
        ("a?c", "abc", True),
        ("a?c", "a\nc", True),
        ("a?c", "ac", False),
        ("a*c", "ac", True),
        ("a*c", "abbc", True),
        ("a*c", "abbcd", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("*b*", "abc", True),
        ("*bb*", "abc", False),
        ("a*b*c", "aXbXc", True),
        ("a*b*c", "acb", False),
        ("a*bc*bc", "abc", False),
        ("a*bc*bc", "abcbc", True),
        ("*?b?*", "b", False),
        ("*?b?*", "bbb", True),
        ("*a?*?b", "a1b", False),
        ("*a?*?b", "a12b", True),
        ("A*", "abc", False),
        ("registry.io/*", "registryXio/app", False),
        ("[a]*", "a", False),
        ("*.*", "a.b", True),
        ("*\n*", "a\nb", True),
    ],
)
def test_a_pattern_fits_the_whole_text_or_nothing(pattern: str, text: str, fits: bool) -> None:
    assert match(pattern, text) is fits
    assert compiled(pattern)(text) is fits


def test_every_short_pattern_agrees_with_a_regular_expression() -> None:
    texts = ["".join(t) for n in range(5) for t in itertools.product("ab", repeat=n)]
    for n in range(5):
        for letters in itertools.product("a?*b", repeat=n):
            pattern = "".join(letters)
            source = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
            expression = re.compile(source, re.DOTALL)
            for text in texts:
                assert match(pattern, text) is bool(expression.fullmatch(text)), (pattern, text)


def test_many_stars_stay_cheap() -> None:
    assert not match("a*" * 500 + "b", "a" * 100_000)
    assert match("a*" * 500, "a" * 100_000)
    assert not match("*a?" * 200 + "*c*", "ab" * 3_000)


def test_a_search_that_would_take_seconds_is_refused() -> None:
    with pytest.raises(LimitError):
        match("*" + "a?" * 5_000 + "b*", "a" * 100_000)


def test_stars_and_question_marks_are_seen() -> None:
    assert has_wildcard("a*")
    assert has_wildcard("a?")
    assert not has_wildcard("a.[b]")


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*a?b*", "aab", True),
        ("*a?b*", "aaab", True),
        ("*a?b*", "aXcaXb", True),
        ("*a?b*", "aXcaXc", False),
        ("x*a?b*y", "xaabaXby", True),
        ("*?a?b*", "aab", False),
        ("*?a?b*", "_aXb", True),
        ("*a?b*a?b*", "aXb", False),
        ("*a?b*a?b*", "aXbaYb", True),
        ("*ab?*?cd*", "abXcd", False),
        ("*ab?*?cd*", "abXYcd", True),
    ],
)
def test_pieces_with_question_marks_are_found_at_every_place(
    pattern: str, text: str, fits: bool
) -> None:
    assert match(pattern, text) is fits


def test_long_patterns_work_as_short_ones_do() -> None:
    name = "a" * 255
    for more in ("", "b", "bc"):
        assert match(f"{name}{more}*", f"{name}{more}z")
        assert not match(f"{name}{more}*", f"{name}") or not more
        assert compiled(name + more)(name + more)
