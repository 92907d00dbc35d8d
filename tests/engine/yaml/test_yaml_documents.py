"""Documents of a text: which there are, where they stand, what bounds them, and that one error type leaves."""

from __future__ import annotations

import json as stdlib_json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import DocumentError
from engine.lang import json
from engine.lang.work import Limits
from engine.lang.yaml import compose, load, load_all

POLICY = """\
# a comment first
---
# nothing here
---
apiVersion: v1
kind: Pod
metadata:
  name: one
---
null
---
kind: List
items:
- a
-
  b: {c: 1}
"""


def test_empty_documents_are_left_out_and_lines_are_those_of_the_first_value() -> None:
    documents = load_all(POLICY, file="p.yaml")

    assert [(found.line, found.file) for found in documents] == [(5, "p.yaml"), (12, "p.yaml")]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 12),
        (("kind",), 12),
        (("items",), 13),
        (("items", 0), 14),
        (("items", 1, "b"), 16),
        (("items", 1, "b", "c"), 16),
        (("items", 7), 13),
        (("nowhere", "at", "all"), 12),
        (("items", "b"), 13),
    ],
)
def test_a_part_is_found_by_its_path_and_a_missing_one_by_its_parent(
    path: tuple, line: int
) -> None:
    assert load_all(POLICY)[1].line_of(path) == line


def test_lines_count_through_the_documents_before() -> None:
    assert load_all(POLICY)[0].line_of(("metadata", "name")) == 8


def test_lines_of_json_are_found_too() -> None:
    (document,) = load_all('\n\n{"a": 1,\n "b": [1,\n 2]}')

    assert (document.line, document.line_of(("b", 1))) == (3, 5)


def test_of_equal_keys_the_last_line_counts() -> None:
    assert load_all("a: 1\na: 2\n")[0].line_of(("a",)) == 2


def test_a_document_on_the_line_of_its_marker_has_that_line() -> None:
    (document,) = load_all("# x\n--- {a: {b: 1}}\n")

    assert (document.line, document.line_of(("a", "b"))) == (2, 2)


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "a: b: c", "a: 'x", "%", "a:\n  - b\n c", '{"a": ', "\x00"]
)
def test_a_syntax_error_names_file_and_line(text: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_all("\n" + text, file="f.yaml")

    assert caught.value.at.file == "f.yaml"
    assert caught.value.message == caught.value.message.strip(".")


@pytest.mark.parametrize("mark", ["\ufeff", "\ufeff---\n"])
def test_a_byte_order_mark_is_not_part_of_the_first_key(mark: str) -> None:
    assert load(mark + "a: 1") == {"a": 1}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_are_read_in_the_encoding_they_announce(encoding: str) -> None:
    assert load("a: é😀".encode(encoding)) == {"a": "é😀"}


def test_bytes_in_another_encoding_are_an_error_with_a_line() -> None:
    with pytest.raises(DocumentError, match="not encoded as UTF-8") as caught:
        load_all(b"a: b\nc: \xff\n")

    assert caught.value.at.line == 2


@pytest.mark.parametrize("text", ['a: "\\ud800"', "a: \ud800", '{"a": "\\ud800"}'])
def test_half_a_character_is_an_error(text: str) -> None:
    with pytest.raises(DocumentError):
        load_all(text)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 10_000,
        "[" * 10_000 + "]" * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        "- " * 10_000,
        "".join(" " * level + "a:\n" for level in range(3_000)),
        "- &a [" + "&a [" * 300,
        "{a: " * 201 + "}" * 201,
    ],
    ids=lambda text: text[:8],
)
def test_what_nests_without_end_is_one_clear_error(text: str) -> None:
    with pytest.raises(DocumentError, match="nested deeper than 200 levels"):
        load_all(text)


@pytest.mark.parametrize("open_", ["[", "{a: "])
def test_nesting_up_to_the_bound_is_read(open_: str) -> None:
    text = open_ * 200 + ("]" if open_ == "[" else "}") * 200

    assert load(text) is not None


def test_a_list_in_the_column_of_its_key_counts_every_level() -> None:
    text = (
        "".join(" " * level + "a:\n" + " " * level + "-\n" for level in range(99)) + " " * 99 + "b"
    )

    assert load(text) is not None


def test_aliases_cannot_multiply_a_text_without_end() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    with pytest.raises(DocumentError, match="excessive aliasing"):
        load_all("\n".join(rows))


def test_aliases_cannot_nest_what_the_text_does_not() -> None:
    rows = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 400)]

    with pytest.raises(DocumentError, match="nested deeper"):
        load_all("\n".join(rows))


def test_aliased_values_are_not_shared() -> None:
    value = load("a: &x {k: 1}\nb: *x\n")

    assert value == {"a": {"k": 1}, "b": {"k": 1}}
    assert value["a"] is not value["b"]


def test_a_text_beyond_the_size_limit_is_refused_unread() -> None:
    with pytest.raises(DocumentError, match="larger than 10 bytes"):
        load_all("a: " + "b" * 20, limits=Limits(size=10))


@pytest.mark.parametrize(
    "text", ["a: x && y\nb: '!x'\nc: p!q", "a: {b: '&x'}", "a: http://x/?a=1&b=2"]
)
def test_marks_inside_words_are_no_tags_and_no_anchors(text: str) -> None:
    assert not compose.needs_care(text.replace("'!", "").replace("'&", ""))
    assert load(text)


@pytest.mark.parametrize(
    "text", ["!a b", "a: !b c", "[!b c]", "{a: &b c}", '{"a":!b c}', "&a b", "a:\n&b c: d", "- !\n"]
)
def test_texts_with_tags_or_anchors_are_read_with_care(text: str) -> None:
    assert compose.needs_care(text)


def test_equal_scalars_are_one_object() -> None:
    first, second = load("- registry.example.com/app\n- registry.example.com/app\n")

    assert first is second


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(
    st.dictionaries(
        st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)),
        st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans(),
    )
)
def test_json_reads_the_same_by_the_fast_path_as_by_yaml(value: dict) -> None:
    text = stdlib_json.dumps(value)

    fast, slow = load(text), load("# not json\n" + text)

    assert fast == slow
    assert [type(fast[key]) for key in fast] == [type(slow[key]) for key in fast]


@given(st.lists(JSON_VALUES))
def test_every_json_text_is_read(value: object) -> None:
    assert load(stdlib_json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize("bad", ["\x01", "\ud800"])
def test_a_character_that_no_text_may_hold_is_found_by_its_line(bad: str) -> None:
    with pytest.raises(DocumentError, match="not readable as text") as caught:
        load_all(f"a: é\nb: x\nc: {bad}\n")

    assert caught.value.at.line == 3


YAML_PIECES = st.sampled_from(
    ["a", "b: ", "- ", "\n", "  ", "[", "]", "{", "}", ",", ":", "?", "|", ">", "'", '"', "&x ", "*x", "!!int ", "!t ", "<<: ",
     "---\n", "...\n", "%YAML 1.1\n", "0x", "1e9", "_", "\\ud800", "\t", "\r", "\x85", "\ufeff", "é", "\ud800", "#", "~", ".inf"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(YAML_PIECES, max_size=25).map("".join) | st.text())
def test_no_text_raises_anything_but_a_document_error(text: str) -> None:
    for strict in (False, True):
        try:
            documents = load_all(text, strict=strict)
        except DocumentError:
            continue
        for document in documents:
            stdlib_json.dumps(document.value, allow_nan=False, ensure_ascii=False).encode()
            document.line_of(("a", 0, "b"))


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_document_error(data: bytes) -> None:
    for read in (load_all, json.load):
        try:
            read(data)
        except DocumentError:
            continue


def values_read(text: str, *, pure: bool) -> object:
    """Return what a text holds to one of the two parsers, None where it refuses the text."""
    with pytest.MonkeyPatch.context() as patch:
        if pure:
            patch.setattr(compose, "has_libyaml", lambda: False)
        try:
            return [document.value for document in load_all(text)]
        except DocumentError:
            return None


@given(st.lists(YAML_PIECES.filter(lambda one: one != "\ufeff"), max_size=12).map("".join))
@settings(max_examples=200)
def test_what_both_parsers_accept_they_read_the_same(text: str) -> None:
    # a byte order mark between documents is text to one parser and nothing to the other, so it is left out
    pure, own = values_read(text, pure=True), values_read(text, pure=False)

    assert pure is None or own is None or pure == own


@pytest.mark.parametrize(
    "text", ["a: [1, {b: yes}]\n", "- x\n- |\n  y\n", "--- 1\n--- {}\n", "&a b: *a"]
)
def test_both_parsers_accept_what_is_plain(text: str) -> None:
    assert values_read(text, pure=False) is not None
    assert values_read(text, pure=True) == values_read(text, pure=False)


@pytest.fixture(scope="module")
def monkeypatch_pure():
    patch = pytest.MonkeyPatch()
    patch.setattr(compose, "has_libyaml", lambda: False)
    yield
    patch.undo()


def test_the_pure_parser_reads_the_same(monkeypatch_pure: None) -> None:
    value = load("a: &x {k: 0644, l: yes}\nb: {<<: *x, l: no}\nc: '1'\nd: !!str 1\n")

    assert value == {"a": {"k": 420, "l": True}, "b": {"k": 420, "l": False}, "c": "1", "d": "1"}


@pytest.mark.parametrize(
    "text", ["[" * 5_000, "- " * 5_000, "a: \ud800", 'a: "\\ud800"', 'a: "\\UFFFFFFFF"']
)
def test_the_pure_parser_refuses_hostile_text_the_same_way(
    monkeypatch_pure: None, text: str
) -> None:
    with pytest.raises(DocumentError):
        load_all(text)
