from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.lang import yaml
from kubectl_kpolicy.applying.yamltext import dump

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _texts
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_texts, _values, min_size=1, max_size=4))
def test_what_is_written_reads_back_as_itself(value):
    assert yaml.load(dump(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": 2}, "a: 2\nb: 1\n"),
        ({"a": ["x", {"b": 1, "c": []}]}, "a:\n- x\n- b: 1\n  c: []\n"),
        ({"a": "1"}, 'a: "1"\n'),
        ({"a": "yes"}, 'a: "yes"\n'),
        ({"a": "*"}, "a: '*'\n"),
        ({"a": "x: y"}, "a: 'x: y'\n"),
        ({"a": "one\ntwo\n"}, "a: |\n  one\n  two\n"),
        ({"a": "one\ntwo"}, "a: |-\n  one\n  two\n"),
        ({"a": ""}, 'a: ""\n'),
        ({"a": None, "b": True}, "a: null\nb: true\n"),
        ({"a": "nginx:1.25"}, "a: nginx:1.25\n"),
    ],
)
def test_yaml_is_written_as_go_writes_it(value, text):
    assert dump(value) == text
