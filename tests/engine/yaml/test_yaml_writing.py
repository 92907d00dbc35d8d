"""YAML as it is written, in both dialects: Go's to the byte, and the one that every reader takes the same way."""

from __future__ import annotations

import pytest
import yaml as pyyaml
from hypothesis import given
from hypothesis import strategies as st

from engine.lang import yaml
from engine.lang.yaml.write import GO, SAFE, write, write_all

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _texts
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(_texts, _values, min_size=1, max_size=4))
def test_what_is_written_reads_back_as_itself(value):
    assert yaml.load(write(value, GO, sort=True)) == value


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
    assert write(value, GO, sort=True) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain words", "plain words"),
        ("a: b", "'a: b'"),
        ("it's a: b", "'it''s a: b'"),
        ("ends with:", "'ends with:'"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("`tick`", "'`tick`'"),
        ("- dash", "'- dash'"),
        ("-dash", "-dash"),
        ("", '""'),
        ("true", '"true"'),
        ("yes", '"yes"'),
        ("null", '"null"'),
        ("~", '"~"'),
        ("1", '"1"'),
        ("1.5", '"1.5"'),
        ("1:30", '"1:30"'),
        ("2026-11-21", '"2026-11-21"'),
        (" leading", "' leading'"),
        ("trailing ", "'trailing '"),
        ("a\tb", '"a\\tb"'),
        ("nul\0", '"nul\\0"'),
        ("umläut ✓", "umläut ✓"),
        ('"quoted"', "'\"quoted\"'"),
        ("{{ x }}", "'{{ x }}'"),
        ("[a]", "'[a]'"),
        ("*star", "'*star'"),
        ("---", "'---'"),
        ("a\nb", "|-\n    a\n    b"),
        ("a\nb\n", "|\n    a\n    b"),
        ("a\n\nb", "|-\n    a\n\n    b"),
        ("a \nb", '"a \\nb"'),
    ],
)
def test_scalars_are_written_as_go_writes_them(text: str, written: str) -> None:
    assert GO.text(text, 4) == written


@pytest.mark.parametrize("text", ["a: b", "x\ny: z\n", "it's", "1", "yes", "\ta", "# no", "a\n b", " a\nb", "a\n\n", "!x", "%x", "? a", ": b", "é\u2028x"])  # fmt: skip
def test_what_is_written_reads_back(text: str) -> None:
    document = f"p:\n  r: {GO.text(text, 4)}\n"

    assert yaml.load(document)["p"]["r"] == text
    assert pyyaml.safe_load(document)["p"]["r"] == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("190:20:30.15", '"190:20:30.15"'),
        ("190:20:30", '"190:20:30"'),
        ("1:99", "1:99"),
        ("=x", "=x"),
        ("~x", "~x"),
        ("<x", "<x"),
        ("<<", "<<"),
        ("a\tb", '"a\\tb"'),
        ("\U0001f600", '"\\U0001F600"'),
        ("é", "é"),
        ("2001-01-01", '"2001-01-01"'),
        ("2001-02-30", "2001-02-30"),
        ("2001-01-01 10:20:30.5", '"2001-01-01 10:20:30.5"'),
        ("2001-01-01T10:20:30", "2001-01-01T10:20:30"),
        ("2001-01-01T10:20:30Z", '"2001-01-01T10:20:30Z"'),
        ("2001-01-01true", "2001-01-01true"),
        ("a\n\n\n", "|+\n    a\n\n"),
    ],
)
def test_doubtful_texts_are_written_as_go_writes_them(text: str, written: str) -> None:
    assert GO.text(text, 4) == written


@given(st.dictionaries(_texts, _values, min_size=1, max_size=4))
def test_the_safe_dialect_reads_back_as_itself(value):
    assert yaml.load(write(value)) == value


@pytest.mark.parametrize(
    "text", ["1e3", "0o17", "y", "off", "12:30", "190:20:30.15", "1_000", "=", "<<", "~", "2001-01-01", "0x1F", ".5", "null", ""]
)  # fmt: skip
def test_the_safe_dialect_quotes_what_readers_take_differently(text: str) -> None:
    assert SAFE.text(text, 0) == f'"{text}"'


def test_documents_are_separated_and_keys_are_sorted_where_asked() -> None:
    assert (
        write_all([{"b": 1, "a": [1.5, None]}, {}], sort=True)
        == "a:\n- 1.5\n- null\nb: 1\n---\n{}\n"
    )
    assert write({"b": 1, "a": True}) == "b: 1\na: true\n"


@pytest.mark.parametrize("dialect", [GO, SAFE])
def test_a_key_is_always_on_one_line(dialect) -> None:
    written = write({"a\nb": "c"}, dialect)

    assert len(written.splitlines()) == 1
    assert yaml.load(written) == {"a\nb": "c"}


def test_a_key_that_means_merging_is_quoted() -> None:
    assert write({"<<": "a"}, GO) == '"<<": a\n'
    assert yaml.load(write({"<<": "a"})) == {"<<": "a"}
