"""Syntax: upstream's error texts, trees as `jp parse` shows them, JSON in Go's words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lang import jmes
from engine.lang.jmes.jsonscan import complaint
from engine.lang.jmes.outline import outline
from tests.engine.jmes.evaluating import error, value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "SyntaxError: Incomplete expression"),
        ("a b", "SyntaxError: Unexpected token at the end of the expression: tUnquotedIdentifier"),
        ("a[", "SyntaxError: Expected tStar, received: tEOF"),
        ("a {", "SyntaxError: Unexpected token: tLbrace"),
        ("'a", "SyntaxError: Unclosed delimiter: '"),
        ("a # b", "SyntaxError: Unknown char: '#'"),
        ("a \x07", "SyntaxError: Unknown char: '\\a'"),
        ("a \x01", "SyntaxError: Unknown char: '\\x01'"),
        ('"f"(a)', "SyntaxError: Can't have quoted identifier as function name."),
        ("a.*b", "SyntaxError: Unexpected token at the end of the expression: tUnquotedIdentifier"),
        ("*'a'", "SyntaxError: Unexpected token at the end of the expression: tStringLiteral"),
        ("@(a)", "SyntaxError: Invalid function name"),
        ("a[*](b)", "SyntaxError: Error"),
        ("a[9223372036854775808]", 'strconv.Atoi: parsing "9223372036854775808": value out of range'),
    ],
)  # fmt: skip
def test_wrong_expressions_have_upstreams_text(text: str, message: str) -> None:
    with pytest.raises(jmes.ExpressionError) as raised:
        jmes.compile(text)

    assert str(raised.value) == message


def test_an_error_in_a_leading_index_shows_when_it_is_evaluated() -> None:
    assert error("[0:1") == "Unknown AST node: ASTEmpty"
    assert error("[1-1]") == "SyntaxError: Unexpected token at the end of the expression: tNumber"


@pytest.mark.parametrize(
    ("text", "expected"),
    [(r"'\''", "'"), (r"'\\'''", None), (r"'a\b'", r"a\b"), ('`"\\``"`', None), ('`"\\`"`', "`"), ('`"\\u0041"`', "A")],
)  # fmt: skip
def test_quotes_are_read_as_upstream_does(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(jmes.ExpressionError):
            jmes.compile(text)
    else:
        assert value(text) == expected


def test_the_tree_is_printed_in_upstreams_form() -> None:
    assert outline("a.b | truncate(@, `9`)").splitlines()[:9] == [
        "ASTPipe {",
        "  children: {",
        "    ASTSubexpression {",
        "      children: {",
        "        ASTField {",
        '          value: "a"',
        "        }",
        "        ASTField {",
        '          value: "b"',
    ]


@given(
    st.sampled_from(
        [
            "a.b.c.d",
            "a[0].b[1:2][?c == `null`].*",
            "{a: &b, c: [d, !e]}",
            "a || b && c",
            "*[]",
            "x[*]",
        ]
    )
)
def test_every_kind_of_node_can_be_printed(text: str) -> None:
    lines = outline(text).splitlines()

    assert all(line.strip() for line in lines)
    assert sum(line.rstrip().endswith("{") and "children" not in line for line in lines) == sum(
        line.strip() == "}" for line in lines
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unexpected end of JSON input"),
        ("[1", "unexpected end of JSON input"),
        ('{"a"', "unexpected end of JSON input"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 2}', "invalid character '2' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1e", "invalid character ' ' in exponent of numeric literal"),
        ("1e+x", "invalid character 'x' in exponent of numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        (r'"\x"', "invalid character 'x' in string escape code"),
        (r'"\u00g0"', "invalid character 'g' in \\u hexadecimal character escape"),
        ('"\x01"', "invalid character '\\x01' in string literal"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ('{"a":1}"', "invalid character '\"' after top-level value"),
        ("[" * 10_001, "exceeded max depth"),
    ],
)
def test_wrong_json_is_refused_in_gos_words(text: str, message: str) -> None:
    assert complaint(text) == message
    assert error("parse_json(@)", text) == message


@given(st.text(alphabet='[]{},:"0123456789.-eE+truefalsn\\u \n', max_size=20))
def test_the_scanner_agrees_with_the_standard_library(text: str) -> None:
    try:
        json.loads(text, parse_constant=_refuse)
    except ValueError:
        assert complaint(text)
    else:
        assert complaint(text) == ""


def _refuse(name: str) -> None:
    raise ValueError(name)
