"""Regular expressions: RE2's language in Go's words, and Go's rules of replacing."""

from __future__ import annotations

import pytest

from engine.errors import EvaluationError, LimitError
from engine.lang import regex


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[", "missing closing ]: `[`"),
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"a\C", r"invalid escape sequence: `\C`"),
        (r"\K\C", r"invalid escape sequence: `\K`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[z-a]", "invalid character class range: `z-a`"),
    ],
)
def test_wrong_expressions_are_errors_in_gos_words(pattern: str, text: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        regex.compile(pattern)

    assert str(raised.value) == f"error parsing regexp: {text}"


def test_quoted_text_may_hold_what_is_no_escape() -> None:
    assert regex.compile(r"\Q\C\E").search(r"\C")
    assert regex.compile(r"\\C").search(r"\C")


def test_a_very_long_expression_is_refused() -> None:
    with pytest.raises(LimitError):
        regex.compile("a" * 20_000)


@pytest.mark.parametrize(
    ("pattern", "template", "expected"),
    [
        ("(a)(b)?", "<$1$2>", "<a>x<ab>"),
        ("(?P<n>a)", "${n}${n}!", "aa!xaa!b"),
        ("a", "$$1", "$1x$1b"),
        ("a", "$", "$x$b"),
        ("a", "${0", "${0x${0b"),
        ("(a)", "$01", "xb"),
        ("(a)", "$1b", "xb"),
        ("(a)", "$9", "xb"),
        ("(a)", "${nope}", "xb"),
        ("(a)", "$123456789012", "xb"),
        ("", "-", "-a-x-a-b-"),
        ("x*", "-", "-a-a-b-"),
    ],
)
def test_replacements_follow_go(pattern: str, template: str, expected: str) -> None:
    assert regex.compile(pattern).replace("axab", template) == expected


def test_a_literal_replacement_means_itself() -> None:
    assert regex.compile("(a)").replace_literal("ab", "$1") == "$1b"


def test_replacing_keeps_characters_of_several_bytes_whole() -> None:
    assert regex.compile("").replace_literal("ä😀", "-") == "-ä-😀-"


def test_a_replacement_that_grows_too_long_is_refused() -> None:
    with pytest.raises(LimitError):
        regex.compile("a").replace_literal("a" * 10_000, "b" * 10_000)
