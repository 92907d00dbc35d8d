"""What types say of an expression before it is evaluated, as the Go implementation's checker does."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine.lang import cel
from engine.lang.cel.types import shown


def faults(expression: str) -> list[str]:
    return [fault.message for fault in cel.compile(expression).check().faults]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("null.?a", "null"),
        ("1.?a", "int"),
        ("1u.?a", "uint"),
        ("1.5.?a", "double"),
        ("'x'.?a", "string"),
        ("b'x'.?a", "bytes"),
        ("true.a", "bool"),
        ("'x'.a", "string"),
        ("has('x'.a)", "string"),
        ("('a' + 'b').?c", "string"),
        ("{'a': 1}.a.b", "int"),
        ("[1, 2].map(x, x.?a)", "int"),
        ("optional.of(1).?a", "int"),
        ("'a,b'.split(',')[0].?x", "string"),
        ("cel.bind(x, 'a', x.y)", "string"),
    ],
)
def test_a_field_of_what_is_known_to_have_none_does_not_compile(expression: str, kind: str) -> None:
    with pytest.raises(cel.CelSyntaxError) as caught:
        cel.compile(expression)

    assert caught.value.message == f"type '{kind}' does not support field selection"


@pytest.mark.parametrize(
    "expression",
    ["dyn(1).?a", "x.?a", "{'a': {'b': 1}}.a.?b", "optional.of({'a': 1}).?a", "{'a': dyn(1)}.a.?b"],
)
def test_a_field_of_what_may_have_some_compiles(expression: str) -> None:
    assert faults(expression) == []


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("1.0 == 1", "found no matching overload for '_==_' applied to '(double, int)'"),
        ("null == 1", "found no matching overload for '_==_' applied to '(null, int)'"),
        ("!1", "found no matching overload for '!_' applied to '(int)'"),
        ("1 in 'a'", "found no matching overload for '@in' applied to '(int, string)'"),
        ("1[?0]", "found no matching overload for '_[?_]' applied to '(int, int)'"),
        ("'a'.substring('b')", "found no matching overload for 'substring' applied to 'string.(string)'"),
        ("math.ceil(1)", "found no matching overload for 'math.ceil' applied to '(int)'"),
        ("quantity('1').isLessThan('1')",
         "found no matching overload for 'isLessThan' applied to 'kubernetes.Quantity.(string)'"),
        ("[1].join()", "found no matching overload for 'join' applied to 'list(int).()'"),
        ("true ? 1 : 'a'", "found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("['a'].all(x, x)", "expected type 'bool' but found 'string'"),
        ("object.x.filter(y, 1)", "expected type 'bool' but found 'int'"),
        ("1.all(x, true)",
         "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"),
        ("[?1]", "expected type 'optional_type(int)' but found 'int'"),
        ("[1].?a", "type 'list(int)' does not support field selection"),
        ("JSONPatch{op: 1}", "expected type of field 'op' is 'string' but provided type is 'int'"),
        ("'a,b'.split(',').map(x, x + 1)", "found no matching overload for '_+_' applied to '(string, int)'"),
    ],
)  # fmt: skip
def test_types_that_never_fit_are_told_of(expression: str, text: str) -> None:
    assert faults(expression) == [text]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("object.a + 1", "int"),
        ("object.a + object.b", "dyn"),
        ("1 < 2.0", "bool"),
        ("[] + [1]", "list(int)"),
        ("true ? [] : ['a']", "list(string)"),
        ("null == duration('1s')", "bool"),
        ("{'a': []}.a + [1]", "list(int)"),
        ("[[1], [2]].flatten()", "list(int)"),
        ("optional.of(1).orValue(2)", "int"),
        ("['a'].first()", "optional_type(string)"),
        ("object.?a.?b.orValue('')", "dyn"),
        ("{'a': 1}.map(k, k.size())", "list(int)"),
        ("{'a': 1}.transformMap(k, v, string(v))", "map(string, string)"),
        ("lists.range(3).map(i, string(i)).join(',')", "string"),
        ("timestamp('2020-01-01T00:00:00Z') - duration('1s')", "timestamp"),
        ("x.anything.at.all + 1 > y", "bool"),
    ],
)
def test_an_expression_that_fits_comes_to_a_type(expression: str, kind: str) -> None:
    found = cel.compile(expression).check()

    assert (shown(found.type), found.faults) == (kind, ())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("[1, 'a']", "expected type 'int' but found 'string'"),
        ("{'a': 1, 'b': 'c'}", "expected type 'int' but found 'string'"),
        ("{1: 2, 'a': 3}", "expected type 'int' but found 'string'"),
        ("[object.x, 1]", "expected type 'dyn' but found 'int'"),
        ("[1, null]", "expected type 'int' but found 'null'"),
        ("[[1], ['a']]", "expected type 'list(int)' but found 'list(string)'"),
        ("[dyn(1), 'a']", "expected type 'dyn' but found 'string'"),
    ],
)
def test_literals_of_several_types_are_told_of_by_a_rule_of_their_own(
    expression: str, text: str
) -> None:
    [fault] = cel.compile(expression).check().faults

    assert (fault.message, fault.rule) == (text, cel.Rule.MIXED)


@pytest.mark.parametrize(
    "expression",
    ["[dyn(1), dyn('a')]", "'%s %d'.format(['a', 1])", "[x, 1]", "[[], [1]]", "[?object.x, object.y]"],
)  # fmt: skip
def test_literals_of_one_type_or_of_unknown_ones_are_not_told_of(expression: str) -> None:
    assert faults(expression) == []


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'a'.substring()", "'substring' applied to 'string.()'"),
        ("size()", "'size' applied to '()'"),
        ("[1].join('a', 'b')", "'join' applied to 'list(int).(string, string)'"),
    ],
)
def test_a_call_with_too_many_arguments_or_too_few_says_what_it_is_given(
    expression: str, text: str
) -> None:
    with pytest.raises(cel.CelSyntaxError) as caught:
        cel.compile(expression)

    assert caught.value.message == f"found no matching overload for {text}"


@pytest.mark.parametrize("word", ["while", "if", "package", "const", "as"])
def test_methods_and_fields_may_be_named_like_reserved_words(word: str) -> None:
    assert cel.compile(f"x.{word}")({"x": {word: 1}}) == 1
    with pytest.raises(cel.CelSyntaxError, match=f"undeclared reference to '{word}'"):
        cel.compile(f"x.{word}()")
    with pytest.raises(cel.CelSyntaxError, match=f"reserved identifier: `?{word}"):
        cel.compile(f"{word}(1)")


def test_types_that_grow_with_every_level_are_not_followed_to_the_end() -> None:
    names = [f"a{index}" for index in range(40)]
    text = names[-1]
    for outer, inner in reversed(list(pairwise(names))):
        text = f"cel.bind({inner}, {{1: {outer}, 2: {outer}}}, {text})"

    assert cel.compile(f"cel.bind(a0, 1, {text})").check().faults == ()
