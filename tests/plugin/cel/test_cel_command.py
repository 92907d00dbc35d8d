"""`kubectl kpolicy cel`: verbs, flags, exit codes, typed exchange, and errors that point at their place."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from kubectl_kpolicy import entry

if TYPE_CHECKING:
    from pathlib import Path


def cel(*words: str) -> int:
    return entry.main(["cel", *words])


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))


@pytest.fixture
def bindings(tmp_path: Path) -> str:
    path = tmp_path / "bindings.yaml"
    path.write_text(
        "object: {spec: {replicas: 3, ports: [80, 443], ratio: 2.5}}\n"
        'u: {type: uint, value: "5"}\n'
        't: {type: timestamp, value: "2024-01-01T00:00:00Z"}\n'
        "b: {type: bytes, value: aGk=}\n"
    )
    return str(path)


def typed(capsys: Any, *words: str) -> list[Any]:
    assert cel("query", "-o", "typed", *words) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return [json.loads(line) for line in shown.out.splitlines()]


def test_results_stand_below_their_expressions(capsys: Any, bindings: str) -> None:
    assert cel("query", "-i", bindings, "object.spec.ports", "u + 1u", "b", "t") == 0

    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out == (
        "# object.spec.ports\n[\n  80,\n  443\n]\n# u + 1u\n6\n# b\n"
        '"aGk="\n# t\n"2024-01-01T00:00:00Z"\n'
    )


def test_values_that_json_cannot_hold_are_shown_typed(capsys: Any) -> None:
    assert cel("query", 'quantity("1Gi")') == 0
    assert json.loads(capsys.readouterr().out.partition("\n")[2]) == {
        "type": "kubernetes.Quantity",
        "value": "1Gi",
    }


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("1", {"type": "int", "value": "1"}),
        ("9223372036854775807", {"type": "int", "value": "9223372036854775807"}),
        ("1u", {"type": "uint", "value": "1"}),
        ("1.0", {"type": "double", "value": 1.0}),
        ("0.0 / 0.0", {"type": "double", "value": "NaN"}),
        ("-1.0 / 0.0", {"type": "double", "value": "-Infinity"}),
        ("true", {"type": "bool", "value": True}),
        ("'é'", {"type": "string", "value": "é"}),
        ("b'\\xff'", {"type": "bytes", "value": "/w=="}),
        ("null", {"type": "null", "value": None}),
        ("[1, 1u]", {"type": "list", "value": [{"type": "int", "value": "1"}, {"type": "uint", "value": "1"}]}),
        ("{'a': 1}", {"type": "map", "value": [[{"type": "string", "value": "a"}, {"type": "int", "value": "1"}]]}),
        ("{true: null}", {"type": "map", "value": [[{"type": "bool", "value": True}, {"type": "null", "value": None}]]}),
        ("timestamp(0)", {"type": "timestamp", "value": "1970-01-01T00:00:00Z"}),
        ("duration('90m')", {"type": "duration", "value": "5400s"}),
        ("type(1)", {"type": "type", "value": "int"}),
        ("type(null)", {"type": "type", "value": "null"}),
        ("optional.of(1)", {"type": "optional", "value": {"type": "int", "value": "1"}}),
        ("optional.none()", {"type": "optional", "value": None}),
        ("ip('::1')", {"type": "net.IP", "value": "::1"}),
    ],
)  # fmt: skip
def test_typed_results_tell_all_types_apart(capsys: Any, expression: str, shown: Any) -> None:
    assert typed(capsys, expression) == [shown]


def test_every_line_of_a_file_gives_one_line_errors_included(
    capsys: Any, bindings: str, tmp_path: Path
) -> None:
    (tmp_path / "q").write_text(
        "object.spec.replicas\n1 +\n\nobject.spec.x\n1 / 0\nobject.spec.ratio\n"
    )

    assert typed(capsys, "-i", bindings, "-q", str(tmp_path / "q")) == [
        {"type": "int", "value": "3"},
        {"error": "syntax error: unexpected `<EOF>`"},
        {"error": "syntax error: unexpected `<EOF>`"},
        {"error": "no such key: x"},
        {"error": "division by zero"},
        {"type": "double", "value": 2.5},
    ]


def test_typed_results_can_be_given_back_as_bindings(capsys: Any, tmp_path: Path) -> None:
    expressions = (
        "[1, 2u, 0.5]",
        "{'a': b'x', 1: optional.none()}",
        "timestamp(1)",
        "duration('1s')",
        "type(1)",
        "null",
    )
    first = typed(capsys, *expressions)
    path = tmp_path / "in.json"
    path.write_text(json.dumps({f"v{number}": shown for number, shown in enumerate(first)}))

    assert typed(capsys, "-i", str(path), *(f"v{number}" for number in range(len(first)))) == first


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("1", "int"), ("1.0", "double"), ("1e3", "double"), ('"a"', "string"), ("null", "null"), ("[1.0]", "list"),
        ("18446744073709551615", "double"), ('{"type": "uint", "value": "1"}', "uint"), ('{"type": "a", "value": 1}', "map"),
        ('{"type": "map", "value": {"a": 1}}', "map"), ('{"type": "map", "value": [["a", 1]]}', "map"),
        ('{"type": "map", "value": [{"key": {"type": "int", "value": "1"}, "value": 1}]}', "map"), ('{"type": "double", "value": 1}', "double"),
    ],
)  # fmt: skip
def test_bindings_are_plain_json_or_typed(
    capsys: Any, tmp_path: Path, given: str, kind: str
) -> None:
    path = tmp_path / "in.json"
    path.write_text(f'{{"x": {given}}}')

    assert typed(capsys, "-i", str(path), "x")[0]["type"] == kind


@pytest.mark.parametrize("given", ['{"type": "int", "value": "x"}', '{"type": "int", "value": "9223372036854775808"}',
    '{"type": "uint", "value": "-1"}', '{"type": "bytes", "value": "!"}', '{"type": "bool", "value": "true"}',
    '{"type": "timestamp", "value": "x"}', '{"type": "list", "value": 1}', '{"type": "null", "value": 1}'])  # fmt: skip
def test_typed_bindings_that_hold_no_such_value_are_refused(
    capsys: Any, tmp_path: Path, given: str
) -> None:
    path = tmp_path / "in.json"
    path.write_text(f'{{"x": {given}}}')

    assert cel("query", "-i", str(path), "-o", "typed", "x") == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("1 +", "error: line 1: syntax error: unexpected `<EOF>`\n  1 +\n     ^\n"),
        ("object.spec.x", "error: object.spec.x: no such key: x\n  object.spec.x\n             ^\n"),
        ("[1,\n 2 + u]", "error: no such overload\n   2 + u]\n     ^\n"),
        ("true && nosuch(1)", "error: line 1: undeclared reference to 'nosuch' (in container '')\n  true && nosuch(1)\n          ^\n"),
    ],
)  # fmt: skip
def test_an_error_points_at_its_place(
    capsys: Any, bindings: str, expression: str, error: str
) -> None:
    assert cel("query", "-i", bindings, expression) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == error


def test_results_before_an_error_are_kept(capsys: Any) -> None:
    assert cel("query", "1", "1 / 0", "2") == 1
    assert capsys.readouterr().out == "# 1\n1\n"


def test_a_control_character_in_an_expression_does_not_reach_the_terminal(capsys: Any) -> None:
    assert cel("query", "1 \x1b[31m") == 1
    assert "\x1b" not in capsys.readouterr().err


def test_expressions_and_bindings_come_from_standard_input(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(monkeypatch, "1 + 1\n\n2 * 2\n")
    assert cel("query", "-q", "-") == 0
    assert capsys.readouterr().out == "# 1 + 1\n2\n# 2 * 2\n4\n"

    piped(monkeypatch, '{"x": 5}')
    assert cel("query", "-i", "-", "x") == 0
    assert capsys.readouterr().out == "# x\n5\n"


def test_standard_input_cannot_be_both(capsys: Any) -> None:
    assert cel("query", "-i", "-", "-q", "-") == 2
    assert "standard input cannot be both" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("query",), ("parse",), ("query", " "), ("query", "-i", "x.yaml")]
)
def test_without_an_expression_it_says_so(capsys: Any, words: tuple[str, ...]) -> None:
    assert cel(*words) == 2
    assert capsys.readouterr().err.startswith("error: no expression given\nhelp: ")


@pytest.mark.parametrize("text", ["[1]", "a: [", "text"])
def test_bindings_must_be_a_mapping(capsys: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "in").write_text(text)

    assert cel("query", "-i", str(tmp_path / "in"), "1") == 1
    assert "in" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: Any, tmp_path: Path) -> None:
    assert cel("query", "-i", str(tmp_path / "none"), "1") == 1
    assert "none`: no such file" in capsys.readouterr().err


def test_dotted_names_of_bindings_are_read_as_one_name(capsys: Any, tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text("a.b.c: 7\n")

    assert typed(capsys, "-i", str(tmp_path / "in.yaml"), "a.b.c + 1") == [
        {"type": "int", "value": "8"}
    ]


def test_a_lookup_has_no_answer_here(capsys: Any) -> None:
    assert typed(capsys, 'resource.Get("v1", "pods", "a", "b")')[0]["error"].endswith(
        "cannot be answered here"
    )


def test_the_tree_shows_what_macros_became(capsys: Any) -> None:
    assert cel("parse", "has(a.b) && [1u].all(x, x > -1)") == 0

    assert capsys.readouterr().out == (
        "# has(a.b) && [1u].all(x, x > -1)\n"
        "Logic operator=&&\n"
        "  parts:\n"
        "    Select field=b test=True\n"
        "      operand:\n"
        "        Ident name=a\n"
        "    Comprehension kind=all first=x\n"
        "      source:\n"
        "        ListLiteral\n"
        "          items:\n"
        "            1u\n"
        "      body:\n"
        "        Chain\n"
        "          first:\n"
        "            Ident name=x\n"
        "          rest:\n"
        "            >\n"
        "            -1\n\n"
    )


def test_parse_refuses_what_is_no_expression(capsys: Any) -> None:
    assert cel("parse", "a.b(") == 1
    assert (
        capsys.readouterr().err
        == "error: line 1: syntax error: unexpected `<EOF>`\n  a.b(\n      ^\n"
    )


def test_functions_are_listed_with_library_and_signature(capsys: Any) -> None:
    assert cel("function") == 0
    listed = capsys.readouterr().out.splitlines()

    assert len(listed) > 300
    assert "macro       has(e.f)" in listed
    assert "strings     string.charAt(int) -> string" in listed
    assert "kyverno     resource.Get(string, string, string, string) -> dyn" in listed


def test_one_function_shows_all_of_its_forms(capsys: Any) -> None:
    assert cel("function", "isIP", "all") == 0
    assert capsys.readouterr().out == (
        "ip          isIP(string) -> bool\nmacro       e.all(x, p)\nmacro       e.all(k, v, p)\n"
    )


def test_an_unknown_function_is_refused_with_the_nearest_name(capsys: Any) -> None:
    assert cel("function", "indexOff") == 1
    assert (
        capsys.readouterr().err
        == "error: unknown function `indexOff`\nhelp: did you mean `indexOf`?\n"
    )


def test_an_unknown_verb_is_an_error_of_usage(capsys: Any) -> None:
    assert cel("quer", "1") == 2
    assert "unknown command `quer`; did you mean `query`?" in capsys.readouterr().err
