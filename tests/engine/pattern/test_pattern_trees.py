"""Pattern trees: anchors, lists, the order of keys, paths and messages."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError, LimitError
from engine.lang.pattern import compile_pattern, parse_key, resolve_references
from engine.lang.pattern.anchors import Anchor


def verdict(pattern: Any, resource: Any) -> tuple[str, str]:
    miss = compile_pattern(pattern).check(resource)
    return ("pass", "") if miss is None else (miss.kind, miss.path)


def message(pattern: Any, resource: Any) -> str:
    miss = compile_pattern(pattern).check(resource)
    assert miss is not None
    return miss.message


PASS = ("pass", "")
SKIP = ("skip", "")


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ({"a": "1"}, {"a": "1", "b": "2"}, PASS),
        ({"a": "1"}, {}, ("fail", "/a/")),
        ({"a": "*"}, {"a": 0}, PASS),
        ({"a": "*"}, {"a": None}, ("fail", "/")),
        ({"a": {"b": "*"}}, {"a": {}}, ("fail", "/a/")),
        ({"a": {"b": "1"}}, {"a": "x"}, ("fail", "/a/")),
        ({"a": {}}, {"a": {}}, PASS),
        ({"a": {}}, {}, ("fail", "/a/")),
        ({"a": "<10"}, {}, PASS),
        ({"=(a)": "1"}, {}, PASS),
        ({"=(a)": "1"}, {"a": None}, ("fail", "/a/")),
        ({"=(a)": "1"}, {"a": "2"}, ("fail", "/a/")),
        ({"(a)": "1", "b": "2"}, {"a": "1", "b": "3"}, ("fail", "/b/")),
        ({"(a)": "1", "b": "2"}, {"a": "2", "b": "3"}, SKIP),
        ({"(a)": "1", "b": "2"}, {"b": "3"}, SKIP),
        ({"(a)": "1", "X(b)": "null"}, {"a": "2", "b": "3"}, SKIP),
        ({"<(a)": "1", "b": "2"}, {"b": "2"}, PASS),
        ({"<(a)": "1", "b": "2"}, {"a": "2", "b": "3"}, SKIP),
        ({"s": {"<(a)": "1"}, "k": "1"}, {"s": {"a": "2"}, "k": "2"}, SKIP),
        ({"X(a)": "null"}, {}, PASS),
        ({"X(a)": "null"}, {"a": None}, ("fail", "/a/")),
        ({"m": {"(a)": "1", "b": "2"}, "k": "1"}, {"m": {"a": "2"}, "k": "2"}, SKIP),
        ({"b": "1", "a": "1"}, {}, ("fail", "/a/")),
        ({"a": "1", "z": {"=(q)": "1"}}, {"a": "2", "z": {"q": "2"}}, ("fail", "/z/q/")),
        ({"y": {"=(q)": "1"}, "z": {"=(q)": "1"}}, {"y": {"q": 2}, "z": {"q": 2}}, ("fail", "/z/q/")),
        ({"(a": "1"}, {"(a": "1"}, PASS),
        ({"()": "1"}, {"()": "1"}, PASS),
    ],
)  # fmt: skip
def test_maps_and_their_anchors(pattern: Any, resource: Any, expected: tuple[str, str]) -> None:
    assert verdict(pattern, resource) == expected


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ([{"a": "1"}], [{"a": "1"}, {"a": "2"}], ("fail", "/1/a/")),
        ([{"a": "1"}], [], PASS),
        ([{"a": "1"}, {"b": "never read"}], [{"a": "1"}], PASS),
        ([{"(n)": "x", "v": "1"}], [{"n": "y", "v": "2"}], SKIP),
        ([{"(n)": "x", "v": "1"}], [{"n": "y", "v": "2"}, {"n": "x", "v": "1"}], PASS),
        ([{"(n)": "x", "v": "1"}], [{"n": "y"}, {"n": "x", "v": "2"}], ("fail", "/1/v/")),
        ([{"(n)": "x"}], {"n": "x"}, ("fail", "/")),
        (["a|b"], ["a", "b"], PASS),
        (["a|b"], ["a", "c"], ("fail", "/")),
        (["a"], [], PASS),
        (["a"], "a", ("fail", "/")),
        ("a", ["a", "a"], PASS),
        ("a", ["a", "b"], ("fail", "/")),
        ("a", [["a"]], ("fail", "/")),
        ([], [], ("fail", "/")),
        ([], "x", ("fail", "/")),
        ([["a"], {"b": "1"}], [["a"], {"b": "1"}, "more"], PASS),
        ([["a"], {"b": "1"}], [["a"], {"b": "2"}], ("fail", "/1/b/")),
        ([["a"], {"(b)": "1"}], [["a"], {"b": "2"}], PASS),
        ([["a"]], [], ("error", "")),
        ({"^(l)": [{"n": "x"}]}, {"l": [{"n": "y"}, {"n": "x"}]}, PASS),
        ({"^(l)": [{"n": "x"}]}, {"l": [{"n": "y"}]}, ("fail", "/l/")),
        ({"^(l)": [{"n": "x"}]}, {"l": []}, ("fail", "/l/")),
        ({"^(l)": [{"n": "x"}]}, {}, PASS),
        ({"^(l)": [{"n": "x"}, {"n": "y"}]}, {"l": [{"n": "x"}]}, ("fail", "/l/")),
        ({"^(l)": [{"n": "x"}]}, {"l": "x"}, ("fail", "/l/")),
        ({"^(l)": ["x"]}, {"l": ["x"]}, ("fail", "/l/")),
        ({"^(l)": {"n": "x"}}, {"l": [{"n": "x"}]}, ("fail", "/l/")),
    ],
)
def test_lists_and_existence(pattern: Any, resource: Any, expected: tuple[str, str]) -> None:
    assert verdict(pattern, resource) == expected


@pytest.mark.parametrize(
    ("pattern", "resource", "text"),
    [
        ({"a": "1"}, {"a": ["2", None]}, "resource value '[2 <nil>]' does not match '1' at path /a/"),
        ({"a": {"b": 1}}, {"a": []},
         "pattern and resource have different structures. Path: /a/. Expected map[string]interface {}, found []interface {}"),
        ({"a": {"b": "*"}}, {"a": {}}, "/a//b not found"),
        ({"X(a)": 1}, {"a": 1}, "negation anchor matched in resource: /a/ is not allowed"),
        ({"(a)": "1", "(b)": "1"}, {"b": "2"},
         ("conditional anchor mismatch: conditional anchor key doesn't exist in the resource; "
         "conditional anchor mismatch: resource value '2' does not match '1' at path /b/")),
        ({"l": [{"<(n)": "x"}]}, {"l": [{"n": "y"}, {"n": "z"}]},
         ("global anchor mismatch: resource value 'y' does not match 'x' at path /l/0/n/; "
         "global anchor mismatch: resource value 'z' does not match 'x' at path /l/1/n/")),
        ({"(m)": {"(a)": "1"}}, {"m": {}},
         "conditional anchor mismatch: conditional anchor mismatch: conditional anchor key doesn't exist in the resource"),
        ({"^(l)": [{"a": "1"}]}, {"l": []}, "existence anchor validation failed at path /l/"),
        ({"^(l)": [{"a": "1"}]}, {"l": True},
         "invalid resource type bool: Resource has to be a list for existence anchor ^()"),
        ([["a"], ["b"]], [["a"]],
         "validate Array failed, array length mismatch, resource Array len is 1 and pattern Array len is 2"),
    ],
)  # fmt: skip
def test_the_words_of_a_mismatch(pattern: Any, resource: Any, text: str) -> None:
    assert message(pattern, resource) == text


def test_text_of_the_object_cannot_turn_a_failure_into_a_skip() -> None:
    for words in ("conditional anchor mismatch: ", "global anchor mismatch: "):
        assert verdict({"spec": {"a": "1"}}, {"spec": {"a": words}}) == ("fail", "/spec/a/")
        assert verdict({"l": [{"a": "1"}]}, {"l": [{"a": words}]}) == ("fail", "/l/0/a/")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"team-a": "core"}, PASS),
        ({"team-a": "other"}, ("fail", "/metadata/labels/team-a/")),
        ({"x": "core"}, ("fail", "/metadata/labels/team-*/")),
        ({}, ("fail", "/metadata/labels/team-*/")),
        ({"team-a": "core", "team-b": "other"}, PASS),
        ({"team-a": "core", "number": 1}, ("fail", "/metadata/labels/team-*/")),
        (None, ("fail", "/metadata/labels/")),
    ],
)
def test_wildcards_in_label_keys(labels: Any, expected: tuple[str, str]) -> None:
    assert (
        verdict({"metadata": {"labels": {"team-*": "core"}}}, {"metadata": {"labels": labels}})
        == expected
    )


def test_wildcard_keys_keep_their_anchors_and_work_in_templates() -> None:
    pattern = {"spec": {"=(metadata)": {"=(annotations)": {"X(bad.io/*)": "null", "=(a?)": "1"}}}}
    under = lambda annotations: {"spec": {"metadata": {"annotations": annotations}}}  # noqa: E731 - a table of tests reads best so
    assert verdict(pattern, under({"good.io/x": "1"})) == PASS
    assert verdict(pattern, under({"bad.io/x": "1"})) == (
        "fail",
        "/spec/metadata/annotations/bad.io/x/",
    )
    assert verdict(pattern, under({"ab": "2"})) == ("fail", "/spec/metadata/annotations/ab/")


def test_wildcards_elsewhere_are_ordinary_keys() -> None:
    assert verdict({"spec": {"team-*": "core"}}, {"spec": {"team-a": "core"}}) != PASS
    assert verdict({"labels": {"a*": "1"}}, {"labels": {"ab": "1"}}) != PASS
    assert verdict({"metadata": {"x": {"a*": "1"}}}, {"metadata": {"x": {"ab": "1"}}}) != PASS


def test_references_repeat_the_text_of_another_place() -> None:
    pattern = {"a": "5", "m": {"b": ">$(./../../a)", "c": "$(./../b)"}}
    assert resolve_references(pattern)["m"]["b"] == ">5"
    assert verdict({"a": "5", "b": "<=$(./../a)"}, {"a": "5", "b": "6"}) == ("fail", "/b/")
    assert resolve_references({"(a)": "x", "b": "$(./../a)"})["b"] == "x"
    assert resolve_references({"b": r"\$(./../a)"}) == {"b": "$(./../a)"}
    assert resolve_references({"l": ["x", "$(./../0)"]}) == {"l": ["x", "x"]}
    plain = {"a": "b"}
    assert resolve_references(plain) is plain


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ({"b": "$(/a)"}, "got nil resolved variable"),
        ({"a": 1, "b": "$(./../a)"}, "NotResolvedReferenceErr"),
        ({"a": None, "b": "$(./../a)"}, "got nil resolved variable"),
        ({"b": "$(>)"}, "got nil resolved variable"),
        ({"b": "$(>=)"}, "expected path, found empty reference"),
        ({"b": "$(../../../../../x)"}, "got nil resolved variable"),
    ],
)
def test_references_that_lead_nowhere_are_refused(pattern: Any, words: str) -> None:
    with pytest.raises(EvaluationError, match=words.replace("(", r"\(")):
        compile_pattern(pattern)


def test_keys_are_split_into_anchor_and_name() -> None:
    assert parse_key("(a)") == (Anchor.CONDITION, "a")
    assert parse_key("<(a.b/c)") == (Anchor.GLOBAL, "a.b/c")
    assert parse_key("((a))") == (Anchor.CONDITION, "(a)")
    assert parse_key("Y(a)") == (Anchor.NONE, "Y(a)")
    assert parse_key("a") == (Anchor.NONE, "a")


def nested(levels: int, key: str = "a") -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {key: value}
    return value


def test_patterns_too_deep_are_refused_and_deep_objects_are_not() -> None:
    for levels in (101, 5_000):
        with pytest.raises(LimitError):
            compile_pattern(nested(levels))
    assert verdict(nested(99), nested(99)) == PASS
    assert verdict({"a": "x"}, nested(5_000)) == ("fail", "/a/")
    assert "levels deep" in message({"a": "x"}, nested(5_000))


def test_nested_conditions_are_checked_once_each() -> None:
    assert verdict(nested(90, "(a)"), nested(89)) == SKIP


def test_a_pattern_may_be_checked_again_and_again() -> None:
    compiled = compile_pattern({"l": [{"(n)": "x", "v": "1"}]})
    bad, good = {"l": [{"n": "x", "v": "2"}]}, {"l": [{"n": "x", "v": "1"}]}
    for _ in range(3):
        miss = compiled.check(bad)
        assert miss is not None
        assert miss.path == "/l/0/v/"
        assert compiled.check(good) is None


def test_a_text_may_hold_the_same_reference_twice() -> None:
    pattern = {"a": "5", "b": "5$(./../a) 6$(./../a)"}
    assert resolve_references(pattern)["b"] == "55 65"


_CONDITIONAL = [{"(image)": "!*/foo:*", "safe": "yes"}]
_EITHER_LIST = {"=(containers)": _CONDITIONAL, "=(initContainers)": _CONDITIONAL}
_LEFT_OUT = [{"image": "a/foo:1"}]


def test_a_list_that_is_left_out_does_not_hide_what_its_sibling_breaks() -> None:
    pod = {"containers": _LEFT_OUT, "initContainers": [{"image": "a/bar:1", "safe": "no"}]}
    miss = compile_pattern(_EITHER_LIST).check(pod)

    assert miss is not None
    assert (miss.kind, miss.path) == ("fail", "/initContainers/0/safe/")


def test_a_map_is_left_out_when_every_anchored_list_in_it_is() -> None:
    miss = compile_pattern(_EITHER_LIST).check({"containers": _LEFT_OUT, "initContainers": _LEFT_OUT})  # fmt: skip

    assert miss is not None
    assert miss.kind == "skip"


def test_a_list_that_is_left_out_beside_one_that_fits_lets_the_rest_be_tested() -> None:
    pattern = compile_pattern({**_EITHER_LIST, "hostNetwork": "false"})
    good = [{"image": "a/bar:1", "safe": "yes"}]

    assert pattern.check({"containers": _LEFT_OUT, "initContainers": good, "hostNetwork": "false"}) is None  # fmt: skip
    miss = pattern.check({"containers": _LEFT_OUT, "initContainers": good, "hostNetwork": "true"})
    assert miss is not None
    assert miss.path == "/hostNetwork/"


def test_a_global_anchor_below_an_anchored_key_leaves_out_the_whole_pattern() -> None:
    pattern = compile_pattern({"=(a)": {"<(x)": "1"}, "=(b)": "2"})
    miss = pattern.check({"a": {"x": "9"}, "b": "3"})

    assert miss is not None
    assert miss.kind == "skip"
