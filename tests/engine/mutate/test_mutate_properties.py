"""What holds for every patch and every object."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.mutate.handler import strategic_merge
from engine.mutate.json6902 import apply_patch
from engine.mutate.operations import diff, parse_patch, read_operations
from engine.mutate.values import same, thawed

KEYS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "spec",
        "containers",
        "name",
        "env",
        "ports",
        "containerPort",
        "protocol",
        "a/b",
        "~0",
        "metadata",
        "finalizers",
        "$patch",
        "(a)",
        "(name)",
        "<(b)",
        "+(a)",
        "+(name)",
        "=(a)",
    ]
)
PLAIN_KEYS = st.sampled_from(
    ["a", "b", "spec", "containers", "name", "env", "metadata", "a/b", "~"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "*", "x", "!x", "delete", "replace", "1-2", "$(./a)", "(a)", "-"]),
    st.text(max_size=5),
)


def values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)
        ),
        max_leaves=25,
    )


def objects(keys: st.SearchStrategy[str] = KEYS) -> st.SearchStrategy[dict[str, Any]]:
    kind = st.fixed_dictionaries({"apiVersion": st.just("v1"), "kind": st.just("Pod")})
    containers = st.lists(
        st.dictionaries(keys, values(keys), max_size=3).flatmap(
            lambda more: st.sampled_from(["a", "b", "c"]).map(lambda name: {**more, "name": name})
        ),
        max_size=3,
    )
    spec = containers.map(lambda found: {"spec": {"containers": found}})
    return st.tuples(kind, spec, st.dictionaries(keys, values(keys), max_size=3)).map(
        lambda parts: {**parts[1], **parts[2], **parts[0]}
    )


PATHS = st.lists(
    st.sampled_from(["a", "spec", "containers", "0", "1", "-1", "-", "-7", "12", "x~1y", ""]),
    max_size=4,
).map(lambda parts: "".join(f"/{part}" for part in parts))
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]),
            "path": PATHS,
            "from": PATHS,
            "value": values(PLAIN_KEYS),
        }
    ),
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(values(KEYS), objects())
def test_merging_changes_no_input_and_raises_only_our_errors(patch: Any, obj: Any) -> None:
    texts = repr(patch), repr(obj)

    try:
        merged = strategic_merge(patch, obj)
    except EngineError:
        merged = obj

    assert (repr(patch), repr(obj)) == texts
    assert isinstance(merged, dict)


@settings(max_examples=150, deadline=None)
@given(objects(PLAIN_KEYS), objects(PLAIN_KEYS))
def test_a_plain_patch_merged_again_changes_nothing(patch: Any, obj: Any) -> None:
    try:
        once = strategic_merge(patch, obj)
        twice = strategic_merge(patch, once)
    except EngineError:
        return

    assert same(once, twice) or repr(once) == repr(twice)


@settings(max_examples=100, deadline=None)
@given(objects())
def test_nothing_is_merged_from_an_empty_patch(obj: Any) -> None:
    assert strategic_merge({}, obj) is obj


@settings(max_examples=200, deadline=None)
@given(OPERATIONS, objects(PLAIN_KEYS))
def test_patching_changes_no_input_and_raises_only_our_errors(operations: Any, obj: Any) -> None:
    texts = repr(operations), repr(obj)

    with contextlib.suppress(EngineError):
        apply_patch(read_operations(operations), obj)

    assert (repr(operations), repr(obj)) == texts


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_a_patch_or_one_of_our_errors(text: str) -> None:
    with contextlib.suppress(EngineError):
        parse_patch(text)


FINITE = values(PLAIN_KEYS).filter(lambda value: "nan" not in repr(value))


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(PLAIN_KEYS, FINITE), st.dictionaries(PLAIN_KEYS, FINITE))
def test_the_difference_applied_gives_the_other_object(before: Any, after: Any) -> None:
    assert same(apply_patch(read_operations(diff(before, after)), before), after)


@settings(max_examples=100, deadline=None)
@given(FINITE)
def test_a_copy_is_the_same_value(value: Any) -> None:
    assert same(thawed(value), value)
    assert diff(value, thawed(value)) == []
