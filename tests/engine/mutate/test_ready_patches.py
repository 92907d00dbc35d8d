"""Patches that were made ready do what the general way does, error for error."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.mutate.handler import apply_json6902, apply_strategic
from engine.mutate.ready import ready_json6902, ready_strategic

KEYS = st.sampled_from(["a", "b", "spec", "+(a)", "+(b)", "+(c)", "=(a)", "(a)", "<(b)", "X(c)", "$patch"])  # fmt: skip
PLAIN_KEYS = st.sampled_from(["a", "b", "c", "spec", "X(c)"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["", "x", "delete"])
)


def maps(keys: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    inner = st.recursive(
        SCALARS,
        lambda below: st.one_of(
            st.lists(below, max_size=3), st.dictionaries(keys, below, max_size=4)
        ),
        max_leaves=12,
    )
    return st.dictionaries(keys, inner, max_size=4)


def outcome(apply: Any, *given_: Any) -> Any:
    """Return what comes of it, with the order of keys, or the text of the error."""
    try:
        return repr(apply(*given_))
    except EngineError as error:
        return error.message


@settings(max_examples=400, deadline=None)
@given(maps(KEYS), maps(PLAIN_KEYS))
def test_a_ready_merge_is_the_general_merge(patch: dict[str, Any], obj: dict[str, Any]) -> None:
    before = repr(patch)

    assert outcome(ready_strategic(patch), obj) == outcome(apply_strategic, patch, obj)
    assert repr(patch) == before


def test_what_changes_nothing_gives_back_the_very_object() -> None:
    obj = {"metadata": {"labels": {"a": None}}, "spec": {"x": 1}}

    merge = ready_strategic({"metadata": {"labels": {"+(a)": "1"}}, "spec": {"x": 1, "y": {}}})

    assert merge(obj) is obj


def test_a_patch_is_read_once_and_applied_to_each_object() -> None:
    apply = ready_json6902('- {op: add, path: /a, value: {b: 1}}\n- {op: remove, path: "/c"}')

    first, second = apply({"c": 1}), apply({"c": 2, "d": 3})

    assert first == {"a": {"b": 1}}
    assert second == {"a": {"b": 1}, "d": 3}


def test_a_text_that_is_no_patch_says_so_each_time() -> None:
    apply = ready_json6902("op: add")

    texts = {outcome(apply, {}), outcome(apply, {}), outcome(apply_json6902, "op: add", {})}

    assert len(texts) == 1
