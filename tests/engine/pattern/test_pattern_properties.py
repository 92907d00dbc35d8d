"""No input makes patterns or conditions raise anything but the engine's own errors."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import EngineError
from engine.lang.operators import OPERATORS, compile_condition
from engine.lang.pattern import compile_pattern

WORDS = st.sampled_from(
    ["", "a", "a*", "?*", "*", "1", "-1", "1h", "5m", "1Gi", "1e9999999", "1-10", "a-b", "1!-10", "!a", ">1", "<=1Gi",
     "a|b", "1&2", "$(./../a)", "$(", "true", "null", '["a"]', "[1]", "{", "٣", "\ud800", "1.2.3", "inf", "NaN"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=5)
)
KEYS = st.sampled_from(
    ["a", "b", "(a)", "<(a)", "=(a)", "X(a)", "^(a)", "+(a)", "metadata", "labels", "=(a*)"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(pattern=VALUES, resource=VALUES)
def test_any_pattern_meets_any_object(pattern: Any, resource: Any) -> None:
    with suppress(EngineError):
        miss = compile_pattern(pattern).check(resource)
        if miss is not None:
            assert miss.kind in ("fail", "skip", "error")
            assert isinstance(miss.message, str)


@settings(max_examples=300, deadline=None)
@given(key=VALUES, value=VALUES, operator=st.sampled_from(sorted(OPERATORS)))
def test_any_key_meets_any_value(key: Any, value: Any, operator: str) -> None:
    with suppress(EngineError):
        assert isinstance(compile_condition(operator, value)(key), bool)
