"""JSON patches (RFC 6902) with the liberties that Kyverno takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.errors import EvaluationError, LimitError
from engine.mutate.json6902 import apply_patch
from engine.mutate.operations import parse_patch, read_operations


def patched(obj: dict[str, Any], *operations: dict[str, Any]) -> dict[str, Any]:
    return apply_patch(read_operations(list(operations)), obj)


def fault(obj: dict[str, Any], *operations: dict[str, Any]) -> str:
    with pytest.raises(EvaluationError) as caught:
        patched(obj, *operations)
    return caught.value.message


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    return {"op": "remove", "path": path}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def check(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def shift(kind: str, source: str, path: str) -> dict[str, Any]:
    return {"op": kind, "from": source, "path": path}


def test_a_patch_is_read_from_yaml_and_from_json() -> None:
    for text in ("- op: add\n  path: /a\n  value: yes", '[{"op":"add","path":"/a","value":true}]'):
        assert apply_patch(parse_patch(text), {}) == {"a": True}


def test_an_empty_text_is_an_empty_patch() -> None:
    obj = {"a": 1}

    assert apply_patch(parse_patch(""), obj) is obj


@pytest.mark.parametrize("text", ["{a", "a: b", "- 1", "'x'", "- [op, add]", "5"])
def test_text_that_is_no_list_of_operations_is_refused(text: str) -> None:
    with pytest.raises(EvaluationError):
        parse_patch(text)


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"op": "bogus", "path": "/a"}, "unsupported operation"),
        ({"path": "/a"}, "unsupported operation"),
        ({"op": ["add"], "path": "/a"}, "unsupported operation"),
        ({"op": "add", "path": "/a"}, "failed to decode 'value'"),
        ({"op": "replace", "path": "/a"}, "failed to decode 'value'"),
        ({"op": "move", "path": "/a"}, "failed to decode 'from'"),
        ({"op": "copy", "path": "/a", "from": 1}, "failed to decode 'from'"),
        ({"op": "remove"}, "failed to decode 'path'"),
        ({"op": "test", "path": None}, "failed to decode 'path'"),
    ],
)
def test_an_operation_that_lacks_something_is_refused(operation: Any, reason: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        read_operations([operation])

    text = json.dumps(operation, sort_keys=True, separators=(",", ":"))
    assert caught.value.message.startswith(f"invalid operation {text}: {reason}")


def test_null_is_a_value() -> None:
    assert patched({"a": 1}, replace("/a", None), add("/b", None)) == {"a": None, "b": None}


def test_neither_object_nor_patch_is_changed() -> None:
    obj = {"a": {"l": [1]}, "b": {}}
    operations = read_operations([add("/v", {"w": []}), add("/v/w/-", 1), add("/a/l/-", 2)])

    for _ in range(2):
        assert apply_patch(operations, obj) == {"a": {"l": [1, 2]}, "b": {}, "v": {"w": [1]}}
    assert obj == {"a": {"l": [1]}, "b": {}}
    assert apply_patch(operations, obj)["b"] is obj["b"]


def test_a_copy_does_not_change_with_its_source() -> None:
    result = patched({"a": {"l": [1]}}, shift("copy", "/a", "/b"), add("/b/l/-", 2))

    assert result == {"a": {"l": [1]}, "b": {"l": [1, 2]}}


def test_operations_without_effect_give_back_the_same_object() -> None:
    obj = {"a": 1, "l": [1, 2]}

    for operation in (
        replace("/a", 1),
        add("/a", 1.0),
        remove("/x"),
        remove("/x/y/z"),
        remove("/l/7"),
        remove("/l/-3"),
        check("/a", 1),
        shift("move", "/a", "/a"),
    ):
        assert patched(obj, operation) is obj


@pytest.mark.parametrize(
    ("key", "result"),
    [
        ("0", [9, 1, 2]),
        ("1", [1, 9, 2]),
        ("2", [1, 2, 9]),
        ("-", [1, 2, 9]),
        ("-1", [1, 2, 9]),
        ("-2", [1, 9, 2]),
        ("-3", [9, 1, 2]),
    ],
)
def test_add_inserts_before_an_index_counted_from_either_end(key: str, result: list[int]) -> None:
    assert patched({"l": [1, 2]}, add(f"/l/{key}", 9)) == {"l": result}


@pytest.mark.parametrize("key", ["3", "-4"])
def test_add_outside_an_existing_list_is_an_error(key: str) -> None:
    assert fault({"l": [1, 2]}, add(f"/l/{key}", 9)) == (
        f"error in add for path: '/l/{key}': Unable to access invalid index: {key}: invalid index referenced"
    )


def test_a_word_is_no_index() -> None:
    assert fault({"l": [1]}, add("/l/x", 9)) == (
        "error in add for path: '/l/x': value was not a proper array index: 'x': "
        'strconv.Atoi: parsing "x": invalid syntax'
    )
    assert fault({"l": [1]}, remove("/l/x")).startswith("error in remove for path: '/l/x': strconv")
    assert fault({"l": [1]}, add("/l/x/y", 9)).startswith("value was not a proper array index")
    assert fault({"l": [1]}, add("/l/-/y", 9)) == (
        'add operation does not apply: doc is missing path: "/l/-/y": missing value'
    )


def test_indexes_from_the_end_reach_existing_elements() -> None:
    obj = {"l": [{"v": 1}, {"v": 2}, {"v": 3}]}

    assert patched(obj, remove("/l/-1"))["l"] == [{"v": 1}, {"v": 2}]
    assert patched(obj, remove("/l/-3"))["l"] == [{"v": 2}, {"v": 3}]
    assert patched(obj, replace("/l/-2", 0))["l"] == [{"v": 1}, 0, {"v": 3}]
    assert patched(obj, replace("/l/-2/v", 0))["l"] == [{"v": 1}, {"v": 0}, {"v": 3}]


def test_missing_parents_are_made_as_the_path_asks() -> None:
    assert patched({}, add("/a/b/c", 1)) == {"a": {"b": {"c": 1}}}
    assert patched({}, add("/a/-", 1)) == {"a": [1]}
    assert patched({}, add("/a/-1", 1)) == {"a": [1]}
    assert patched({}, add("/a/0/b", 1)) == {"a": [{"b": 1}]}
    assert patched({}, add("/a/2", 1)) == {"a": [None, None, 1]}
    assert patched({"a": None}, add("/a/b", 1)) == {"a": {"b": 1}}
    assert patched({"l": [0]}, add("/l/3/b", 1)) == {"l": [0, None, None, {"b": 1}]}
    assert patched({"l": [None]}, add("/l/0/b", 1)) == {"l": [{"b": 1}]}
    assert patched({}, add("/a~1b/c~0d", 1)) == {"a/b": {"c~d": 1}}


def test_no_parent_is_made_below_a_scalar() -> None:
    assert fault({"a": "x"}, add("/a/b", 1)) == "invalid state detected"


def test_a_replaced_path_must_be_there() -> None:
    assert fault({"a": {}}, replace("/a/b", 1)) == (
        "replace operation does not apply: doc is missing key: /a/b: missing value"
    )
    assert fault({}, replace("/a/b", 1)) == (
        "replace operation does not apply: doc is missing path: /a/b: missing value"
    )
    assert fault({"l": [1]}, replace("/l/1", 1)).startswith("replace operation does not apply")


def test_move_takes_before_it_puts() -> None:
    assert patched({"l": [1, 2, 3]}, shift("move", "/l/0", "/l/2")) == {"l": [2, 3, 1]}
    assert fault({"a": {"b": 1}}, shift("move", "/a", "/a/c")).startswith(
        "move operation does not apply: doc is missing destination path: /a/c"
    )
    assert "move entire document" in fault({"a": 1}, shift("move", "", "/b"))


def test_move_and_copy_make_no_parents() -> None:
    assert fault({"a": 1}, shift("copy", "/a", "/x/y")).endswith(
        "doc is missing destination path: /x/y: missing value"
    )
    assert fault({"a": 1}, shift("move", "/a", "/x/y")).endswith(
        "doc is missing destination path: /x/y: missing value"
    )


def test_test_compares_as_json_does() -> None:
    obj = {"a": 1, "t": True, "n": None, "m": {"x": [1, 2]}}

    for path, value in (("/a", 1.0), ("/m", {"x": [1, 2]}), ("/n", None), ("/zz", None), ("", obj)):
        assert patched(obj, check(path, value)) is obj
    for path, value in (("/a", "1"), ("/a", True), ("/t", 1), ("/m", {"x": [2, 1]}), ("/a", None)):
        assert fault(obj, check(path, value)) == f"testing value {path} failed: test failed"
    assert fault(obj, check("/x/y", 1)) == (
        "test operation does not apply: is missing path: /x/y: missing value"
    )


def test_a_failing_operation_lets_none_of_them_count() -> None:
    obj = {"a": 1}

    fault(obj, add("/b", 1), check("/a", 2))

    assert obj == {"a": 1}


def test_the_whole_object_may_be_replaced_by_another_object_only() -> None:
    assert patched({"a": 1}, replace("", {"b": 1}), add("/c", 1)) == {"b": 1, "c": 1}
    assert patched({"a": 1}, add("", {"b": 1})) == {"b": 1}
    assert "not an object" in fault({"a": 1}, replace("", "text"), add("/c", 1))


def test_costs_are_bounded() -> None:
    bomb = [shift("copy", "/a", f"/a/{n}") for n in range(40)]
    far = add("/l/99999999", 1)

    for operations in (bomb, [far], [add("/a" * 500, 1)], [add("/l/99999999/x", 1)]):
        with pytest.raises(LimitError):
            patched({"a": {"x": 1}}, *operations)
    with pytest.raises(LimitError):
        patched({"l": []}, add("/l/99999999/x", 1))


def test_a_copied_value_may_not_be_nested_too_deep() -> None:
    deep: Any = 1
    for _ in range(120):
        deep = [deep]

    with pytest.raises(LimitError):
        patched({"a": {"b": deep}}, shift("copy", "/a", "/c"))
    with pytest.raises(LimitError):
        read_operations([add("/c", deep)])
