"""Nothing an expression holds makes the engine run away or raise a foreign exception."""

from __future__ import annotations

import pytest

from engine.errors import EvaluationError, LimitError
from engine.lang import jmes
from tests.engine.jmes.evaluating import error, value


@pytest.mark.parametrize("opening", ["(", "[", "!(", "{a: ", "a[?", "length(", "&"])
def test_deep_nesting_is_an_expression_error(opening: str) -> None:
    with pytest.raises(jmes.ExpressionError):
        jmes.compile(opening * 10_000 + "a")


def test_nesting_that_people_write_is_accepted() -> None:
    assert value("(" * 60 + "a" + ")" * 60, {"a": 1}) == 1


@pytest.mark.parametrize("row", ["a" + ".a" * 300, "@" + " | @" * 300, "a" + " || a" * 300])
def test_long_rows_do_not_count_as_nesting(row: str) -> None:
    value(row, {"a": "x"})


@pytest.mark.parametrize("row", ["a" + "[]" * 5_000, "a" + "[0]" * 5_000, "a" + " == a" * 5_000])
def test_rows_that_do_nest_are_an_expression_error(row: str) -> None:
    with pytest.raises(jmes.ExpressionError):
        jmes.compile(row)


def test_a_very_long_expression_is_refused() -> None:
    with pytest.raises(jmes.ExpressionError):
        jmes.compile("a || " * 50_000 + "a")


def test_the_budget_ends_an_evaluation() -> None:
    numbers = list(range(1_000))

    with pytest.raises(LimitError):
        value("map(&length(to_string($)), @)".replace("$", "@"), numbers, budget=500)
    with pytest.raises(LimitError):
        value("[*]", numbers, budget=500)
    assert value("[*] | length(@)", numbers, budget=5_000) == 1_000


def test_the_budget_counts_per_element_and_is_shared_by_evaluations() -> None:
    env = jmes.Env(budget=250)
    query = jmes.compile("[].a")

    query([{"a": 1}] * 100, env)
    with pytest.raises(LimitError):
        query([{"a": 1}] * 100, env)


def test_running_out_of_budget_is_never_turned_into_null() -> None:
    with pytest.raises(LimitError):
        value("[*][] || 'allowed'", [[1]] * 100, budget=50)
    with pytest.raises(LimitError):
        value("sort_by([*].{k: @}, &length(to_string(k)))", [1, 2, 3] * 100, budget=100)


def test_doubling_lists_end_in_a_limit_error_instead_of_memory() -> None:
    doubled = " | ".join(["[@, @]"] * 60)

    for whole in (doubled, f"{doubled} | to_string(@)", f"({doubled}) == ({doubled})"):
        with pytest.raises(LimitError):
            value(whole, 1, budget=100_000)
    with pytest.raises(LimitError):
        value(f"{doubled} | abs(@)", 1, budget=100_000)


def test_doubling_texts_end_in_a_limit_error() -> None:
    doubled = " | ".join(["join('', [@, @])"] * 60)
    squared = " | ".join(["replace_all(@, 'a', @)"] * 10)
    by_expression = " | ".join(["regex_replace_all('a', @, @)"] * 10)

    for whole in (doubled, squared, by_expression):
        with pytest.raises(LimitError):
            value(whole, "aaaaaaaaaa")


def test_nesting_made_by_evaluation_is_bounded() -> None:
    with pytest.raises(LimitError):
        value(" | ".join(["[@]"] * 5_000), 1)


def test_deep_data_is_an_error_where_it_has_to_be_walked() -> None:
    deep: list[object] = []
    for _ in range(50_000):
        deep = [deep]

    with pytest.raises(EvaluationError):
        value("sort_by(@, &@)", deep)
    with pytest.raises(EvaluationError):
        value("to_string(@)", deep)
    assert value("[0][0][0] && 'x'", deep) == "x"


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300]
)
def test_deep_json_is_an_error(text: str) -> None:
    assert error("parse_json(@)", text)


def test_huge_numbers_are_floats_or_errors() -> None:
    assert value("parse_json(@)", "1" * 300) == float("1" * 300)
    assert "1e400" in error("parse_json(@)", "1e400")
    assert error("parse_json(@)", "1" * 5_000)
    assert value("a > `1`", {"a": 10**5_000})
    assert value("a == a", {"a": 10**5_000})


def test_numbers_that_json_cannot_carry_are_errors_as_results_only() -> None:
    assert error("to_number('inf')") == "json: unsupported value: +Inf"
    assert error("[multiply(@, @)]", 1e200) == "json: unsupported value: +Inf"
    assert error("avg(`[]`)") == "json: unsupported value: NaN"
    assert value("to_number('inf') > `5`") is True


def test_half_characters_are_errors_or_replaced() -> None:
    half = "\ud800"

    assert error("sha256(@)", half)
    assert value("regex_match('^.$', @)", half) is True
    assert value(f"'{half}' == 'x'") is False
