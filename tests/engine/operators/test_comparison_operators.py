"""Equality and order of conditions: which reading comes first, and what is never equal or ordered."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import LimitError, PolicyError
from engine.lang.operators import OPERATORS, compile_condition


def holds(key: Any, operator: str, value: Any) -> bool:
    return compile_condition(operator, value)(key)


@pytest.mark.parametrize(
    ("key", "value", "equal"),
    [
        ("a", "a", True),
        ("abc", "a*", True),
        ("a*", "abc", False),
        ("1h", "60m", True),
        ("1h", 3600, True),
        (3600, "1h", False),
        ("1h", 3601, False),
        ("1Gi", "1024Mi", True),
        ("1Gi", "*", False),
        ("1", 1, False),
        (1, "1", True),
        (1, "1.0", False),
        (1.0, "1.0", True),
        (1, 1.0, True),
        (1, 1.5, False),
        (1, True, False),
        (True, 1, False),
        (True, True, True),
        (True, "true", False),
        ("true", True, False),
        ([1, {"a": None}], [1, {"a": None}], True),
        ([1], [1.0], False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [1]}, {"a": [2]}, False),
        ([], {}, False),
        ({}, {}, True),
        ("a", ["a"], False),
        (["a"], "a", False),
        ("", "", True),
        ("x", None, False),
    ],
)
def test_equality_and_its_opposite(key: Any, value: Any, equal: bool) -> None:
    for operator in ("Equals", "Equal"):
        assert holds(key, operator, value) is equal
    for operator in ("NotEquals", "NotEqual"):
        assert holds(key, operator, value) is not equal


def test_a_null_key_is_neither_equal_nor_unequal() -> None:
    for value in (None, "", "a", [], {}):
        assert not holds(None, "Equals", value)
        assert not holds(None, "NotEquals", value)


@pytest.mark.parametrize(
    ("key", "value", "sign"),
    [
        (1, 2, -1),
        (2, 2, 0),
        (2.5, 2, 1),
        ("1h", "30m", 1),
        ("1h", 3600, 0),
        (3600, "1h", 0),
        ("3601", "1h", 1),
        (1.9, "1s", 0),
        ("1Gi", "1G", 1),
        ("500m", "0.5", 0),
        ("10", "9", 1),
        (10, "9", 1),
        (1, "inf", -1),
        ("1.10.0", "1.9.0", 1),
        ("1.0.0-rc.1", "1.0.0", -1),
        ("1e1000000", "1", 1),
    ],
)
def test_order_follows_the_readings(key: Any, value: Any, sign: int) -> None:
    assert holds(key, "GreaterThan", value) is (sign > 0)
    assert holds(key, "GreaterThanOrEquals", value) is (sign >= 0)
    assert holds(key, "LessThan", value) is (sign < 0)
    assert holds(key, "LessThanOrEquals", value) is (sign <= 0)


@pytest.mark.parametrize(
    ("key", "value"),
    [("a", "b"), (None, 1), (1, None), (True, 0), (0, True), ([1], 0), ({}, 0), ("1Gi", 5), (5, "1Gi"), ("1.2", "v1"),
     ("", 0), (1, [0]), ("x", 0), (10**400, "x")],
)  # fmt: skip
def test_what_has_no_order_is_always_false(key: Any, value: Any) -> None:
    for operator in OPERATORS:
        if "Than" in operator:
            assert not holds(key, operator, value), operator


def test_duration_operators_want_durations_or_seconds_on_both_sides() -> None:
    assert holds("1h", "DurationGreaterThan", "59m")
    assert holds(60, "DurationGreaterThanOrEquals", "1m")
    assert holds("0", "DurationLessThan", "1ms")
    assert holds("1m", "DurationLessThanOrEquals", 60.9)
    assert not holds("3600", "DurationGreaterThan", 0)
    assert not holds("1Gi", "DurationGreaterThan", 0)


def test_numbers_of_seconds_beyond_64_bits_wrap_around() -> None:
    assert not holds(12_345_678_901, "GreaterThan", "-1h")
    assert holds(float("inf"), "LessThan", "1h")


def test_enormous_whole_numbers_are_compared_as_infinite() -> None:
    assert holds(10**400, "GreaterThan", 1.0)
    assert holds(-(10**400), "LessThan", 1)


def test_values_nested_too_deep_are_refused() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(LimitError):
        holds(deep, "Equals", deep)
    with pytest.raises(LimitError):
        holds(deep, "AnyIn", ["a"])


def test_values_of_ordinary_depth_are_compared_to_the_bottom() -> None:
    for wrap in (lambda inner: [inner], lambda inner: {"k": inner}):
        left: Any = "x"
        right: Any = "x"
        other: Any = "y"
        for _ in range(200):
            left, right, other = wrap(left), wrap(right), wrap(other)
        assert holds(left, "Equals", right)
        assert holds(left, "NotEquals", other)
        with pytest.raises(LimitError):
            holds(wrap(left), "Equals", wrap(right))


def test_durations_and_quantities_in_values_are_not_taken_as_plain_text() -> None:
    assert holds("60s", "Equals", "1m")
    assert not holds("60s", "NotEquals", "1m")
    assert holds("1000m", "Equals", "1")
    assert holds(1.0, "Equals", "1e0")
    assert holds(1000.0, "Equals", "1_000")
    assert holds("plain", "Equals", "plain")
    assert not holds("plain", "NotEquals", "plain")
    assert holds(1, "NotEquals", "plain")
    assert not holds(1, "Equals", "plain")


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(PolicyError, match="`equals` is not known"):
        compile_condition("equals")
