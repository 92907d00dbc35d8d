"""`random`: the text fits the expression, comes from the caller's chance, and stays bounded."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import EngineError, LimitError
from engine.lang import jmes, regex
from engine.lang.chance import Chance
from tests.engine.jmes.evaluating import error, made, value

PATTERNS = [
    "[0-9]{6}", "[A-Z]{4}-[A-Z]{4}", "(a|b|cd)+x?", r"\d{3}\w\s", "[^a-z]{5}", r"[\w-]{3}[.\]]", "(?i)abc[d-f]{3}",
    "[[:alpha:]]{8}[[:^digit:]]", r"\p{Greek}{2}\pL", r"x{2,5}y{0}z*", r"\x41\x{42}\103\n", r"\Qa.b*\E+",
    "^start.*end$", "(?:a{2}){3}", "(?P<name>q)[]a]", "[^]a]", "a|", r"\D\W\S", "(?s:.)(?-i)b", "[a\\-z]{9}", "a{,3}", "(?:x{1,2}){2}",
    r"[\x{1F600}-\x{1F64F}]", r"[^\x00-\x{10FFFF}]?",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seed", [b"a", b"b", b"c", b"d"])
def test_the_text_matches_the_whole_expression(pattern: str, seed: bytes) -> None:
    assert regex.compile(f"^(?:{pattern})$").search(made(pattern, seed))


def test_equal_seeds_make_equal_texts_and_others_differ() -> None:
    assert made("[a-z]{20}", b"1") == made("[a-z]{20}", b"1")
    assert made("[a-z]{20}", b"1") != made("[a-z]{20}", b"2")


def test_one_evaluation_draws_anew_each_time() -> None:
    one, other = value("[random('[a-z]{20}'), random('[a-z]{20}')]", {}, chance=Chance(b""))

    assert one != other


def test_every_character_of_a_class_is_drawn() -> None:
    assert set(made("[a-e]{500}")) == set("abcde")
    assert set(made("(?i)[ab]{500}")) == set("abAB")
    assert set(made("(?:x|y|z){500}")) == set("xyz")


def test_every_length_of_a_repetition_is_drawn() -> None:
    env = jmes.Env()
    query = jmes.compile("length(random('a{2,4}'))")

    assert {query(None, env) for _ in range(200)} == {2, 3, 4}


def test_wrong_expressions_are_refused_in_gos_words() -> None:
    assert error("random('[')") == "error parsing regexp: missing closing ]: `[`"
    assert error("random('')") == "no pattern provided"


@pytest.mark.parametrize(
    "pattern",
    ["((a{30}){30}){1000}", "(" * 100 + "a" + ")" * 100, "((((x{0,32}){0,31})*)*)*", "(a{999}){0,99}", "x{1,2}{2}"],
)  # fmt: skip
def test_large_expressions_end(pattern: str) -> None:
    with contextlib.suppress(EngineError):
        assert len(made(pattern)) <= 65_536


def test_a_text_that_grows_too_long_is_a_limit_error() -> None:
    def made_from_many_seeds() -> None:
        for seed in range(20):
            made("(((x*)*)*)*", bytes([seed]))

    with pytest.raises(LimitError):
        made_from_many_seeds()


@given(st.text(alphabet="ab(){}[]|*+?\\^$-.,:0129dwpPQEx<>i", max_size=25), st.binary(max_size=2))
def test_any_pattern_makes_a_matching_text_or_an_error(pattern: str, seed: bytes) -> None:
    try:
        text = made(pattern, seed)
    except EngineError:
        return

    if not any(mark in pattern for mark in ("^", "$", "\\b", "\\B", "\\A", "\\z", "\\Q")):
        assert regex.compile(f"(?s)^(?:{pattern})$").search(text) or "(?" in pattern
