"""What follows the Go implementation where the language leaves it open: texts of errors on data of a wrong type, lossy comparisons."""

from __future__ import annotations

import pytest

from engine.lang import cel


@pytest.mark.parametrize(
    ("expression", "value", "text"),
    [
        ("x >= 3", "a", "no such overload"),
        ("x >= 3", [], "no such overload: _>=_"),
        ("x + [1]", "a", "no such overload"),
        ("x + [1]", {}, "no such overload: _+_"),
        ("x - 1", "a", "no such overload"),
        ("x * 2", True, "no such overload: _*_"),
        ("!x", 1, "no such overload"),
        ("!x", [], "no such overload: !_"),
        ("-x", None, "no such overload: -_"),
        ("'a' in x", 1, "no such overload"),
        ("x && true", 1, "no such overload"),
        ("x ? 1 : 2", 1, "no such overload"),
        ("x.startsWith('a')", 1, "no such overload"),
        ("x.matches('a')", 1, "no such overload"),
        ("x.matches('a' + 'b')", 1, "no such overload: matches"),
        ("x.find('a')", 1, "no such overload"),
        ("{'a': 1}[x]", None, "invalid qualifier type: <nil>"),
        ("'a'[x]", [], "invalid qualifier type: []interface {}"),
        ("size(x)", 1, "no such overload: size"),
        ("string(x)", {}, "no such overload: string(map)"),
        ("x.all(y, true)", "a", "got 'types.String', expected iterable type"),
        ("x.exists(y, true)", 1.5, "got 'types.Double', expected iterable type"),
    ],
)
def test_errors_say_what_the_go_implementation_says(expression, value, text):
    with pytest.raises(cel.CelError) as caught:
        cel.compile(expression)({"x": value}, cel.CelEnv())

    assert caught.value.message == text


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("int(duration('-1.5s'))", -1_500_000_000),
        ("duration('-1.5s').getMilliseconds()", -1500),
        ("'tacocat'.indexOf('t', 70)", -1),
        ("'tacocat'.lastIndexOf('t', 7)", -1),
        ("timestamp(0).getMinutes('-1:5')", 55),
        ("null in x", False),
        ("[1] in x", False),
    ],
)
def test_values_are_those_of_the_go_implementation_where_others_differ(expression, result):
    assert cel.compile(expression)({"x": {"a": 1}}, cel.CelEnv()) == result


@pytest.mark.parametrize("value", ["a", 1, None, True])
def test_an_optional_element_of_what_has_none_is_absent(value):
    assert cel.compile("x[?'a'].hasValue()")({"x": value}, cel.CelEnv()) is False


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("dyn(9223372036854775807) < 9223372036854775808.0", False),
        ("dyn(9223372036854775808.0) <= 9223372036854775807", True),
        ("dyn(9223372036854775807) == 9223372036854775808.0", True),
        ("dyn(18446744073709551615u) < 18446744073709590000.0", True),
        ("dyn(9223372036854775807) < 9223372036854775808u", True),
    ],
)
def test_whole_numbers_are_compared_with_doubles_as_doubles(expression, expected):
    assert cel.compile(expression)({}, cel.CelEnv()) is expected
