"""Where a missing key is an error and where it is null (rows V-20 to V-23)."""

from __future__ import annotations

import pytest

from engine.lang import jmes
from tests.engine.jmes.evaluating import error, value

DATA = {"o": {"k": "v"}, "nul": None, "s": "text", "list": [{"a": 1}, {}], "t": True}


@pytest.mark.parametrize(
    "expression",
    ["no", "o.no", "o.no.x", "no[0]", "no.[x]", "no.{a: x}", "no.length(@)", "(no)", "s && no"],
)
def test_a_missing_key_is_an_error(expression: str) -> None:
    with pytest.raises(jmes.UnknownKeyError) as raised:
        value(expression, DATA)

    assert str(raised.value) == 'Unknown key "no" in path'


@pytest.mark.parametrize(
    "expression",
    ["nul.x", "s.x.y", "list.x", "t.x", "no | @", "o | no", "no[*]", "no[]", "no[?x]", "no.*",
     "no[1:]", "no && s", "no || no", "o[0]", "list[5]", "list[-3]"],
)  # fmt: skip
def test_these_are_null(expression: str) -> None:
    assert value(expression, DATA) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [("no || 'd'", "d"), ("no == nul", True), ("no != nul", False), ("!no", True), ("[no, s]", [None, "text"]),
     ("{a: no}", {"a": None}), ("type(no)", "null"), ("list[*].a", [1]), ("list[].a", [1]),
     ("list[?a].a", [1]), ("list[?!a]", [{}]), ("list[?no]", []), ("map(&a, list)", [1, None]),
     ("no | not_null(@, 'd')", "d"), ("(s && no) || 'd'", "d"), ("s || no", "text")],
)  # fmt: skip
def test_a_missing_key_counts_as_null_here(expression: str, expected: object) -> None:
    assert value(expression, DATA) == expected


def test_not_binds_tighter_than_a_field_and_looser_than_an_index() -> None:
    assert value("!o.k", DATA) is None
    assert value("!(o.k)", DATA) is False
    assert value("![`true`][0]", DATA) is False
    assert value("!list[5]", DATA) is True


@pytest.mark.parametrize("text", ["`foo`", "`True`", "`'a'`", "` `", "`[1,]`"])
def test_only_json_stands_between_backticks(text: str) -> None:
    with pytest.raises(jmes.ExpressionError):
        jmes.compile(text)


def test_a_function_error_passes_through_but_not_through_flatten_and_filter() -> None:
    assert error("abs(s) || 'd'", DATA).startswith("Invalid type for: text")
    assert error("abs(s)[*] || 'd'", DATA).startswith("Invalid type for: text")
    assert value("abs(s)[] || 'd'", DATA) == "d"
    assert value("abs(s)[?@] || 'd'", DATA) == "d"
    assert value("abs(s).* || 'd'", DATA) == "d"


@pytest.mark.parametrize("false", ["nul", "''", "`false`", "`[]`", "`{}`", "items(`{}`, 'a', 'b')"])
def test_empty_and_null_are_false(false: str) -> None:
    assert value(f"{false} || 'd'", DATA) == "d"
    assert value(f"!{false}", DATA) is True
    assert value(f"list[?{false}]".replace("nul", "no"), DATA) == []


@pytest.mark.parametrize("true", ["`0`", "`0.0`", "' '", "`[0]`", "compare('a', 'a')", "&a"])
def test_numbers_and_what_is_not_empty_are_true(true: str) -> None:
    assert value(f"({true}) && 'yes'") == "yes"
    assert value(f"!({true})") is False


def test_booleans_equal_no_numbers() -> None:
    assert value("`true` == `1`") is False
    assert value("`[true]` == `[1]`") is False
    assert value("`0` == `false`") is False
    assert value("a == b", {"a": 1, "b": 1.0}) is True
    assert value("a == b", {"a": 2**53 + 1, "b": 2.0**53}) is True


def test_order_exists_between_numbers_only() -> None:
    assert value("'a' < 'b'") is None
    assert value("`true` > `false`") is None
    assert value("`1` < '2'") is None
    assert value("`1` < `2`") is True


def test_go_integers_are_no_numbers() -> None:
    data = {"i": jmes.GoInt(0)}

    assert value("i == `0`", data) is False
    assert value("i < `1`", data) is None
    assert value("i == i", data) is True
    assert error("type(i)", data) == "unknown type"
    assert error("add(i, `1`)", data) == "JMESPath function 'add': invalid operand"
    assert value("to_string(i)", data) == "0"


def test_the_result_of_items_is_no_ordinary_array() -> None:
    data = {"o": {"b": 1, "a": 2}}

    assert value("items(o, 'k', 'v')[0].k", data) == "a"
    assert value("items(o, 'k', 'v') == `[]`", data) is False
    assert value("length(items(o, 'k', 'v'))", data) == 2
    assert value("to_array(items(o, 'k', 'v')) | length(@)", data) == 1
    for function in ("map(&k, @)", "sort_by(@, &k)", "max_by(@, &v)", "reverse(@)", "type(@)"):
        assert error(f"items(o, 'k', 'v') | {function}", data)
    assert error("contains(items(o, 'k', 'v'), 'a')", data)
