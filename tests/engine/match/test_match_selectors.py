"""Label selectors, with wildcards in matchLabels and Kubernetes' rules elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import PolicyError
from engine.match import compile_selector, key_error, value_error

LABELS = {"app": "web", "tier": "front", "empty": ""}


def holds(selector: dict[str, Any], labels: dict[str, Any] = LABELS) -> bool:
    return compile_selector(selector)(labels)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    "pairs",
    [
        {},
        {"app": "web"},
        {"app": "web", "tier": "front"},
        {"app": "w*"},
        {"app": "?eb"},
        {"a*": "web"},
        {"a*": "w?b"},
        {"*": "front"},
        {"empty": ""},
        {"empty": "*"},
        {"app": "web", "t*": "*"},
        {"app": "web", "tier": "front", "empty": ""},
    ],
)
def test_pairs_that_hold(pairs: dict[str, str]) -> None:
    assert holds({"matchLabels": pairs})


@pytest.mark.parametrize(
    "pairs",
    [
        {"app": "WEB"},
        {"app": "we"},
        {"nope": "web"},
        {"nope": "*"},
        {"a*": "front"},
        {"empty": "?*"},
        {"app": "web", "tier": "back"},
        {"app": "w*", "tier": "b*"},
        {"app": "web", "tier": "front", "empty": "x"},
        {"bad key!": "web"},
        {"app": "web", "bad key!": "x"},
        {"app": "bad value!"},
    ],
)
def test_pairs_that_do_not_hold(pairs: dict[str, str]) -> None:
    assert not holds({"matchLabels": pairs})


def test_a_wildcard_pair_is_looked_for_among_strings_only() -> None:
    assert not holds({"matchLabels": {"a*": "*"}}, {"a": 1})
    assert not holds({"matchLabels": {"a": "*"}}, {"a": 1})
    assert not holds({"matchLabels": {"a": "1"}}, {"a": 1})


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (expression("app", "In", "web", "x"), True),
        (expression("app", "In", "x"), False),
        (expression("nope", "In", "x"), False),
        (expression("app", "NotIn", "x"), True),
        (expression("app", "NotIn", "web"), False),
        (expression("nope", "NotIn", "x"), True),
        (expression("app", "Exists"), True),
        (expression("nope", "Exists"), False),
        (expression("app", "DoesNotExist"), False),
        (expression("nope", "DoesNotExist"), True),
    ],
)
def test_set_operators(selector: dict[str, Any], expected: bool) -> None:
    assert holds(selector) is expected


@pytest.mark.parametrize(
    "selector",
    [
        expression("app", "In"),
        expression("nope", "NotIn"),
        expression("app", "Exists", "web"),
        expression("nope", "DoesNotExist", "x"),
        expression("app", "in", "web"),
        expression("app", "Foo", "web"),
        expression("app", "", "web"),
        expression("a*", "Exists"),
        expression("nope", "NotIn", "w*"),
    ],
)
def test_a_selector_that_kubernetes_refuses_matches_nothing(selector: dict[str, Any]) -> None:
    assert not holds(selector)
    assert not holds({"matchLabels": {"app": "web"}, **selector})


def test_pairs_and_expressions_must_both_hold() -> None:
    both = {"matchLabels": {"app": "web"}, **expression("tier", "Exists")}

    assert holds(both)
    assert not holds(both, {"app": "web"})
    assert not holds(both, {"tier": "x"})


@pytest.mark.parametrize(
    ("selector", "name"),
    [
        ([], "selector"),
        ({"matchLabels": []}, "selector.matchLabels"),
        ({"matchLabels": {"a": 1}}, "selector.matchLabels"),
        ({"matchExpressions": {}}, "selector.matchExpressions"),
        ({"matchExpressions": ["x"]}, "selector.matchExpressions"),
        ({"matchExpressions": [{"key": 1, "operator": "Exists"}]}, "selector.matchExpressions.key"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "x"}]},
            "selector.matchExpressions.values",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]},
            "selector.matchExpressions.values",
        ),
        ({"matchExpressions": [{"key": "a", "operator": 1}]}, "selector.matchExpressions.operator"),
    ],
)
def test_a_part_of_the_wrong_type_is_refused(selector: Any, name: str) -> None:
    with pytest.raises(PolicyError, match=f"^`{name}` must be a"):
        compile_selector(selector)


@pytest.mark.parametrize(
    "key", ["app", "a", "A.b_c-1", "example.com/app", "a.b-c.d/x", "x" * 63, "p" * 253 + "/x"]
)
def test_label_keys_that_are_fine(key: str) -> None:
    assert key_error(key) is None


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("", "name part must be non-empty"),
        ("a/", "name part must be non-empty"),
        ("/a", "prefix part must be non-empty"),
        ("a/b/c", "a qualified name must consist"),
        ("x" * 64, "name part must be no more than 63 characters"),
        ("p" * 254 + "/x", "prefix part must be no more than 253 characters"),
        ("A/x", "prefix part a lowercase"),
        ("a..b/x", "prefix part a lowercase"),
        ("-a", "name part must consist"),
        ("a-", "name part must consist"),
        ("a b", "name part must consist"),
        ("a\n", "name part must consist"),
    ],
)
def test_label_keys_that_are_not(key: str, part: str) -> None:
    assert (key_error(key) or "").startswith(part)


def test_label_values_have_a_form_and_a_length() -> None:
    assert value_error("") is None
    assert value_error("v" * 63) is None
    assert value_error("v" * 64) == "must be no more than 63 characters"
    assert (value_error("-v") or "").startswith("a valid label must be an empty string")
