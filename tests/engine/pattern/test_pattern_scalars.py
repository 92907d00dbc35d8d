"""Scalar patterns: what each kind of text, number and boolean allows."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lang.pattern import range_ends
from engine.lang.pattern.scalar import compile_scalar

NOTHING: list[Any] = [{}, {"a": 1}, [], [1]]


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        (True, [True], ["true", 1, False, None, ""]),
        (False, [False], ["false", 0, True, None, ""]),
        ("true", [True, "true"], ["True", 1, False]),
        ("false", [False, "false"], ["", 0, None]),
        (None, [None, "", 0, 0.0, False], ["0", 1, True, "null"]),
        (5, [5, 5.0, "5", "+5", "05"], ["5.0", 5.5, True, "٥", None, ""]),
        (0, [0, 0.0, "0"], [None, False, ""]),
        (1, [1], [True]),
        (1.5, [1.5, "1.5", "1.50"], [1, "1.5x", None]),
        (2.0, [2, 2.0, "2", "2e0"], [True, 3]),
        ("", [""], [None, " ", 0]),
        ("*", ["", "a", 0, True, False, 1.5], [None]),
        ("?*", ["a", 0, True, 1.5], ["", None]),
        ("a|b", ["a", "b", "a|b"], ["c", "ab", None]),
        ("a | b", ["a", "b", "a | b"], [" a"]),
        ("a*&*z", ["az", "abz"], ["a", "z", "ab"]),
        ("a*&*z|q", ["az", "q"], ["a"]),
        ("!a", ["b", "", 0, True], ["a", None]),
        ("!a*", ["b"], ["a", "ab"]),
        ("!a&!b", ["c"], ["a", "b"]),
        ("!*:latest", ["app:1", "app"], ["app:latest"]),
        ("ALL", ["ALL"], ["all", "ALL ", "NALL"]),
        ("1-10", [1, 10, "1", 5.5, "5000m"], [0, 11, None, "x", True]),
        ("1!-10", [0, 11, None], [1, 5, 10, "x"]),
        ("1Gi-2Gi", ["1Gi", "1500Mi"], ["3Gi", "1G"]),
        ("1h-2h", ["90m"], ["3h", "x"]),
        ("-5--1", [-3], [0]),
        ("a-b", ["a-b"], ["a", "b"]),
        (">10", [11, "11", "1k"], [10, "9", None, "x", True]),
        (">=10", [10, 11], [9]),
        ("<10", [9, None, "0"], [10, "x", ""]),
        ("<=10", [10, None], [11]),
        ("> 1Gi", ["2Gi"], ["1Gi", "1G"]),
        ("<=1h", ["60m", "3600s"], ["61m", "y"]),
        ("1Gi", ["1Gi", "1024Mi"], ["1G", 1]),
        ("!1Gi", ["1G", "x"], ["1024Mi"]),
        ("!1h", ["61m"], ["60m"]),
        ("1h", ["60m"], ["3600"]),
        ("0", [0, None, "0", "0m"], ["", False, "x"]),
        (">a", [], ["b", "a"]),
        (">", [">"], ["1"]),
        ("!", ["!"], ["a"]),
        ("10", [10, "10", "10.0", "1e1"], ["10x", True]),
        ("1?", ["12"], [12, "1", "123"]),
        (">=1e1000000", ["1e1000001"], [1, "8Ei"]),
    ],
)
def test_a_scalar_pattern_allows_what_it_says(
    pattern: Any, allowed: list[Any], refused: list[Any]
) -> None:
    fits = compile_scalar(pattern)
    for value in allowed:
        assert fits(value), value
    for value in refused + NOTHING:
        assert not fits(value), value


def test_a_map_pattern_asks_for_a_map_and_a_list_fits_nothing() -> None:
    assert compile_scalar({"a": 1})({"b": 2})
    assert not compile_scalar({"a": 1})("a")
    assert not compile_scalar([1])([1])


def test_numbers_are_compared_as_64_bit_floats() -> None:
    assert compile_scalar(str(2**53))(2**53 + 1)
    assert compile_scalar(">1")(10**400) is False
    assert compile_scalar("?*")(-(10**400))


@pytest.mark.parametrize(
    ("pattern", "value", "fits"),
    [("tr*", True, True), ("tr*", False, False), ("f*", False, True), ("f*", True, False), ("!true", True, False),
     ("!true", False, True), ("a\t", "a", True), ("a\t", "a\t", True), ("b|a\t", "a", True), ("1*", 10, True),
     ("10*", 10, False), ("1E*", 10, True)],
)  # fmt: skip
def test_booleans_and_numbers_meet_wildcards_as_text(pattern: str, value: Any, fits: bool) -> None:
    assert compile_scalar(pattern)(value) is fits


@pytest.mark.parametrize(
    ("text", "ends"),
    [("1-10", ("1", "10")), ("-5--1", ("-5", "-1")), ("1Mi-2Gi", ("1Mi", "2Gi")), ("1.5-2", ("1.5", "2")),
     ("1!-10", None), ("a-b", None), (">1-10", None), ("<=1-2", None), ("!1-2", None), ("1-", None), ("1-2-3", None),
     ("1-10|20-30", None), ("", None), ("٣-٤", None)],
)  # fmt: skip
def test_only_two_numbers_make_a_range(text: str, ends: tuple[str, str] | None) -> None:
    assert range_ends(text) == ends
