"""`AnyIn` and its kin: wildcards of both sides, ranges, JSON lists, and what makes them false."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError
from engine.lang.operators import compile_condition


def holds(key: Any, operator: str, value: Any) -> bool:
    return compile_condition(operator, value)(key)


@pytest.mark.parametrize(
    ("key", "value", "any_in", "all_in"),
    [
        (["a", "b"], ["a"], True, False),
        (["a", "b"], ["a", "b", "c"], True, True),
        (["a", "b"], ["c"], False, False),
        ([], ["a"], False, True),
        ("registry.io/app", ["registry.io/*"], True, True),
        ("app-*", ["app-1"], True, True),
        ("app-*", "app-1", False, False),
        (["app-*"], "app-1", True, True),
        (["NET_ADMIN", "CHOWN"], ["CHOWN"], True, False),
        ("CHOWN", ["chown"], False, False),
        (5, "1-10", True, True),
        ([5, 50], "1-10", True, False),
        ("2h", "1h-3h", True, True),
        ("x", "1-10", False, False),
        (1, [1.0], True, True),
        (True, ["true"], True, True),
        ("a", '["a", "b"]', True, True),
        ("a", '["a*"]', False, False),
        (["ab"], '["a*"]', True, True),
        ("", '["a", null]', True, True),
        ({"a": 1}, ["*"], False, False),
        (None, ["*"], False, False),
    ],
)
def test_a_key_is_among_the_values(key: Any, value: Any, any_in: bool, all_in: bool) -> None:
    assert holds(key, "AnyIn", value) is any_in
    assert holds(key, "AllIn", value) is all_in


@pytest.mark.parametrize(
    ("key", "value", "any_not_in", "all_not_in"),
    [
        (["a", "b"], ["a"], True, False),
        (["a", "b"], ["c"], True, True),
        (["a", "b"], ["a", "b"], False, False),
        ([], ["a"], False, True),
        ("a", ["b"], True, True),
        ("a", ["a*"], False, False),
        ([5, 50], "1-10", True, False),
        ([11, 12], "1-10", True, True),
        ({"a": 1}, ["b"], False, False),
        (None, ["b"], False, False),
    ],
)
def test_a_key_is_not_among_the_values(
    key: Any, value: Any, any_not_in: bool, all_not_in: bool
) -> None:
    assert holds(key, "AnyNotIn", value) is any_not_in
    assert holds(key, "AllNotIn", value) is all_not_in


@pytest.mark.parametrize("operator", ["AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn"])
@pytest.mark.parametrize("value", [None, {"a": 1}, 7, True, '{"a": 1}', "[1]", "7"])
def test_a_value_that_is_no_list_and_no_text_makes_every_operator_false(
    operator: str, value: Any
) -> None:
    assert not holds("k", operator, value)


def test_a_number_is_a_list_of_one_for_list_keys_of_any_in() -> None:
    assert holds([1, 2], "AnyIn", 2)
    assert not holds([1], "AllIn", 1)
    assert holds([1, 2], "AnyNotIn", 2)
    assert not holds([2], "AnyNotIn", 2)
    assert not holds([1, 2], "AllNotIn", 3)
    assert not holds([1], "AnyIn", None)


def test_a_json_null_is_an_empty_list() -> None:
    assert not holds("a", "AnyIn", "null")
    assert holds("a", "AnyNotIn", "null")
    assert holds(["a"], "AllNotIn", "null")
    assert holds([], "AllIn", "null")


@pytest.mark.parametrize(
    ("key", "value", "inside", "outside"),
    [
        ("a", ["a*"], True, False),
        (["a"], ["a*"], False, True),
        (["a", "b"], ["a", "b", "c"], True, False),
        (["a", "z"], ["a", "b"], False, True),
        ([], ["a"], True, False),
        ("a", '["a"]', True, False),
        (["a"], '["a"]', True, False),
        (["a"], [1], False, False),
        ("5", "1-10", False, False),
        ("ab", "a*", True, False),
    ],
)
def test_the_older_operators_compare_lists_letter_by_letter(
    key: Any, value: Any, inside: bool, outside: bool
) -> None:
    assert holds(key, "In", value) is inside
    assert holds(key, "NotIn", value) is outside


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_the_older_operators_refuse_list_keys_of_other_things(operator: str) -> None:
    with pytest.raises(EvaluationError):
        holds(["a", 1], operator, ["a"])
