"""No expression on no data makes anything but an engine error come out, and nothing is changed."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.lang import jmes

KEYS = ("a", "b", "spec", "x-y", "")
TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "1", "1Gi", "1h", "500m", "2024-01-01T00:00:00Z", "[1]", "a: 1", "^a+$", "1.2.3", ">1.0.0",
         "nginx", "http://10.0.0.1", "aGk=", "true", "2006-01-02", "{", "\ud800", "é"]
    ),
    st.text(max_size=8),
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.integers(-3, 3).map(jmes.GoInt)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)
LITERALS = st.one_of(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False)),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    ).map(lambda value: f"`{json.dumps(value)}`"),
    TEXTS.filter(lambda text: "'" not in text and "\\" not in text).map(lambda text: f"'{text}'"),
)  # fmt: skip
LEAVES = st.one_of(
    LITERALS, st.sampled_from(["a", "b", "spec", '"x-y"', "@", "*", "[]", "[0]", "[*]", "[::-1]"])
)
NAMES = st.sampled_from([*sorted(jmes.functions.table()), "nosuch"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    infix = st.sampled_from(["==", "!=", "<", ">=", "||", "&&", "|", "."])
    suffix = st.sampled_from(["[]", "[*]", "[0]", "[-1]", "[1:]", ".*", ".a", ".b[]", "[?a]"])
    return st.one_of(
        st.tuples(inner, infix, inner).map(" ".join),
        st.tuples(inner, suffix).map("".join),
        inner.map(lambda one: f"!{one}"),
        inner.map(lambda one: f"({one})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda some: f"[{', '.join(some)}]"),
        inner.map(lambda one: f"{{a: {one}, b: @}}"),
        st.tuples(inner, inner).map(lambda pair: f"{pair[0]}[?{pair[1]}]"),
        st.tuples(NAMES, st.lists(inner, max_size=3)).map(
            lambda call: f"{call[0]}({', '.join(call[1])})"
        ),
        st.tuples(st.sampled_from(["sort_by(@, &{})", "max_by(@, &{})", "map(&{}, @)"]), inner).map(
            lambda call: call[0].format(call[1])
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, _grown, max_leaves=8)
TOKENS = ["a", "b", ".", "*", "[", "]", "[?", "[]", "(", ")", "{", "}", ",", ":", "@", "&", "&&", "|", "||", "!", "==",
    "<", "-1", "0", "'x'", "`1`", "`", "'", '"a"', '"', " ", "=", "\\", "length(", "é"]  # fmt: skip


def evaluated(expression: str, data: Any) -> None:
    """Evaluate; anything but a value or an engine error fails the test."""
    before = repr(data)
    try:
        result = jmes.compile(expression)(data, jmes.Env(budget=20_000))
    except EngineError:
        result = None
    if result is not None:
        assert type(result) in (
            str, int, float, bool, list, dict, type(None), jmes.GoInt, jmes.ItemList,
        )  # fmt: skip
    assert repr(data) == before


@settings(max_examples=400)
@given(EXPRESSIONS, VALUES)
@example("sort_by(@, &a)", [{"a": float("nan")}, {"a": 1}])
@example("to_string(@)", [float("inf")])
@example("add(@, `1`)", 10**400)
def test_any_expression_on_any_data_gives_a_value_or_an_engine_error(
    expression: str, data: Any
) -> None:
    evaluated(expression, data)


@given(st.lists(st.sampled_from(TOKENS), max_size=15).map("".join), VALUES)
def test_any_row_of_tokens_gives_a_value_or_an_engine_error(expression: str, data: Any) -> None:
    evaluated(expression, data)


@given(st.text(max_size=30), VALUES)
def test_any_text_gives_a_value_or_an_engine_error(expression: str, data: Any) -> None:
    evaluated(expression, data)


@settings(max_examples=400)
@given(NAMES, st.lists(VALUES, max_size=4))
def test_any_function_on_any_arguments_gives_a_value_or_an_engine_error(
    name: str, arguments: list[Any]
) -> None:
    listed = ", ".join(f"@[{place}]" for place in range(len(arguments)))

    evaluated(f"{name}({listed})", arguments)


@given(NAMES, st.lists(TEXTS, min_size=1, max_size=3))
def test_any_function_on_any_texts_gives_a_value_or_an_engine_error(
    name: str, arguments: list[str]
) -> None:
    listed = ", ".join(f"@[{place}]" for place in range(len(arguments)))

    evaluated(f"{name}({listed})", arguments)


@given(st.text(max_size=40))
def test_json_is_read_or_refused_as_the_standard_library_does(text: str) -> None:
    try:
        expected = json.loads(text, parse_constant=_refused)
    except ValueError:
        expected = None

    if expected is not None:
        assert jmes.compile("parse_json(@)")(text, jmes.Env()) is not None


def _refused(name: str) -> None:
    raise ValueError(name)
