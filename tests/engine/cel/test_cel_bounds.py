"""Nothing that an expression or its data holds makes the engine run away, or raise what is not its own."""

from __future__ import annotations

from typing import Any

import pytest

from engine.lang import cel
from tests.fuzz.trial import outcome


def value(expression: str, bindings: dict[str, Any] | None = None, budget: int = 10**6) -> Any:
    return cel.compile(expression)(bindings or {}, cel.CelEnv(cost_budget=budget))


@pytest.mark.parametrize(
    "opening", ["(", "[", "{1: ", "!(", "-(", "size(", "x[", "true ? (", "[?", "{?1: "]
)
def test_deep_nesting_is_a_syntax_error_with_a_place(opening: str) -> None:
    with pytest.raises(cel.CelSyntaxError) as caught:
        cel.compile(opening * 1_000 + "1")
    assert caught.value.line == 1


@pytest.mark.parametrize(
    "row", ["x" + ".a" * 1_000, "x" + "[0]" * 1_000, "[1]" + ".map(i, i)" * 100]
)
def test_rows_that_nest_are_a_syntax_error(row: str) -> None:
    with pytest.raises(cel.CelSyntaxError, match="nests deeper than 64 levels"):
        cel.compile(row)


@pytest.mark.parametrize(
    "row",
    ["1" + " + 1" * 5_000, "true" + " && true" * 5_000, "!" * 5_000 + "true", "- " * 5_000 + "x",
     "false ? 1 : " * 2_000 + "1", "[" + "1, " * 5_000 + "1]", "true" + " || x" * 3_000],
)  # fmt: skip
def test_long_rows_do_not_count_as_nesting(row: str) -> None:
    value(row, {"x": 1})


def test_nesting_that_people_write_is_accepted() -> None:
    assert value("(" * 50 + "1" + ")" * 50) == 1
    assert value("[" * 50 + "1" + "]" * 50 + "[0]" * 10) is not None


def test_a_very_long_expression_is_refused() -> None:
    with pytest.raises(cel.CelSyntaxError, match="longer than"):
        cel.compile("1 + " * 50_000 + "1")


@pytest.mark.parametrize("depth", [500, 3_000, 100_000])
def test_data_that_nests_deep_is_read_or_refused(depth: int) -> None:
    nested: Any = 1
    for _ in range(depth):
        nested = [nested]
    for expression in (
        "x == x",
        "json.marshal(x) != ''",
        "[x].distinct()",
        "x in [x]",
        "x.flatten(1000000)",
        '"%s".format([x])',
    ):
        assert outcome(expression, {"x": nested}) in ("value", "error", "budget")
    while isinstance(nested, list):
        nested = nested[0]


@pytest.mark.parametrize(
    "expression",
    ["x.all(i, x.all(j, x.all(k, true)))", "x.map(i, x).flatten().map(i, x).flatten()", "x.exists(i, x.all(j, j < 0 || i < 0))",
     "lists.range(1000000).map(i, i)", "x.map(i, s).join(s)", "s.replace('', s)", "x.distinct()", "x.sort().sort().sort()",
     "x.map(i, s + s).size() > 0", "'%s'.format([x])", "s.split('').size() > 0", "sets.contains(x, x)", "json.marshal(x) == ''",
     "x.transformMap(i, j, x.transformList(k, v, v))", "x.sortBy(i, -i)", "s.findAll('a').size() > 0", "x + x + x + x == []"],
)  # fmt: skip
def test_what_costs_more_than_its_budget_ends_early(expression: str) -> None:
    bindings = {"x": list(range(600)), "s": "a" * 10_000}

    with pytest.raises(cel.BudgetError, match="actual cost limit exceeded"):
        value(expression, bindings, budget=500)


@pytest.mark.parametrize(
    "call",
    ["isIP('::1')", "isCIDR('10.0.0.0/8')", "isURL('/a')", "isQuantity('1Gi')", "isSemver('1.2.3')", "isImage('nginx')",
     "'a'.find('a') == 'a'", "timestamp('2024-01-01T00:00:00Z') == t", "t.getHours('Europe/Berlin') == 0", "string(t) == ''",
     "md5('a') == ''", "random() == ''", "format.uuid().validate('a').hasValue()", "yaml.parse('1') == 1"],
)  # fmt: skip
def test_a_call_of_a_function_that_takes_long_costs_more(call: str) -> None:
    bindings = {"t": cel.Timestamp(0), "x": [0] * 100}

    assert value("x.map(i, i == 0).size()", bindings, budget=2_000) == 100
    with pytest.raises(cel.BudgetError):
        value(f"x.map(i, {call})", bindings, budget=2_000)


def test_a_budget_that_is_used_up_is_not_absorbed() -> None:
    bindings = {"x": list(range(1_000))}

    for expression in (
        "x.all(i, true) || true",
        "true || true && x.all(i, true)",
        "[1].exists(i, x.all(j, true)) || true",
    ):
        if expression.startswith("true ||"):
            assert value(expression, bindings, budget=100) is True
            continue
        with pytest.raises(cel.BudgetError):
            value(expression, bindings, budget=100)


def test_programs_that_share_an_environment_share_its_budget() -> None:
    env = cel.CelEnv(cost_budget=2_500)
    program = cel.compile("x.all(i, i >= 0)")
    bindings = {"x": list(range(300))}

    assert program(bindings, env) is True
    left = env.budget
    assert 0 < left < 2_500 - 300
    env.budget = 300
    with pytest.raises(cel.BudgetError):
        program(bindings, env)


def test_a_pattern_that_takes_for_ever_elsewhere_takes_no_time() -> None:
    assert value("s.matches('^(a+)+$')", {"s": "a" * 5_000 + "b"}) is False


@pytest.mark.parametrize(
    "expression",
    ["lists.range(9223372036854775807)", "lists.range(-5)", "quantity('1e999999999').asInteger()", "quantity('1e9999').add(1)",
     "math.bitShiftLeft(1, 9223372036854775807)", "int('" + "9" * 5_000 + "')", "double('" + "9" * 5_000 + "')", "'%.1000000f'.format([1.0])",
     "quantity('1e999999999') == quantity('1e-999999999')", "math.round(1e308, 100)", "timestamp(9223372036854775807)",
     "duration('" + "9" * 5_000 + "h')", "cidr('::/" + "9" * 5_000 + "')", "[1].flatten(9223372036854775807)", "semver('" + "9" * 5_000 + ".0.0')",
     "random('[a-z]{1000000}')", "1" * 5_000, "1" * 5_000 + ".5", "gzip.decompress(b'\\x1f\\x8b')", "uint('" + "9" * 5_000 + "')",
     "'a'.substring(9223372036854775807)", "'a'.indexOf('', 9223372036854775807)", "'a'.lastIndexOf('a', 9223372036854775807)",
     "[1].slice(0, 9223372036854775807)", "'a'.split('', -9223372036854775808)", "'a'.replace('a', 'b', -9223372036854775808)",
     "yaml.parse('a: &a [*a]')", "yaml.parse('" + "[" * 3_000 + "')", "json.unmarshal('" + "[" * 3_000 + "')", "json.unmarshal('1e999')"],
)  # fmt: skip
def test_extreme_arguments_give_a_value_or_an_error_of_the_engine(expression: str) -> None:
    assert outcome(expression, {}) in ("value", "error", "budget", "syntax")


def test_half_a_surrogate_pair_in_data_breaks_nothing() -> None:
    for expression in ("size(x)", "bytes(x)", "x.matches('.')", "json.marshal(x)", "sha256(x)", "x.find('a')", "strings.quote(x)",
                       "url(x)", "x.upperAscii()", "x == '\U0001f431'", "'%x'.format([x])", "image(x)", "x + 'a' < x"):  # fmt: skip
        assert outcome(expression, {"x": "a\ud800"}) in ("value", "error")


def test_errors_name_their_place_and_the_data_they_read() -> None:
    with pytest.raises(cel.CelError) as caught:
        value("true &&\n  object.spec.replicas > 1", {"object": {"spec": {}}})
    assert caught.value.message == "no such key: replicas"
    assert caught.value.path == "object.spec.replicas"
    assert caught.value.position > 7

    with pytest.raises(cel.CelSyntaxError) as refused:
        cel.compile("1 +\n  2 +")
    assert (refused.value.line, refused.value.column) == (2, 6)


def test_an_expression_never_changes_its_data() -> None:
    data = {"x": {"a": [3, 1, 2], "b": {"c": [1]}}}
    before = repr(data)

    value(
        "[x.a.sort(), x.a.reverse(), x.a + [4], x.b.transformMap(k, v, v + [2]), x.a.map(i, [i])]",
        data,
    )
    assert repr(data) == before


def test_a_library_that_is_left_out_is_not_known() -> None:
    assert cel.compile("math.ceil(1.5)")({}) == 2.0
    with pytest.raises(cel.CelSyntaxError, match="undeclared reference"):
        cel.compile("math.ceil(1.5)", [name for name in cel.LIBRARIES if name != "math"])


def test_names_that_an_expression_reads_are_known_before_it_runs() -> None:
    assert cel.compile("a.b + [c].map(d, d + e)[0] > size(f)").names >= {"a", "c", "e", "f"}
    assert "d" not in cel.compile("[c].map(d, d)").names
