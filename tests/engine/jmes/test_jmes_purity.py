"""Evaluating changes nothing that the caller holds, and what is visible within one evaluation is upstream's."""

from __future__ import annotations

import json

from engine.lang import jmes
from tests.engine.jmes.evaluating import value

OBJECTS = {"objs": [{"n": "b", "l": [3, 1]}, {"n": "a", "l": [2]}]}


def test_sort_by_reorders_within_the_evaluation_only() -> None:
    before = json.dumps(OBJECTS)

    result = value("[objs[].n, sort_by(objs, &n)[].n, objs[].n]", OBJECTS)

    assert result == [["b", "a"], ["a", "b"], ["a", "b"]]
    assert json.dumps(OBJECTS) == before


def test_sort_by_leaves_the_literals_of_the_expression_alone() -> None:
    query = jmes.compile('[`["b","a"]` | [@, sort_by(@, &@)] | [0], `["b","a"]`]')

    assert query({}, jmes.Env()) == [["a", "b"], ["b", "a"]]
    assert query({}, jmes.Env()) == [["a", "b"], ["b", "a"]]


def test_sort_by_keeps_equal_elements_in_order() -> None:
    data = [{"k": 1, "n": 1}, {"k": 0, "n": 2}, {"k": 1, "n": 3}]

    assert value("sort_by(@, &k)[].n", data) == [2, 1, 3]


def test_no_other_function_changes_its_arguments() -> None:
    data = {"a": [3, 1, 2], "o": {"x": 1}, "p": {"y": 2}}
    before = json.dumps(data)

    for expression in ("sort(a)", "reverse(a)", "merge(o, p)", "to_array(a)", "a[]", "map(&@, a)"):
        value(expression, data)

    assert json.dumps(data) == before


def test_merge_makes_an_object_of_its_own() -> None:
    data = {"o": {"x": 1}}

    assert value("merge(o)", data) is not data["o"]


def test_equal_expressions_are_compiled_once() -> None:
    assert jmes.compile("a.b.c") is jmes.compile("a.b.c")


def test_a_query_names_the_keys_it_mentions() -> None:
    assert jmes.compile('request.object.spec.x[?a == b]."c d" | length({k: e})').names == {
        "request", "object", "spec", "x", "a", "b", "c d", "e",
    }  # fmt: skip
