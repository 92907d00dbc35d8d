"""`kubectl kpolicy jp`: verbs, flags, exit codes, and clean standard output."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "in.yaml"
    path.write_text("a: {b: [1, 2.5, x<y], c: {}, d: []}\nbig: 9007199254740993\n---\nb: 1\n")
    return str(path)


def jp(*words: str) -> int:
    return entry.main(["jp", *words])


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))


def test_results_stand_below_their_expressions(capsys, document: str) -> None:
    assert jp("query", "-i", document, "a", "big") == 0

    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out == (
        '# a\n{\n  "b": [\n    1,\n    2.5,\n    "x\\u003cy"\n  ],\n  "c": {},\n  "d": []\n}\n'
        "# big\n9007199254740992\n"
    )


def test_compact_and_unquoted(capsys, document: str) -> None:
    assert jp("query", "-c", "-u", "--input", document, "a.b", "a.b[2]") == 0

    assert capsys.readouterr().out == '# a.b\n[1,2.5,"x\\u003cy"]\n# a.b[2]\nx<y\n'


def test_expressions_come_from_files_and_from_standard_input(
    capsys, document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "q1").write_text("a.b[0]\n")
    (tmp_path / "q2").write_text("a.c")

    assert (
        jp("query", "-c", "-i", document, "-q", str(tmp_path / "q1"), "-q", str(tmp_path / "q2"))
        == 0
    )
    piped(monkeypatch, "a.d\n")
    assert jp("query", "-c", "-i", document) == 0

    assert capsys.readouterr().out == "# a.b[0]\n1\n# a.c\n{}\n# a.d\n[]\n"


def test_the_document_comes_from_standard_input(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    piped(monkeypatch, '{"a": 1}')
    assert jp("query", "-i", "-", "a") == 0
    piped(monkeypatch, "a: 2")
    assert jp("query", "a") == 0

    assert capsys.readouterr().out == "# a\n1\n# a\n2\n"


def test_standard_input_cannot_be_asked_for_twice(capsys) -> None:
    assert jp("query") == 2
    assert jp("query", "-q", "-") == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert "standard input" in shown.err


@pytest.mark.parametrize("expression", ["nokey", "a[", "abs('x')"])
def test_a_failing_expression_exits_with_1(capsys, document: str, expression: str) -> None:
    assert jp("query", "-i", document, expression) == 1

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")


def test_a_wrong_command_line_exits_with_2() -> None:
    assert jp() == 2
    assert jp("query", "--nope") == 2


def test_a_missing_file_exits_with_1(capsys) -> None:
    assert jp("query", "-i", "/nope", "a") == 1
    assert "/nope" in capsys.readouterr().err


def test_trees_are_printed(capsys, tmp_path: Path) -> None:
    (tmp_path / "q").write_text("b")

    assert jp("parse", "-f", str(tmp_path / "q"), "a") == 0
    assert capsys.readouterr().out == (
        '# b\nASTField {\n  value: "b"\n}\n\n# a\nASTField {\n  value: "a"\n}\n\n'
    )


def test_signatures_are_printed(capsys) -> None:
    assert jp("function", "truncate") == 0
    one = capsys.readouterr().out
    assert one.startswith(
        "Name: truncate\n  Signature: truncate(string, number) string\n  Note:      "
    )
    assert jp("function") == 0
    assert capsys.readouterr().out.count("Signature:") == 76


def test_an_unknown_function_exits_with_1_and_names_the_nearest(capsys) -> None:
    assert jp("function", "truncat") == 1
    assert "`truncate`" in capsys.readouterr().err


def test_the_clock_and_chance_are_there(capsys, document: str) -> None:
    assert (
        jp(
            "query",
            "-u",
            "-i",
            document,
            "time_now_utc()",
            "random('[a-z]{30}')",
            "random('[a-z]{30}')",
        )
        == 0
    )

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("Z")
    assert lines[3] != lines[5]
