"""Strategic merge patches: maps, nulls, directives and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import EvaluationError, LimitError
from engine.mutate.handler import strategic_merge


def thing(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec}


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def patched_spec(patch: Any, obj: dict[str, Any]) -> Any:
    return strategic_merge({"spec": patch}, obj)["spec"]


def test_maps_are_merged_key_by_key() -> None:
    assert patched_spec({"m": {"b": 2}}, thing(m={"a": 1})) == {"m": {"a": 1, "b": 2}}


def test_an_object_that_does_not_change_comes_back_as_the_same_object() -> None:
    obj = pod(containers=[{"name": "a", "image": "i", "args": ["x"]}], priority=1)

    for patch in (
        {},
        {"spec": {"priority": 1}},
        {"spec": {"priority": 1.0}},
        {"spec": {"gone": None}},
        {"spec": {"containers": [{"name": "a", "args": ["x"]}]}},
        {"spec": {"containers": [{"(name)": "z", "image": "j"}]}},
        {"spec": {"+(priority)": 9}},
    ):
        assert strategic_merge(patch, obj) is obj


def test_true_and_one_and_their_texts_are_different_values() -> None:
    assert patched_spec({"a": True}, thing(a=1)) == {"a": True}
    assert patched_spec({"a": "1"}, thing(a=1)) == {"a": "1"}
    assert patched_spec({"l": [True]}, thing(l=[1])) == {"l": [True]}
    assert patched_spec({"a": False}, thing(a=0))["a"] is False


def test_what_the_patch_does_not_name_is_handed_on_uncopied() -> None:
    obj = thing(m={"a": 1}, n={"b": 2})

    merged = strategic_merge({"spec": {"m": {"a": 9}}}, obj)

    assert merged["spec"]["n"] is obj["spec"]["n"]
    assert obj == thing(m={"a": 1}, n={"b": 2})


def test_null_removes_a_key_even_one_that_holds_null() -> None:
    assert patched_spec({"a": None}, thing(a={"b": 1}, c=[1])) == {"c": [1]}
    assert patched_spec({"a": None}, thing(a=None)) == {}
    assert patched_spec({"c": None}, thing(a=1, c=[1])) == {"a": 1}


def test_nulls_of_the_object_that_the_patch_does_not_name_stay() -> None:
    assert patched_spec({"b": 1}, thing(a=None)) == {"a": None, "b": 1}


def test_nulls_inside_an_added_map_are_left_out_but_not_those_inside_a_replaced_list() -> None:
    assert patched_spec({"m": {"a": None, "b": {"c": None, "d": 1}}}, thing()) == {
        "m": {"b": {"d": 1}}
    }
    assert patched_spec({"l": [{"a": None, "b": 1}]}, thing(l=[])) == {"l": [{"a": None, "b": 1}]}


def test_an_empty_map_in_a_patch_does_nothing() -> None:
    assert patched_spec({"m": {}, "n": {"o": {}}}, thing(a=1)) == {"a": 1}


def test_an_empty_list_in_a_patch_empties_a_plain_list() -> None:
    assert patched_spec({"l": []}, thing(l=[1])) == {"l": []}


@pytest.mark.parametrize(
    ("old", "patch", "text"),
    [
        ({"a": 1}, [1], "expected MappingNode but got SequenceNode: node contents:\n[1]\n"),
        (
            [1],
            {"a": "ü"},
            'expected SequenceNode but got MappingNode: node contents:\n{"a": "ü"}\n',
        ),
        ([1], 5, "expected SequenceNode but got ScalarNode: node contents:\n5\n"),
        ("x", [True], "expected ScalarNode but got SequenceNode: node contents:\n[true]\n"),
    ],
)
def test_a_map_a_list_and_a_scalar_do_not_merge(old: Any, patch: Any, text: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        strategic_merge({"spec": {"v": patch}}, thing(v=old))

    assert caught.value.message == f"wrong node kind: {text}"


def test_a_list_of_maps_over_a_map_fails_already_while_anchors_are_resolved() -> None:
    with pytest.raises(
        EvaluationError, match=r"^failed to preProcess rule: wrong node kind: expected SequenceNode"
    ):
        strategic_merge({"spec": {"v": [{"a": 1}]}}, thing(v={"a": 1}))


def test_a_map_may_be_replaced_or_deleted_by_a_directive() -> None:
    obj = thing(m={"a": 1, "b": {"c": 1}})

    assert patched_spec({"m": {"$patch": "replace", "z": 1, "n": None}}, obj) == {"m": {"z": 1}}
    assert patched_spec({"m": {"$patch": "merge", "z": 1}}, obj) == {
        "m": {"a": 1, "b": {"c": 1}, "z": 1}
    }
    assert patched_spec({"m": {"$patch": "delete"}}, obj) == {}
    assert patched_spec({"x": {"$patch": "delete"}, "y": {"$patch": "replace", "a": 1}}, obj) == {
        **obj["spec"],
        "y": {"a": 1},
    }


def test_replacing_a_map_by_itself_is_no_change() -> None:
    obj = thing(m={"a": 1})

    assert strategic_merge({"spec": {"m": {"$patch": "replace", "a": 1}}}, obj) is obj


def test_an_unknown_directive_is_an_error() -> None:
    for patch in ({"m": {"$patch": "drop"}}, {"new": {"$patch": "drop"}}):
        with pytest.raises(EvaluationError, match="unknown patch strategy 'drop'"):
            strategic_merge({"spec": patch}, thing(m={"a": 1}))


def test_a_patch_may_not_remove_the_whole_object() -> None:
    with pytest.raises(EvaluationError):
        strategic_merge({"$patch": "delete"}, thing())


def test_the_other_directives_are_keys_like_others() -> None:
    assert patched_spec({"m": {"$retainKeys": ["a"], "a": 1}}, thing(m={"b": 1})) == {
        "m": {"$retainKeys": ["a"], "a": 1, "b": 1}
    }


def test_an_unmet_condition_anywhere_in_maps_stops_the_whole_patch() -> None:
    obj = thing(a="1", m={"p": "x"})

    for patch in (
        {"(a)": "2", "b": 1},
        {"(zz)": "*", "b": 1},
        {"m": {"(p)": "y"}, "b": 1},
        {"m": {"n": {"(q)": "y"}}, "b": 1},
        {"<(a)": "2", "b": 1},
        {"<(zz)": "*", "b": 1},
        {"(m)": {"p": "y"}, "b": 1},
    ):
        assert strategic_merge({"spec": patch}, obj) is obj


def test_a_met_condition_is_not_part_of_the_patch() -> None:
    obj = thing(a="1", m={"p": "x"})

    assert patched_spec({"(a)": "1|2", "m": {"<(p)": "?"}, "b": 1}, obj) == {**obj["spec"], "b": 1}


def test_every_condition_of_a_map_has_to_be_met() -> None:
    obj = thing(a="1", b="2")

    assert strategic_merge({"spec": {"(a)": "1", "(b)": "3", "c": 1}}, obj) is obj
    assert strategic_merge({"spec": {"(a)": "3", "(b)": "2", "c": 1}}, obj) is obj
    assert patched_spec({"(a)": "1", "(b)": "2", "c": 1}, obj)["c"] == 1


def test_a_condition_at_the_top_of_the_patch_asks_for_a_field_of_the_object() -> None:
    obj = thing(a="1")

    assert strategic_merge({"(kind)": "Other", "spec": {"b": 1}}, obj) is obj
    assert strategic_merge({"(kind)": "Thing", "spec": {"b": 1}}, obj) == thing(a="1", b=1)


def test_an_addition_fills_only_a_gap() -> None:
    assert patched_spec({"+(a)": 9, "+(b)": {"c": 1}}, thing(a=None)) == {"a": None, "b": {"c": 1}}


def test_a_condition_inside_an_addition_is_tested_against_nothing() -> None:
    obj = thing()

    assert strategic_merge({"spec": {"+(m)": {"(a)": "*", "b": 1}}}, obj) is obj


def test_a_condition_on_a_map_of_additions_asks_only_for_the_map() -> None:
    assert patched_spec({"(m)": {"+(a)": 1}, "b": 1}, thing(m={}))["b"] == 1


def test_anchors_without_meaning_here_stay_as_literal_keys() -> None:
    patch = {"=(a)": 1, "X(b)": 1, "^(c)": [1]}

    assert patched_spec(patch, thing()) == patch


def test_a_condition_selects_the_elements_of_a_list_by_name() -> None:
    obj = pod(containers=[{"name": "a", "image": "x"}, {"name": "b", "image": "y"}])

    merged = patched_spec({"containers": [{"(image)": "y", "tty": True}]}, obj)

    assert merged["containers"] == [
        {"name": "b", "image": "y", "tty": True},
        {"name": "a", "image": "x"},
    ]


def test_what_is_selected_in_one_element_does_not_reach_the_next() -> None:
    obj = pod(
        containers=[
            {"name": "a", "env": [{"name": "A", "value": "1"}]},
            {"name": "b", "env": [{"name": "B", "value": "1"}]},
            {"name": "c"},
        ]
    )

    merged = patched_spec(
        {"containers": [{"(name)": "*", "env": [{"(name)": "A", "value": "2"}]}]}, obj
    )

    assert merged["containers"] == [
        {"name": "a", "env": [{"name": "A", "value": "2"}]},
        {"name": "b", "env": [{"name": "B", "value": "1"}]},
        {"name": "c"},
    ]


def test_one_list_element_that_meets_a_global_condition_is_enough() -> None:
    patch = {"spec": {"containers": [{"<(image)": "good/*"}], "x": 1}}
    good, bad = {"name": "a", "image": "good/a"}, {"name": "b", "image": "bad/b"}

    for containers, applies in (([bad, good], True), ([good, bad], True), ([bad, bad], False)):
        obj = pod(containers=containers)
        assert (strategic_merge(patch, obj) is not obj) is applies


def test_a_global_condition_on_an_empty_or_absent_list_is_not_met() -> None:
    for obj in (pod(), pod(containers=[])):
        assert strategic_merge({"spec": {"containers": [{"<(image)": "x"}], "y": 1}}, obj) is obj


def test_a_patch_or_step_too_many_is_refused() -> None:
    deep: Any = 1
    for _ in range(250):
        deep = {"a": deep}
    many = pod(containers=[{"name": str(n), "image": "i"} for n in range(700)])

    with pytest.raises(LimitError):
        strategic_merge(deep, thing())
    with pytest.raises(LimitError):
        strategic_merge({"spec": {"containers": [{"(name)": "*"}] * 700}}, many)
