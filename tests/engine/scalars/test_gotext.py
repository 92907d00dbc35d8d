"""Text forms of Go: `%v`, strconv floats, encoding/json."""

from __future__ import annotations

import math

import pytest

from engine.errors import EvaluationError, LimitError
from engine.lang.gotext import (
    compact_json,
    exponent,
    fixed,
    general,
    json_number,
    parse_float,
    parse_integer,
    plain,
    shortest,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (1.0, "1"),
        (1.5, "1.5"),
        (999999.5, "999999.5"),
        (1000000.0, "1e+06"),
        (12345678.5, "1.23456785e+07"),
        (1e21, "1e+21"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.0, "-0"),
        ("a b", "a b"),
        ([], "[]"),
        ({}, "map[]"),
        (["a", 1, None], "[a 1 <nil>]"),
        ({"b": [1], "a": {"c": "d"}}, "map[a:map[c:d] b:[1]]"),
    ],
)
def test_values_are_written_as_percent_v(value: object, text: str) -> None:
    assert plain(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None]}, '{"a":[true,null],"b":1}'),
        ("<a&b>", '"\\u003ca\\u0026b\\u003e"'),
        ('"\\\n\t\r\x01\u2028', '"\\"\\\\\\n\\t\\r\\u0001\\u2028"'),
        ("äé", '"äé"'),
        ("\ud800", '"\\ufffd"'),
        (1.0, "1"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (1e-6, "0.000001"),
        (-0.0, "-0"),
        (123456789.25, "123456789.25"),
    ],
)
def test_json_is_written_as_go_marshals_it(value: object, text: str) -> None:
    assert compact_json(value) == text


def test_numbers_that_json_cannot_carry_are_an_error() -> None:
    with pytest.raises(EvaluationError, match=r"unsupported value: NaN"):
        compact_json([float("nan")])
    with pytest.raises(EvaluationError, match=r"unsupported value: -Inf"):
        json_number(float("-inf"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1E+00"), (1.5, "1.5E+00"), (0.0, "0E+00"), (-12.25, "-1.225E+01"), (1e21, "1E+21"), (5e-324, "5E-324"),
     (1e100, "1E+100"), (0.001, "1E-03"), (float("inf"), "+Inf")],
)  # fmt: skip
def test_the_exponent_form_has_two_digits_at_least(value: float, text: str) -> None:
    assert exponent(value) == text


def test_plain_digit_forms() -> None:
    assert fixed(1.5) == "1.500000"
    assert fixed(1e21) == "1000000000000000000000.000000"
    assert fixed(float("nan")) == "NaN"
    assert shortest(1e22) == "10000000000000000000000"
    assert shortest(1.5e-7) == "0.00000015"
    assert shortest(1234.5) == "1234.5"
    assert general(float("inf")) == "+Inf"


def test_depth_and_digits_are_bounded() -> None:
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    for write in (plain, compact_json):
        with pytest.raises(LimitError):
            write(deep)
        with pytest.raises(LimitError):
            write(10**6_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-5", -5), ("+5", 5), ("00000000000000000000007", 7), ("9223372036854775807", 2**63 - 1),
     ("9223372036854775808", None), ("-9223372036854775808", -(2**63)), ("", None), ("1_0", None), (" 1", None),
     ("1.0", None), ("٣", None), ("-", None), ("9" * 10_000, None)],
)  # fmt: skip
def test_integers_are_read_as_64_bit_decimals(text: str, value: int | None) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1.0), ("-1.5", -1.5), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("1_000", 1000.0), ("0x1p4", 16.0),
     ("0x_1.8p1", 3.0), ("inf", float("inf")), ("-Infinity", float("-inf")), ("+Inf", float("inf")), ("1e-400", 0.0),
     ("1e400", None), ("0x10", None), ("0xp1", None), ("0x1p99999", None), ("_1", None), ("1__0", None),
     ("1_", None), (" 1", None), ("", None), (".", None), ("infin", None), ("+nan", None), ("1٣", None)],
)  # fmt: skip
def test_floats_are_read_as_go_reads_them(text: str, value: float | None) -> None:
    assert parse_float(text) == value


def test_not_a_number_is_read_too() -> None:
    assert math.isnan(parse_float("NaN") or 0.0)


def test_signs_of_special_numbers_and_depth_bounds_are_exact() -> None:
    assert parse_float("+inf") == float("inf")
    assert parse_float("-inf") == float("-inf")
    assert shortest(0.5) == "0.5"
    assert shortest(10.0) == "10"
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    assert plain(deep) == "[" * 200 + "x" + "]" * 200
    with pytest.raises(LimitError):
        plain([deep])
