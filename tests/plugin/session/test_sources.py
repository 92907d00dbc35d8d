"""Sources: files, folders, standard input and lists, in order, with their lines; one clear error for the rest."""

from __future__ import annotations

import gc
import io
import sys
from typing import TYPE_CHECKING

import pytest

from engine.collector import collector_off, settle
from engine.errors import DocumentError
from kubectl_kpolicy.session.sources import read_documents, read_paths

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def names(*paths: object) -> list[str]:
    return [
        document.value["metadata"]["name"]
        for document in read_documents([str(path) for path in paths])
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.yaml", "a.yml", "sub/c.json", "note.txt", ".git/d.yaml"):
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f'{{"kind": "Pod", "metadata": {{"name": "{place.stem}"}}}}')
    return tmp_path


def test_a_folder_is_read_in_order_without_hidden_and_other_files(folder: Path) -> None:
    assert names(folder) == ["a", "b", "c"]


def test_places_are_read_in_the_order_given(folder: Path) -> None:
    assert names(folder / "b.yaml", folder / "a.yml") == ["b", "a"]


def test_a_file_named_directly_may_have_any_suffix(folder: Path) -> None:
    assert names(folder / "note.txt") == ["note"]


def test_a_dash_is_standard_input(monkeypatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: Pod\nmetadata: {name: x}\n---\n"))
    )

    (document,) = read_documents(["-"])

    assert (document.file, document.line, document.value["metadata"]["name"]) == ("<stdin>", 1, "x")


def test_lists_are_read_member_by_member_with_their_lines(tmp_path: Path) -> None:
    place = tmp_path / "list.yaml"
    place.write_text(
        "kind: List\nitems:\n- metadata: {name: a}\n- kind: PodList\n  items:\n  - metadata: {name: b}\n- metadata:\n    name: c\n"
    )

    found = read_documents([str(place)])

    assert [(part.value["metadata"]["name"], part.line) for part in found] == [
        ("a", 3),
        ("b", 6),
        ("c", 7),
    ]


def test_what_a_list_of_one_kind_holds_is_of_that_kind_unless_it_says_so_itself(
    tmp_path: Path,
) -> None:
    place = tmp_path / "list.json"
    place.write_text(
        '{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {"name": "a"}}, {"kind": "Pod", "apiVersion": "v1"}]}'
    )

    found = read_documents([str(place)])

    assert [part.value for part in found] == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}},
        {"kind": "Pod", "apiVersion": "v1"},
    ]


def test_a_kind_that_only_sounds_like_a_list_stays_whole(tmp_path: Path) -> None:
    place = tmp_path / "x.yaml"
    place.write_text("kind: AllowList\nspec: {items: []}\n")

    assert len(read_documents([str(place)])) == 1


@pytest.mark.parametrize(
    "path", ["https://example.com/p.yaml", "oci://registry/p", "git@github.com:a/b"]
)
def test_remote_sources_are_refused_in_one_sentence(path: str) -> None:
    with pytest.raises(DocumentError, match="this must be a local file or folder") as caught:
        read_documents([path])

    assert caught.value.help


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="no such file or directory"):
        read_documents([str(tmp_path / "none.yaml")])


@pytest.mark.parametrize("read", [read_documents, read_paths])
def test_no_path_at_all_is_not_the_current_folder(read: Callable[..., object]) -> None:
    with pytest.raises(DocumentError, match="a path is empty"):
        read([""])


def test_a_bad_document_names_file_and_line(tmp_path: Path) -> None:
    place = tmp_path / "bad.yaml"
    place.write_text("a: b\nc: [\n")

    with pytest.raises(DocumentError) as caught:
        read_documents([str(place)])

    assert caught.value.at.file == str(place)
    assert caught.value.at.line >= 2


def test_a_key_given_twice_is_an_error_where_asked(tmp_path: Path) -> None:
    place = tmp_path / "twice.yaml"
    place.write_text("a: 1\na: 2\n")

    assert read_documents([str(place)])[0].value == {"a": 2}
    with pytest.raises(DocumentError, match="already set"):
        read_documents([str(place)], strict=True)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: {c: 1,\n  c: 2}\n---\nd: 1\n'd': 2\nd: 3\n", {"c": [3], "d": [6, 7]}),
        ("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  a: 3\n", {}),
        ("x: &x {a: 1,\n  a: 2}\ny: *x\nz: {<<: *x, b: 1}\n", {"a": [2]}),
        ("1: a\n'1': b\n", {"1": [2]}),
    ],
)
def test_a_key_given_twice_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, lines: dict[str, list[int]]
) -> None:
    place = tmp_path / "twice.yaml"
    place.write_text(text)

    read_paths([str(place)])

    assert capsys.readouterr().err.splitlines() == [
        f"warning: {place}:{line}: key `{key}` is given twice, its last value counts"
        for key, found in lines.items()
        for line in found
    ]


def test_the_collector_is_as_before_after_loading() -> None:
    with collector_off():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_a_process_has_settled_stays_settled_after_loading() -> None:
    settle(*gc.get_threshold())

    with collector_off():
        pass

    assert gc.get_freeze_count() > 0


def test_the_collector_does_not_look_at_once_through_what_was_loaded() -> None:
    looked: list[str] = []

    def note(phase: str, _info: dict[str, int]) -> None:
        looked.append(phase)

    gc.callbacks.append(note)
    try:
        with collector_off():
            kept: list[list[int]] = [[] for _ in range(100_000)]
        after: list[list[int]] = [[] for _ in range(100)]
    finally:
        gc.callbacks.remove(note)

    assert len(kept) + len(after) == 100_100
    assert looked == []
