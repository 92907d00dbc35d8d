"""JSON patches made from before and after."""

from __future__ import annotations

from typing import Any

import pytest

from engine.mutate.operations import diff


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("replace", "/a", True)]),
        ({"a": 1}, {"a": None}, [("replace", "/a", None)]),
        ({}, {"a": {"b": 1}}, [("add", "/a", {"b": 1})]),
        ({"a": 1, "b": 2}, {"b": 2}, [("remove", "/a")]),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, [("replace", "/a/b", 2)]),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": 2}}, [("replace", "/a~1b/c~0d", 2)]),
        ({"l": [1, 2]}, {"l": [0, 1, 2]}, [("add", "/l/0", 0)]),
        ({"l": [1, 2]}, {"l": [1, 2, 3]}, [("add", "/l/2", 3)]),
        ({"l": [1, 2, 3]}, {"l": [1]}, [("remove", "/l/2"), ("remove", "/l/1")]),
        ({"l": [1, 2, 3]}, {"l": [3]}, [("remove", "/l/1"), ("remove", "/l/0")]),
        ({"l": [{"a": 1}, 2]}, {"l": [{"a": 3}, 2]}, [("replace", "/l/0/a", 3)]),
        ({"l": [1]}, {"l": {"a": 1}}, [("replace", "/l", {"a": 1})]),
        ({"": 1}, {"": 2}, [("replace", "/", 2)]),
    ],
)
def test_operations_name_just_what_changes(before: Any, after: Any, operations: Any) -> None:
    found = [tuple(operation.values()) for operation in diff(before, after)]

    assert found == operations


def test_the_same_object_is_not_looked_at() -> None:
    before: dict[str, Any] = {}
    before["self"] = before

    assert diff(before, before) == []
    assert diff({"a": before}, {"a": before, "b": 1}) == [{"op": "add", "path": "/b", "value": 1}]


def test_what_differs_too_deep_is_replaced_as_a_whole() -> None:
    def deep(value: Any) -> Any:
        for _ in range(5000):
            value = {"a": value}
        return value

    assert diff(deep(1), deep(1)) == []
    (operation,) = diff(deep(1), deep(2))
    assert operation["op"] == "replace"
    assert operation["path"].count("/") < 200
