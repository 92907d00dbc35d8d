"""What a mutate rule answers, and the order in which a `foreach` works."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from engine.errors import EvaluationError, LimitError
from engine.model import Status
from engine.mutate.handler import apply_json6902, apply_strategic, is_descending, mutated_message
from engine.mutate.operations import parse_patch
from tests.engine.evaluate.builders import decide, policy

OBJ: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "o", "namespace": "ns"},
    "a": 1,
}


def mutated(obj: dict[str, Any], **mutate: Any) -> tuple[Status, str, dict[str, Any]]:
    """Return the answer of a mutate rule and the object afterwards."""
    match = {"any": [{"resources": {"kinds": ["Thing"]}}]}
    evaluation = decide(policy({"name": "r", "match": match, "mutate": mutate}), obj)
    (result,) = evaluation.results
    return result.status, result.message, evaluation.patched


def test_a_change_passes_and_names_the_object() -> None:
    status, message, patched = mutated(OBJ, patchStrategicMerge={"a": 2})

    assert (status, message) == (Status.PASS, "mutated Thing/o in namespace ns")
    assert patched == {**OBJ, "a": 2}


@pytest.mark.parametrize(
    "block",
    [{"patchStrategicMerge": {"a": 1}}, {"patchesJson6902": "- {op: test, path: /a, value: 1}"}],
)
def test_no_change_is_a_skip_with_the_same_object(block: Any) -> None:
    assert mutated(OBJ, **block) == (Status.SKIP, "no patches applied", OBJ)


def test_a_patch_that_fails_is_an_error_with_the_same_object() -> None:
    status, message, patched = mutated(OBJ, patchesJson6902="[{op: replace, path: /x, value: 1}]")

    assert status is Status.ERROR
    assert message == (
        "failed to patch resource: replace operation does not apply: doc is missing key: /x: missing value"
    )
    assert patched == OBJ


def test_the_strategic_patch_counts_where_both_are_present() -> None:
    json_patch = "- {op: add, path: /b, value: 1}"
    _, _, patched = mutated(OBJ, patchStrategicMerge={"a": 2}, patchesJson6902=json_patch)

    assert patched == {**OBJ, "a": 2}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({"kind": "Namespace", "metadata": {"name": "n"}}, "mutated Namespace/n"),
        ({"kind": "Pod", "metadata": {"generateName": "g-"}}, "mutated Pod/g-"),
        ({"kind": "Pod"}, "mutated Pod/"),
        ({"kind": 1, "metadata": [1]}, "mutated /"),
    ],
)
def test_the_message_names_what_it_knows(obj: Any, text: str) -> None:
    assert mutated_message(obj) == text


def test_a_json_patch_is_taken_as_text_operations_or_decoded_list() -> None:
    text = "- {op: add, path: /b, value: 1}"
    decoded = [{"op": "add", "path": "/b", "value": 1}]

    for patch in (text, parse_patch(text), decoded):
        assert apply_json6902(patch, OBJ) == {**OBJ, "b": 1}


def test_errors_say_that_patching_failed_and_keep_their_kind() -> None:
    with pytest.raises(EvaluationError, match=r"^failed to patch resource: wrong node kind"):
        apply_strategic({"a": {"b": 1}}, OBJ)
    with pytest.raises(EvaluationError, match=r"^failed to patch resource: invalid operation"):
        apply_json6902([{"op": "x"}], OBJ)
    with pytest.raises(LimitError, match=r"^failed to patch resource: "):
        apply_json6902([{"op": "add", "path": "/l/99999999", "value": 1}], OBJ)


@pytest.mark.parametrize(
    ("entry", "descending"),
    [
        ({"patchStrategicMerge": {}}, True),
        ({"patchesJson6902": ""}, False),
        ({"foreach": []}, False),
        ({"patchStrategicMerge": {}, "order": "Ascending"}, False),
        ({"patchesJson6902": "", "order": "Descending"}, True),
    ],
)
def test_strategic_merges_work_from_the_end_unless_told_otherwise(
    entry: Any, descending: bool
) -> None:
    assert is_descending(entry) is descending


def test_an_element_whose_name_is_a_map_is_left_as_it_is() -> None:
    name = {"kind": "odd", "empty": {"inner": {}}}
    obj = {"kind": "List", "spec": {"containers": [{"name": name, "image": "a:latest"}]}}
    before = json.dumps(obj)
    with suppress(EvaluationError):
        apply_strategic({"spec": {"containers": [{"(image)": "*:latest", "image": "b"}]}}, obj)

    assert json.dumps(obj) == before


def test_a_list_with_anchors_among_elements_of_a_list_is_refused_in_our_words() -> None:
    with pytest.raises(EvaluationError, match="expected MappingNode"):
        apply_strategic({"a": [{"b": 1}, ["x", {"(k)": 1}]]}, {"a": [{"b": 1}]})
